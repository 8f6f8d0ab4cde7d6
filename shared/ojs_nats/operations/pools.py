"""Pools: queues that share fetches by weight or in turns (docs/queues.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from ojs_nats._operations import Operation, Request
from ojs_nats.models.pools import ListedPool, Pool, SchedulingStats
from ojs_nats.operations.queues import Prevention
from ojs_nats.operations.subject import Subject, body

_LIST: Final = Operation("listPools", "GET", "/admin/pools")
_GET: Final = Operation("getPool", "GET", "/admin/pools/{pool}")
_PUT: Final = Operation("putPool", "PUT", "/admin/pools/{pool}")
_DELETE: Final = Operation("deletePool", "DELETE", "/admin/pools/{pool}")
_STATS: Final = Operation("getSchedulingStats", "GET", "/admin/scheduling/stats")


class Pools(Subject):
    """`client.pools`. What is about one pool raises NotFoundError."""

    async def list(self) -> Sequence[ListedPool]:
        """By name, with what works for them."""
        return await self._asked(list[ListedPool], Request(_LIST), "items")

    async def get(self, pool: str) -> Pool:
        return await self._asked(Pool, Request(_GET, {"pool": pool}), "pool")

    async def put(
        self,
        pool: str,
        queues: Sequence[str],
        *,
        strategy: Literal["weighted", "round-robin", "strict"] | None = None,
        weights: Mapping[str, int] | None = None,
        starvation_prevention: Prevention | None = None,
        isolated: bool = False,
    ) -> Pool:
        """Make it, or set it anew. With `isolated`, its queues give jobs to workers of this pool alone."""
        asked = body(
            queues=[*queues],
            strategy=strategy,
            weights=weights,
            starvation_prevention=starvation_prevention and starvation_prevention.wire(),
            isolated=isolated,
        )
        return await self._asked(Pool, Request(_PUT, {"pool": pool}, asked), "pool")

    async def delete(self, pool: str) -> None:
        """Its queues are served like any others."""
        await self._transport.send(Request(_DELETE, {"pool": pool}))

    async def scheduling_stats(self) -> SchedulingStats:
        """What each queue gave within the last minute."""
        return await self._asked(SchedulingStats, Request(_STATS))

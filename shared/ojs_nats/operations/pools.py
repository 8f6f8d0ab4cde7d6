"""Operations on pools: queues that share fetches by weight or in turns (docs/queues.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ojs_api import words
from ojs_nats._operations import Operation, Request
from ojs_nats.models.pools import ListedPool, Pool, SchedulingStats
from ojs_nats.operations._subject import Subject, body, prevention
from ojs_nats.operations.queues import Prevention

__all__ = ["Pools"]

_LIST: Final = Operation("listPools", "GET", "/admin/pools")
_GET: Final = Operation("getPool", "GET", "/admin/pools/{pool}")
_PUT: Final = Operation("putPool", "PUT", "/admin/pools/{pool}")
_DELETE: Final = Operation("deletePool", "DELETE", "/admin/pools/{pool}")
_STATS: Final = Operation("getSchedulingStats", "GET", "/admin/scheduling/stats")


class Pools(Subject):
    """The operations on pools, as `client.pools`. Those on one pool raise NotFoundError if it doesn't exist."""

    async def list(self) -> Sequence[ListedPool]:
        """Return the pools by name, with their workers and jobs."""
        return await self._asked(list[ListedPool], Request(_LIST), "items")

    async def get(self, pool: str) -> Pool:
        """Return a pool.

        Raises:
            NotFoundError: There is no such pool.
        """
        return await self._asked(Pool, Request(_GET, {"pool": pool}), "pool")

    async def put(
        self,
        pool: str,
        queues: Sequence[str],
        *,
        strategy: words.PoolStrategy | None = None,
        weights: Mapping[str, int] | None = None,
        starvation_prevention: Prevention | None = None,
        isolated: bool = False,
    ) -> Pool:
        """Make a pool, or replace the one of that name.

        Args:
            pool: The pool's name.
            queues: Its queues.
            strategy: How a fetch is shared: `"weighted"`, `"round-robin"` or `"strict"` (the first queue first). None
                means the server's default.
            weights: The weights of the queues. Queues without one have 1.
            starvation_prevention: The guarantee for queues that others go ahead of. None means the server's default.
            isolated: Whether only workers of this pool get jobs of its queues.
        """
        given = starvation_prevention
        kept = given and prevention(enabled=given.enabled, interval=given.interval, share=given.share)
        asked = body(
            queues=[*queues],
            strategy=strategy,
            weights=weights,
            starvation_prevention=kept,
            isolated=isolated,
        )
        return await self._asked(Pool, Request(_PUT, {"pool": pool}, asked), "pool")

    async def delete(self, pool: str) -> None:
        """Delete a pool. Its queues are served like any others then.

        Raises:
            NotFoundError: There is no such pool.
        """
        await self._transport.send(Request(_DELETE, {"pool": pool}))

    async def scheduling_stats(self) -> SchedulingStats:
        """Return how many jobs each queue gave to workers within the last minute."""
        return await self._asked(SchedulingStats, Request(_STATS))

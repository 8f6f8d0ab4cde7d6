"""Operations on pools: queues that share fetches by weight or in turns (docs/queues.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ojs_api import words
from ojs_api.pools import DELETE, GET, LIST, PUT, STATS, ListedPool, Pool, PutPool, SchedulingStats
from ojs_nats._operations import Request
from ojs_nats.operations._subject import Subject, prevention, sent
from ojs_nats.operations.queues import Prevention

__all__ = ["Pools"]


class Pools(Subject):
    """The operations on pools, as `client.pools`. Those on one pool raise NotFoundError if it doesn't exist."""

    async def list(self) -> Sequence[ListedPool]:
        """Return the pools by name, with their workers and jobs."""
        return await self._asked(list[ListedPool], Request(LIST), "items")

    async def get(self, pool: str) -> Pool:
        """Return a pool.

        Raises:
            NotFoundError: There is no such pool.
        """
        return await self._asked(Pool, Request(GET, {"pool": pool}), "pool")

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
        kept = None if given is None else prevention(enabled=given.enabled, interval=given.interval, share=given.share)
        asked = PutPool(
            queues=[*queues],
            strategy=strategy,
            weights=None if weights is None else {**weights},
            starvation_prevention=kept,
            isolated=isolated,
        )
        return await self._asked(Pool, Request(PUT, {"pool": pool}, sent(asked)), "pool")

    async def delete(self, pool: str) -> None:
        """Delete a pool. Its queues are served like any others then.

        Raises:
            NotFoundError: There is no such pool.
        """
        await self._transport.send(Request(DELETE, {"pool": pool}))

    async def scheduling_stats(self) -> SchedulingStats:
        """Return how many jobs each queue gave to workers within the last minute."""
        return await self._asked(SchedulingStats, Request(STATS))

"""Statistics of scheduling as operators read them (ojs-fair-scheduling §10.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ojs_api import pools as contract
from ojs_api.pools import SchedulingStats, SchedulingTotals
from ojs_engine.domain.starvation import USUAL_INTERVAL_MS, is_starved
from ojs_engine.wire.members import moment
from ojs_features.pools.rules import Pool, Strategy
from ojs_index.asking.messages import Dispatches, DispatchesOfQueue
from ojs_index.lists.progress import progress

_WINDOW: Final = "PT1M"


def scheduling_stats(lately: Dispatches, pools: Sequence[Pool], held: Collection[str], now: int) -> SchedulingStats:
    """Make the answer. `held` are the queues that are paused or that their own limit holds back."""
    of_queue = {queue: pool for pool in pools for queue in pool.weights}
    strategies: set[Strategy] = {pool.strategy for pool in pools} or {"strict"}
    queues = [
        _dispatches(queue, lately.total, of_queue.get(queue.name), now, held=queue.name in held) for queue in lately.queues
    ]
    return SchedulingStats(
        strategy=strategies.pop() if len(strategies) == 1 else "mixed",
        window=_WINDOW,
        dispatch_count_1m=lately.total,
        stats=SchedulingTotals(
            queues=len(queues),
            starved=sum(queue.starved for queue in queues),
            active_jobs=sum(queue.active_jobs for queue in queues),
            available_jobs=sum(queue.available_jobs for queue in queues),
        ),
        queues=queues,
        computed_at=moment(now),
        **progress(lately),
    )


def _dispatches(queue: DispatchesOfQueue, total: int, pool: Pool | None, now: int, *, held: bool) -> contract.Dispatches:
    prevention = None if pool is None else pool.prevention
    patience = USUAL_INTERVAL_MS if prevention is None else prevention.interval_ms
    return contract.Dispatches(
        name=queue.name,
        dispatch_count_1m=queue.number,
        dispatch_ratio_1m=round(queue.number / total, 4) if total else 0.0,
        avg_wait_ms=round(queue.wait_ms / queue.number, 3) if queue.number else 0.0,
        active_jobs=queue.active,
        available_jobs=queue.available,
        starved=not held and is_starved(queue.oldest_at, queue.last_at, patience, now),
        last_dispatch_at=moment(queue.last_at),
        oldest_available_at=moment(queue.oldest_at),
        pool=None if pool is None else pool.name,
        strategy=None if pool is None else pool.strategy,
        weight=None if pool is None else pool.weights[queue.name],
    )

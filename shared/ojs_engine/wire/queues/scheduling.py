"""Scheduling statistics as operators read them (ojs-fair-scheduling §10.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_engine.base.times import format_ms
from ojs_engine.domain.fair_pools import Pool, Strategy, is_starved
from ojs_engine.read.messages import Dispatches, DispatchesOfQueue
from ojs_engine.wire.members import Count, Duration, Timestamp, timestamp
from ojs_engine.wire.pages import Indexed, with_progress

_WINDOW: Final = "PT1M"


class DispatchesAnswer(Struct, kw_only=True, omit_defaults=True):
    """What a queue gave within the last minute. It is starved if jobs wait, nothing keeps them back, and none was handed out
    for the interval (ojs-fair-scheduling §11.1).
    """

    name: str
    dispatch_count_1m: Count
    dispatch_ratio_1m: Annotated[float, Meta(ge=0, le=1)]
    avg_wait_ms: Annotated[float, Meta(ge=0)]
    active_jobs: Count
    available_jobs: Count
    starved: bool
    last_dispatch_at: Timestamp | UnsetType = UNSET
    oldest_available_at: Timestamp | UnsetType = UNSET
    pool: str | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET
    weight: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class SchedulingTotals(Struct):
    """All queues together."""

    queues: Count
    starved: Annotated[int, Meta(ge=0, description="Queues that are starved.")]
    active_jobs: Count
    available_jobs: Count


class SchedulingStats(Indexed, kw_only=True):
    """What each queue gave within the last minute. `strategy` is that of all pools, if they have the same."""

    strategy: Strategy | Literal["mixed"]
    window: Duration
    dispatch_count_1m: Count
    stats: SchedulingTotals
    queues: list[DispatchesAnswer]
    computed_at: Timestamp


def scheduling_stats(lately: Dispatches, pools: Sequence[Pool], held: Collection[str], now: int) -> SchedulingStats:
    """Make the answer. `held` are the queues that are paused or that their own limit holds back."""
    of_queue = {queue: pool for pool in pools for queue in pool.weights}
    strategies: set[Strategy] = {pool.strategy for pool in pools} or {"strict"}
    queues = [
        _dispatches(queue, lately.total, of_queue.get(queue.name), now, held=queue.name in held) for queue in lately.queues
    ]
    answer = SchedulingStats(
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
        computed_at=format_ms(now),
    )
    return with_progress(answer, lately)


def _dispatches(queue: DispatchesOfQueue, total: int, pool: Pool | None, now: int, *, held: bool) -> DispatchesAnswer:
    answer = DispatchesAnswer(
        name=queue.name,
        dispatch_count_1m=queue.number,
        dispatch_ratio_1m=round(queue.number / total, 4) if total else 0.0,
        avg_wait_ms=round(queue.wait_ms / queue.number, 3) if queue.number else 0.0,
        active_jobs=queue.active,
        available_jobs=queue.available,
        starved=not held and is_starved(pool, queue.oldest_at, queue.last_at, now),
        last_dispatch_at=timestamp(queue.last_at),
        oldest_available_at=timestamp(queue.oldest_at),
    )
    if pool is not None:
        answer.pool, answer.strategy, answer.weight = pool.name, pool.strategy, pool.weights[queue.name]
    return answer

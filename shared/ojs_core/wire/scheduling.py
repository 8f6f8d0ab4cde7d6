"""Scheduling statistics as operators read them (ojs-fair-scheduling §10.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from ojs_core.base.times import format_ms
from ojs_core.domain.fair_pools import Pool, Prevention
from ojs_core.read.messages import Dispatches, DispatchesOfQueue

_WINDOW: Final = "PT1M"
_STARVED_MS: Final = Prevention().interval_ms
"""For queues whose pool says nothing else."""


def scheduling_view(lately: Dispatches, pools: Sequence[Pool], held: Collection[str], now: int) -> dict[str, Any]:
    """`{queues: [...], window}`, and the strategy if all pools have the same; `held` are the queues that are paused."""
    of_queue = {queue: pool for pool in pools for queue in pool.weights}
    strategies = {pool.strategy for pool in pools} or {"strict"}
    return {
        "strategy": strategies.pop() if len(strategies) == 1 else "mixed",
        "window": _WINDOW,
        "dispatch_count_1m": lately.total,
        "queues": [
            _queue_view(queue, lately.total, of_queue.get(queue.name), now, held=queue.name in held) for queue in lately.queues
        ],
        "computed_at": format_ms(now),
    }


def _queue_view(queue: DispatchesOfQueue, total: int, pool: Pool | None, now: int, *, held: bool) -> dict[str, Any]:
    """`starved`: jobs wait, nothing keeps them back, and none was handed out for the interval (ojs-fair-scheduling §11.1)."""
    view: dict[str, Any] = {
        "name": queue.name,
        "dispatch_count_1m": queue.number,
        "dispatch_ratio_1m": round(queue.number / total, 4) if total else 0.0,
        "avg_wait_ms": round(queue.wait_ms / queue.number, 3) if queue.number else 0.0,
        "active_jobs": queue.active,
        "available_jobs": queue.available,
    }
    if queue.last_at is not None:
        view["last_dispatch_at"] = format_ms(queue.last_at)
    interval_ms = _STARVED_MS if pool is None or pool.prevention is None else pool.prevention.interval_ms
    waiting_since = max(queue.oldest_at, queue.last_at or 0) if queue.oldest_at is not None else now
    view["starved"] = not held and now - waiting_since > interval_ms
    if queue.oldest_at is not None:
        view["oldest_available_at"] = format_ms(queue.oldest_at)
    if pool is not None:
        view |= {"pool": pool.name, "strategy": pool.strategy, "weight": pool.weights[queue.name]}
    return view

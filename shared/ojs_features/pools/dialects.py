"""Pools for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.pools import ListedPool, PoolList, SchedulingStats
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, members


def _pool_for_ui(pool: ListedPool) -> dict[str, Any]:
    own = bare(pool)
    return members(pool) | {"id": own.name, "workers": own.active_workers}


def _pools_for_ui(answer: PoolList) -> dict[str, Any]:
    return members(answer) | {"pools": [_pool_for_ui(pool) for pool in answer.items]}


def _dispatched_for_ui(answer: SchedulingStats) -> dict[str, Any]:
    queues = [members(queue) | {"dispatched": queue.dispatch_count_1m} for queue in answer.queues]
    return members(answer) | {"queues": queues}


SHAPES: Final[Shapes] = {PoolList: {"ui": _pools_for_ui}, SchedulingStats: {"ui": _dispatched_for_ui}}

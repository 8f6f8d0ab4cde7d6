"""Workers, limits, pools and the system itself, for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ojs_core.wire.dialects.shaping import Shapes
from ojs_core.wire.members import Extended, bare, members
from ojs_core.wire.queues.fair_pools import ListedPool, PoolList
from ojs_core.wire.queues.rate_limits import LimitAnswer, LimitPage, OverriddenLimit
from ojs_core.wire.queues.scheduling import SchedulingStats
from ojs_core.wire.system.maintenance import MaintenanceAnswer
from ojs_core.wire.system.manifest import Manifest
from ojs_core.wire.workers.fleet import FleetPage, WorkerAnswer, WorkerDetail


def _with_heartbeat(worker: WorkerAnswer) -> dict[str, Any]:
    return members(worker) | {"last_heartbeat": worker.last_heartbeat_at}


def _with_heartbeats(page: FleetPage) -> dict[str, Any]:
    return members(page) | {"items": [_with_heartbeat(worker) for worker in page.items]}


def _limit_for_cli(limit: LimitAnswer) -> dict[str, Any]:
    """The command line reads `concurrency` as a number, with the rest of it beside."""
    if limit.concurrency is UNSET:
        return members(limit) | {"active": 0}
    whole = limit.concurrency
    return members(limit) | {"concurrency": whole.limit, "active": whole.active, "available": whole.available}


def _limits_for_cli(page: LimitPage) -> dict[str, Any]:
    limits = [_limit_for_cli(limit) for limit in page.items]
    return members(page) | {"items": limits, "rate_limits": limits}


def _limit_for_ui(limit: LimitAnswer) -> dict[str, Any]:
    """The admin UI shows one number, with a period if it is that of a rate."""
    view = members(limit) | {"active": 0, "waiting": limit.waiting_count}
    if limit.concurrency is not UNSET:
        view |= {"active": limit.concurrency.active, "limit": limit.concurrency.limit}
    if limit.rate is not UNSET:
        view |= {"limit": limit.rate.limit, "period": limit.rate.period}
    if limit.override is not UNSET:
        view["override"] = members(limit.override) | _one_number(bare(limit.override))
    return view


def _one_number(override: OverriddenLimit) -> dict[str, Any]:
    if override.rate is not UNSET:
        return members(override.rate)
    return {} if override.concurrency is UNSET else {"limit": override.concurrency}


def _limits_for_ui(page: LimitPage) -> dict[str, Any]:
    return members(page) | {"items": [_limit_for_ui(limit) for limit in page.items]}


def _pool_for_ui(pool: ListedPool | Extended[ListedPool]) -> dict[str, Any]:
    own = bare(pool)
    return members(pool) | {"id": own.name, "workers": own.active_workers}


def _pools_for_ui(answer: PoolList) -> dict[str, Any]:
    return members(answer) | {"pools": [_pool_for_ui(pool) for pool in answer.items]}


def _dispatched_for_ui(answer: SchedulingStats) -> dict[str, Any]:
    queues = [members(queue) | {"dispatched": queue.dispatch_count_1m} for queue in answer.queues]
    return members(answer) | {"queues": queues}


def _maintenance(answer: MaintenanceAnswer | Extended[MaintenanceAnswer]) -> dict[str, Any]:
    own = bare(answer)
    view = members(answer) | {"enabled": own.maintenance}
    return view if own.enabled_at is UNSET else view | {"started_at": own.enabled_at}


def _with_ojs_version(manifest: Manifest) -> dict[str, Any]:
    return members(manifest) | {"ojs_version": manifest.specversion}


FLEET: Final[Shapes] = {
    WorkerAnswer: {"cli": _with_heartbeat},
    WorkerDetail: {"cli": _with_heartbeat},
    FleetPage: {"cli": _with_heartbeats},
    LimitAnswer: {"cli": _limit_for_cli, "ui": _limit_for_ui},
    LimitPage: {"cli": _limits_for_cli, "ui": _limits_for_ui},
    PoolList: {"ui": _pools_for_ui},
    SchedulingStats: {"ui": _dispatched_for_ui},
    MaintenanceAnswer: {"cli": _maintenance, "ui": _maintenance},
    Manifest: {"sdk": _with_ojs_version},
}

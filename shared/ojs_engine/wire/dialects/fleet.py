"""Workers, pools and the system itself, for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ojs_api.workers import FleetPage, Worker, WorkerDetail
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import Extended, bare, members
from ojs_engine.wire.queues.fair_pools import ListedPool, PoolList
from ojs_engine.wire.queues.scheduling import SchedulingStats
from ojs_engine.wire.system.maintenance import MaintenanceAnswer
from ojs_engine.wire.system.manifest import Manifest


def _with_heartbeat(worker: Worker) -> dict[str, Any]:
    return members(worker) | {"last_heartbeat": worker.last_heartbeat_at}


def _with_heartbeats(page: FleetPage) -> dict[str, Any]:
    return members(page) | {"items": [_with_heartbeat(worker) for worker in page.items]}


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
    Worker: {"cli": _with_heartbeat},
    WorkerDetail: {"cli": _with_heartbeat},
    FleetPage: {"cli": _with_heartbeats},
    PoolList: {"ui": _pools_for_ui},
    SchedulingStats: {"ui": _dispatched_for_ui},
    MaintenanceAnswer: {"cli": _maintenance, "ui": _maintenance},
    Manifest: {"sdk": _with_ojs_version},
}

"""Workers and the system itself, for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ojs_api.workers import FleetPage, Worker, WorkerDetail
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import Extended, bare, members
from ojs_engine.wire.system.maintenance import MaintenanceAnswer
from ojs_engine.wire.system.manifest import Manifest


def _with_heartbeat(worker: Worker) -> dict[str, Any]:
    return members(worker) | {"last_heartbeat": worker.last_heartbeat_at}


def _with_heartbeats(page: FleetPage) -> dict[str, Any]:
    return members(page) | {"items": [_with_heartbeat(worker) for worker in page.items]}


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
    MaintenanceAnswer: {"cli": _maintenance, "ui": _maintenance},
    Manifest: {"sdk": _with_ojs_version},
}

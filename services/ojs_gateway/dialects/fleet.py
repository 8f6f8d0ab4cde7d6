"""Workers and the system itself, for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.workers import FleetPage, Worker, WorkerDetail
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members
from ojs_gateway.answers.manifest import Manifest


def _with_heartbeat(worker: Worker) -> dict[str, Any]:
    return members(worker) | {"last_heartbeat": worker.last_heartbeat_at}


def _with_heartbeats(page: FleetPage) -> dict[str, Any]:
    return members(page) | {"items": [_with_heartbeat(worker) for worker in page.items]}


def _with_ojs_version(manifest: Manifest) -> dict[str, Any]:
    return members(manifest) | {"ojs_version": manifest.specversion}


FLEET: Final[Shapes] = {
    Worker: {"cli": _with_heartbeat},
    WorkerDetail: {"cli": _with_heartbeat},
    FleetPage: {"cli": _with_heartbeats},
    Manifest: {"sdk": _with_ojs_version},
}

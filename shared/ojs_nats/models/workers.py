"""Workers as the server sees them."""

from __future__ import annotations

from ojs_api.workers import DirectedWorkers, FleetSummary, HeldJob, Worker, WorkerDetail, WorkerHandler, WorkerHealth

__all__ = ["DirectedWorkers", "FleetSummary", "HeldJob", "Worker", "WorkerDetail", "WorkerHandler", "WorkerHealth"]

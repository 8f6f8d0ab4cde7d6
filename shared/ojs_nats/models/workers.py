"""Workers as the server sees them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["DirectedWorkers", "FleetSummary", "HeldJob", "Worker", "WorkerDetail", "WorkerHandler", "WorkerHealth"]


class WorkerHandler(msgspec.Struct, frozen=True, kw_only=True):
    """A job type that a worker runs.

    Attributes:
        versions: The versions of the type: `*`, `2.0`, or bounds that all have to hold, such as `>=1.0 <3.0`.
    """

    type: str
    versions: str


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker.

    Attributes:
        state: The state that it reported, or `stale` if its heartbeats have stopped.
        directive: The last directive that was sent to it.
    """

    id: str
    state: str
    directive: str
    active_jobs: int
    queues: list[str]
    last_heartbeat_at: datetime
    hostname: str | None = None
    pid: int | None = None
    concurrency: int | None = None
    started_at: str | None = None
    labels: Any = None
    handlers: list[WorkerHandler] = []
    directive_at: datetime | None = None


class HeldJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a worker holds, in short."""

    id: str
    type: str
    queue: str
    attempt: int
    started_at: datetime | None = None


class WorkerDetail(Worker, frozen=True, kw_only=True):
    """A worker with the jobs that it holds."""

    jobs: list[HeldJob]


class WorkerHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a worker.

    Attributes:
        state: The state that it reported (ojs-graceful-shutdown §10).
        status: `healthy`, `draining` or `stale`.
    """

    worker_id: str
    state: str
    status: str
    active_jobs: int
    last_heartbeat_at: datetime


class FleetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of workers by state. Those that drain count as quiet.

    Attributes:
        active: All that aren't stale.
        active_jobs: The jobs that all workers hold.
    """

    total: int
    running: int
    quiet: int
    terminate: int
    stale: int
    active: int
    active_jobs: int = 0


class DirectedWorkers(msgspec.Struct, frozen=True, kw_only=True):
    """The number of workers that a directive was sent to."""

    directive: str
    workers: int

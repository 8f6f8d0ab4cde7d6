"""A worker, as it describes itself when it registers and beats (ojs-worker-protocol)."""

from __future__ import annotations

from msgspec import Raw, Struct

from ojs_core.base.numbers import Whole
from ojs_core.domain.handlers import Handler
from ojs_core.domain.job import NOTHING


class Worker(Struct, frozen=True, kw_only=True):
    """What a worker says of itself."""

    id: str
    state: str = "running"
    hostname: str | None = None
    pid: Whole | None = None
    queues: tuple[str, ...] = ()
    concurrency: Whole | None = None
    labels: Raw = NOTHING
    started_at: str | None = None
    active_jobs: Whole = 0
    handlers: tuple[Handler, ...] | None = None
    """What it can run, as far as it says so; None for everything."""

"""What a handler is given beside its arguments: the job that it runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

from ojs_nats._operations import REPORT_PROGRESS, SAVE_CHECKPOINT, Request

if TYPE_CHECKING:
    from ojs_nats._jobs import Job
    from ojs_nats._transport import Transport


class JobContext:
    """The running job. What ends in `_sync` is for handlers that are plain functions, which run in a thread."""

    def __init__(self, job: Job, transport: Transport, worker_id: str) -> None:
        self.job = job
        self.log = structlog.get_logger("ojs_nats.job").bind(job_id=job.id, job_type=job.type, attempt=job.attempt)
        """Has the job's id, type and attempt in each line."""
        self.stopping = False
        """Whether the handler is to stop: its job is cancelled, isn't this worker's any more, or has run too long, or the
        worker stops. Async handlers are cancelled; plain functions have to look here."""
        self._transport = transport
        self._holder = {"worker_id": worker_id, "attempt": job.attempt}
        self._loop = asyncio.get_running_loop()

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.job.attempt

    @property
    def parent_results(self) -> Any:
        """In a workflow, what the steps before this one returned."""
        return self.job.parent_results

    @property
    def checkpoint(self) -> Any:
        """The state that an earlier attempt saved last; None if there is none."""
        return self.job.checkpoint.state if self.job.checkpoint else None

    async def progress(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """Tell how far it is, from 0 to 1. At most one report a second is kept. Raises ValueError beyond that range."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, not {fraction}")
        body: dict[str, Any] = {"progress": fraction, **self._holder}
        if message is not None:
            body["message"] = message
        if data is not None:
            body["data"] = data
        await self._transport.send(Request(REPORT_PROGRESS, {"job_id": self.job.id}, body, self.job.queue))

    def progress_sync(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """As `progress`."""
        asyncio.run_coroutine_threadsafe(self.progress(fraction, message, data=data), self._loop).result()

    async def save(self, state: Any) -> None:
        """Keep this for the next attempt, if there has to be one. Raises Conflict when the job isn't this worker's any more."""
        body = {"state": state, **self._holder}
        await self._transport.send(Request(SAVE_CHECKPOINT, {"job_id": self.job.id}, body, self.job.queue))

    def save_sync(self, state: Any) -> None:
        """As `save`."""
        asyncio.run_coroutine_threadsafe(self.save(state), self._loop).result()

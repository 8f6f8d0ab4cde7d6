"""The context of a handler: the job that it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Protocol

from ojs_api.checkpoints import SAVE as SAVE_CHECKPOINT
from ojs_api.progress import REPORT as REPORT_PROGRESS
from ojs_nats._logging import Logger, get_logger
from ojs_nats._operations import Request
from ojs_nats._plain import plain
from ojs_nats._transport import Transport
from ojs_nats.errors import JobCancelled, OjsError
from ojs_nats.jobs import Job
from ojs_nats.worker._timings import WorkerTimings


class Line(Protocol):
    """A way for a running job's reports to the server."""

    async def send(self, request: Request) -> object:
        """Send a request, and wait for the answer."""

    def send_sync(self, request: Request) -> object:
        """Send a request from a thread, and wait for the answer."""


class LoopLine:
    """A way to the server through the transport of the loop that made it, for that loop, for threads, and for loops
    that threads run.

    A report of progress is dropped if the server doesn't take it soon.
    """

    def __init__(self, transport: Transport, timings: WorkerTimings = WorkerTimings()) -> None:
        self._progress_s = timings.progress_s
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    async def send(self, request: Request) -> object:
        """Send a request, and wait for the answer."""
        if asyncio.get_running_loop() is not self._loop:  # a thread's own one, as of `asyncio.run`
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.send(request), self._loop))
        retry_for_s = self._progress_s if request.operation is REPORT_PROGRESS else None
        return await self._transport.send(request, retry_for_s=retry_for_s)

    def send_sync(self, request: Request) -> object:
        """Send a request from a thread, and wait for the answer.

        Raises:
            RuntimeError: It was called in the loop itself, which would wait for itself.
        """
        if _running_loop() is self._loop:
            raise RuntimeError("progress_sync and save_sync are for plain functions: a coroutine awaits progress and save")
        return asyncio.run_coroutine_threadsafe(self.send(request), self._loop).result()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class JobContext:
    """The context of a running job, for a handler's first parameter.

    Methods that end in `_sync` are for plain functions, which run in a thread or a process.

    Attributes:
        job: The job.
        state: The object that the app's `lifespan` yielded. None if there is no lifespan.
        stopping: Whether the handler is to stop.
        began: When the attempt began, in UTC.
        stopped_by: The exception that says why the handler is to stop. None while it isn't.

    Example:
        ```python
        @app.job("report.build")
        async def build(ctx: JobContext, pages: list[str]) -> int:
            for number, page in enumerate(pages):
                await render(page)
                await ctx.progress((number + 1) / len(pages), page)
            return len(pages)
        ```
    """

    __module__ = "ojs_nats.worker"

    def __init__(
        self,
        job: Job,
        line: Line,
        worker_id: str,
        *,
        beat: Callable[[], None] | None = None,
        state: Any = None,
        began: datetime | None = None,
    ) -> None:
        self.job = job
        self.state = state
        """The object that the app's lifespan yielded; None if it has none, and in processes of the pool."""
        self.stopping = False
        """Whether the handler is to stop: its job is cancelled, isn't this worker's any more, or has run too long,
        or the worker stops. Async handlers are cancelled; plain functions have to look here.
        """
        self.stopped_by: Exception | None = None
        """Why it is to stop."""
        self._line = line
        self._holder = {"worker_id": worker_id, "attempt": job.attempt}
        self._beat = beat
        self.began = began or datetime.now(UTC)

    @cached_property
    def log(self) -> Logger:
        """A logger whose lines have the job's id, type and attempt: `ctx.log.info("sent", order=7)`."""
        return get_logger("ojs_nats.job").bind(job_id=self.job.id, job_type=self.job.type, attempt=self.job.attempt)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.job.attempt

    @property
    def last_attempt(self) -> bool:
        """Whether the job isn't tried again if this attempt fails."""
        most = self.job.max_attempts
        return most is not None and self.job.attempt - self.job.uncounted_attempts >= most

    @property
    def queue(self) -> str:
        """The queue that the job came from."""
        return self.job.queue

    @property
    def deadline(self) -> datetime | None:
        """The time at which the job's `timeout` is over, in UTC. None if it has no time-out."""
        return None if self.job.timeout_ms is None else self.began + timedelta(milliseconds=self.job.timeout_ms)

    @property
    def remaining(self) -> float | None:
        """The seconds until `deadline`, at least 0. None if the job has no time-out."""
        return None if self.deadline is None else max((self.deadline - datetime.now(UTC)).total_seconds(), 0.0)

    @property
    def cancelled(self) -> bool:
        """Whether somebody has cancelled the job."""
        return isinstance(self.stopped_by, JobCancelled)

    @property
    def parent_results(self) -> Any:
        """The results of the workflow's earlier steps, a list. None outside of workflows.

        A group is one step, whose result is a list: in `chain(group(a, b), total)` `total` has `[[of_a, of_b]]`. A step
        of a `Dag` has the results of those that it comes after, in their order.
        """
        return self.job.parent_results

    @property
    def parent_results_by_index(self) -> dict[str, Any] | None:
        """The results of the workflow's earlier steps, by the position of each step. None outside of workflows.

        It is also None for a job that comes over NATS and has no room for both forms.
        """
        return self.job.parent_results_by_index

    @property
    def checkpoint(self) -> Any:
        """The state that an earlier attempt saved last. None if none did."""
        return self.job.checkpoint.state if self.job.checkpoint else None

    async def heartbeat(self) -> None:
        """Let other jobs run, and have the worker send a heartbeat at once.

        The worker sends heartbeats by itself. This is for coroutines that compute for long: if the job was cancelled,
        they meet the cancellation here.
        """
        if self._beat is not None:
            self._beat()
        await asyncio.sleep(0)

    async def progress(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """Report how far the handler is. The server keeps at most one report a second.

        A report that the server refuses is a warning in the log.

        Args:
            fraction: From 0 to 1.
            message: A text for people. None keeps it out of the report.
            data: Members for programs, as JSON. None keeps them out of the report.

        Raises:
            ValueError: `fraction` is out of its range, or JSON can't hold a value in `data`.
            TypeError: JSON can't hold an object in `data`.
        """
        request = self._progress(fraction, message, data)
        try:
            await self._line.send(request)
        except OjsError as error:
            self._not_reported(error)

    def progress_sync(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """Report how far the handler is, from a plain function.

        Args:
            fraction: From 0 to 1.
            message: A text for people. None keeps it out of the report.
            data: Members for programs, as JSON. None keeps them out of the report.

        Raises:
            ValueError, TypeError: As `progress`.
        """
        request = self._progress(fraction, message, data)
        try:
            self._line.send_sync(request)
        except OjsError as error:
            self._not_reported(error)

    async def save(self, state: Any) -> None:
        """Save a state that the next attempt, if there is one, reads as `checkpoint`.

        Args:
            state: Anything that JSON can hold. It replaces what was saved before.

        Raises:
            ConflictError: The job isn't this worker's any more.
            ValueError: JSON can't hold a number or text in it.
            TypeError: JSON can't hold an object in it.
        """
        await self._line.send(self._checkpoint(state))

    def save_sync(self, state: Any) -> None:
        """Save a state that the next attempt reads as `checkpoint`, from a plain function.

        Args:
            state: Anything that JSON can hold. It replaces what was saved before.

        Raises:
            ConflictError, ValueError, TypeError: As `save`.
        """
        self._line.send_sync(self._checkpoint(state))

    def _not_reported(self, error: OjsError) -> None:
        self.log.warning("progress could not be reported", reason=str(error))

    def _progress(self, fraction: float, message: str | None, data: dict[str, Any] | None) -> Request:
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, not {fraction}")
        body: dict[str, Any] = {"progress": fraction, **self._holder}
        if message is not None:
            body["message"] = message
        if data is not None:
            body["data"] = plain(data, "data")
        return Request(REPORT_PROGRESS, {"job_id": self.job.id}, body, self.job.queue)

    def _checkpoint(self, state: Any) -> Request:
        return Request(
            SAVE_CHECKPOINT, {"job_id": self.job.id}, {"state": plain(state, "state"), **self._holder}, self.job.queue
        )

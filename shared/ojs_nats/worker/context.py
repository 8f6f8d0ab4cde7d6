"""What a handler is given beside its arguments: the job that it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from ojs_nats._logging import Logger, get_logger
from ojs_nats._operations import REPORT_PROGRESS, SAVE_CHECKPOINT, Request
from ojs_nats._plain import plain
from ojs_nats.errors import JobCancelled, OjsError

if TYPE_CHECKING:
    from ojs_nats._transport import Transport
    from ojs_nats.jobs import Job


_PROGRESS_S: Final = 2.0
"""For how long a report of progress is tried: the next one says more."""


class Line(Protocol):
    """What a running job tells the server goes through here."""

    async def send(self, request: Request) -> object: ...

    def send_sync(self, request: Request) -> object:
        """From a thread; it waits for the answer."""


class LoopLine:
    """The way through the transport of the loop that made it, from there, from threads, and from loops that threads
    run. A report of progress that isn't taken is worth no waiting.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    async def send(self, request: Request) -> object:
        if asyncio.get_running_loop() is not self._loop:  # a thread's own one, as of `asyncio.run`
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.send(request), self._loop))
        retry_for_s = _PROGRESS_S if request.operation is REPORT_PROGRESS else None
        return await self._transport.send(request, retry_for_s=retry_for_s)

    def send_sync(self, request: Request) -> object:
        """Raises RuntimeError in the loop itself, which would wait for itself."""
        if _running_loop() is self._loop:
            raise RuntimeError("progress_sync and save_sync are for plain functions: a coroutine awaits progress and save")
        return asyncio.run_coroutine_threadsafe(self.send(request), self._loop).result()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class JobContext:
    """The running job. What ends in `_sync` is for handlers that are plain functions, which run in a thread or a
    process.
    """

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
        """What the app's lifespan gave the worker; None if it has none, and in processes of the pool."""
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
        """Has the job's id, type and attempt in each line."""
        return get_logger("ojs_nats.job").bind(job_id=self.job.id, job_type=self.job.type, attempt=self.job.attempt)

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self.job.attempt

    @property
    def last_attempt(self) -> bool:
        """Whether the job isn't tried again when this attempt fails. Attempts that aren't counted have numbers, too:
        those that a worker handed back.
        """
        most = self.job.max_attempts
        return most is not None and self.job.attempt - self.job.uncounted_attempts >= most

    @property
    def queue(self) -> str:
        return self.job.queue

    @property
    def deadline(self) -> datetime | None:
        """When the job's time is over, in UTC; None if it has no time-out."""
        return None if self.job.timeout_ms is None else self.began + timedelta(milliseconds=self.job.timeout_ms)

    @property
    def remaining(self) -> float | None:
        """How many seconds are left until then: none is 0."""
        return None if self.deadline is None else max((self.deadline - datetime.now(UTC)).total_seconds(), 0.0)

    @property
    def cancelled(self) -> bool:
        """Whether somebody has cancelled the job."""
        return isinstance(self.stopped_by, JobCancelled)

    @property
    def parent_results(self) -> Any:
        """In a workflow, what the steps before this one returned."""
        return self.job.parent_results

    @property
    def parent_results_by_index(self) -> dict[str, Any] | None:
        """Return the same by the index of each step, members of groups and DAGs likewise; None outside of workflows.

        It is None, too, for a job that comes over NATS and has no room for both.
        """
        return self.job.parent_results_by_index

    @property
    def checkpoint(self) -> Any:
        """The state that an earlier attempt saved last; None if there is none."""
        return self.job.checkpoint.state if self.job.checkpoint else None

    async def heartbeat(self) -> None:
        """Let other jobs run, and have the worker tell the server at once that it lives; what it answers comes to
        the handler.

        The worker does the latter by itself every few seconds: this is for coroutines that compute for long.
        """
        if self._beat is not None:
            self._beat()
        await asyncio.sleep(0)

    async def progress(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """Report how far it is, from 0 to 1. At most one report a second is kept.

        A report that the server doesn't take is a warning in the log. Raises ValueError beyond that range and for
        data that JSON can't hold, TypeError for objects among them.
        """
        request = self._progress(fraction, message, data)
        try:
            await self._line.send(request)
        except OjsError as error:
            self._not_reported(error)

    def progress_sync(self, fraction: float, message: str | None = None, *, data: dict[str, Any] | None = None) -> None:
        """As `progress`."""
        request = self._progress(fraction, message, data)
        try:
            self._line.send_sync(request)
        except OjsError as error:
            self._not_reported(error)

    async def save(self, state: Any) -> None:
        """Keep this for the next attempt, if there has to be one. Raises ConflictError when the job isn't this worker's
        any more, and ValueError or TypeError for what JSON can't hold.
        """
        await self._line.send(self._checkpoint(state))

    def save_sync(self, state: Any) -> None:
        """As `save`."""
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

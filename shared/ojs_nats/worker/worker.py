"""A worker: fetches jobs, runs their handlers, and reports how they ended."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog
import uuid6

from ojs_nats._durations import Duration, milliseconds
from ojs_nats._errors import OjsError, Refused
from ojs_nats._jobs import Job
from ojs_nats._transport import HttpTransport
from ojs_nats.worker import outcome
from ojs_nats.worker.context import JobContext
from ojs_nats.worker.heartbeats import Beat, Heartbeats
from ojs_nats.worker.lifecycle import Trigger, WorkerState, after

if TYPE_CHECKING:
    from ojs_nats._app import App

log = structlog.get_logger(__name__)

_WAIT_MS: Final = 2_000
"""How long the server keeps a fetch that finds nothing, and so an idle worker that is to stop: a fetch isn't broken off,
since the jobs of an answer that nobody read would stay claimed until their leases end."""
_PAUSE_S: Final = 1.0
_HAND_BACK_S: Final = 3.0
_NOT_OURS: Final = frozenset({404, 409})
"""Answers by which an attempt is somebody else's, or has been ended."""
_REPORT_S: Final = 60.0
"""For how long a job's end is reported while nobody answers; its lease may end before."""


class _Fetched(msgspec.Struct):
    jobs: list[msgspec.Raw]


class _Claimed(msgspec.Struct):
    """What has to be known of a job to report it."""

    id: str
    type: str
    attempt: int


class _Attempt:
    """A job that runs. `why` is for which reason its handler was told to stop, if it was; `lost` that its end is nobody's
    business any more, `over` that it has been reported. `thread` goes on when `handler`, which waits for it, is cancelled.
    """

    def __init__(self, context: JobContext) -> None:
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.handler: asyncio.Future[Any] | None = None
        self.thread: asyncio.Future[Any] | None = None
        self.why: Exception | None = None
        self.lost = False
        self.over = False

    def stop(self, why: Exception) -> None:
        self.why = self.why or why
        self.context.stopping = True
        if self.handler is not None:
            self.handler.cancel()


class Worker:
    """Runs the jobs of an app, up to `concurrency` at a time: async handlers in this loop, plain functions in threads.

    `queues` are looked at in order, and default to those that the app's definitions name. `grace` is how long jobs may go on
    once it is to stop; then their handlers are cancelled and they are handed back. `every` is the pause between heartbeats.
    """

    def __init__(
        self,
        app: App,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 10,
        grace: Duration = 25.0,
        every: Duration = 5.0,
        worker_id: str | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"a worker runs at least one job at a time, not {concurrency}")
        if not app.definitions:
            raise ValueError("the app has no jobs: decorate a function with @app.job(…), and import its module")
        named = (definition.options.get("queue", "default") for definition in app.definitions.values())
        self.id = worker_id or f"worker_{uuid6.uuid7()}"
        self.state = WorkerState.RUNNING
        self.queues = list(queues) or list(dict.fromkeys(named))
        self._app = app
        self._concurrency = concurrency
        self._grace_s = milliseconds(grace) / 1_000
        self._every_s = milliseconds(every) / 1_000
        self._started_at = datetime.now(UTC).isoformat()
        self._running: set[_Attempt] = set()
        self._changed = asyncio.Event()
        self._heartbeats: Heartbeats[_Attempt] | None = None
        self._transport = HttpTransport(app.url)
        self._threads = ThreadPoolExecutor(concurrency, "ojs-nats-job")

    @property
    def active(self) -> int:
        """How many jobs it runs now."""
        return len(self._running)

    def notify(self, trigger: Trigger) -> None:
        """Tell it of a signal; in its loop."""
        if trigger is Trigger.SIGINT:
            self._grace_s = 0.0
        self._enter(after(self.state, trigger))

    async def run(self) -> None:
        """Until it is told to terminate, and its jobs have ended or been handed back."""
        await self._register()
        self._heartbeats = Heartbeats(self._app.url, self._every_s, self._described, self._heard)
        self._heartbeats.start()
        log.info("the worker runs", worker_id=self.id, queues=self.queues, concurrency=self._concurrency, url=self._app.url)
        try:
            await self._fetch_until_terminated()
            await self._finish()
        finally:
            await self._heartbeats.stop()
            await self._deregister()
            await self._transport.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
        log.info("the worker has stopped", worker_id=self.id)

    # States

    def _enter(self, state: WorkerState) -> None:
        if state is self.state:
            return
        log.info("the worker changes its state", before=str(self.state), after=str(state), active=self.active)
        self.state = state
        self._changed.set()
        if self._heartbeats is not None:
            self._heartbeats.now()

    def _heard(self, beat: Beat[_Attempt]) -> None:
        if beat.state == "quiet":
            self._enter(after(self.state, Trigger.TOLD_QUIET))
        elif beat.state == "terminate":
            self._enter(after(self.state, Trigger.TOLD_TERMINATE))
        for attempts, why in ((beat.cancelled, "the job was cancelled"), (beat.lost, "the job isn't this worker's any more")):
            for attempt in attempts:
                if not (attempt.over or attempt.lost):
                    attempt.lost = True
                    attempt.context.log.warning("the handler is told to stop", reason=why)
                    attempt.stop(OjsError(why))

    def _described(self) -> tuple[dict[str, Any], dict[str, _Attempt]]:
        # Called in another thread, so it goes through a copy, which is made in one step.
        named = {attempt.context.job.id: attempt for attempt in list(self._running) if not attempt.over}
        return {**self._identity(), "state": str(self.state)}, named

    def _identity(self) -> dict[str, Any]:
        return {
            "worker_id": self.id,
            "hostname": socket.gethostname(),
            "pid": os.getpid(),
            "queues": self.queues,
            "concurrency": self._concurrency,
            "started_at": self._started_at,
        }

    async def _register(self) -> None:
        # Jobs of other types stay for workers that know them, as those of a newer release (ojs-job-versioning §8.1).
        handlers = [{"type": job_type} for job_type in self._app.definitions]
        await self._transport.request("POST", "/workers/register", {**self._identity(), "handlers": handlers})

    async def _deregister(self) -> None:
        try:
            body = {"worker_id": self.id, "reason": "shutdown"}
            await self._transport.request("POST", "/workers/deregister", body, answer_s=2.0, patience_s=0.0)
        except OjsError as error:
            log.warning("the worker could not say goodbye", reason=str(error))

    # Jobs

    async def _fetch_until_terminated(self) -> None:
        while self.state is not WorkerState.TERMINATE:
            self._changed.clear()
            if self.state is WorkerState.QUIET or self.active >= self._concurrency:
                await self._changed.wait()
                continue
            for job in await self._fetch(self._concurrency - self.active):
                self._begin(job)

    async def _fetch(self, count: int) -> list[Job]:
        body = {"queues": self.queues, "worker_id": self.id, "count": count, "wait_ms": _WAIT_MS}
        try:
            answer = await self._transport.request(
                "POST", "/workers/fetch", body, answer_s=_WAIT_MS / 1_000 + 10, patience_s=0.0
            )
        except OjsError as error:
            log.warning("a fetch failed", reason=str(error))
            await asyncio.sleep(_PAUSE_S)
            return []
        jobs: list[Job] = []
        for raw in msgspec.json.decode(answer, type=_Fetched).jobs:
            try:
                jobs.append(msgspec.json.decode(raw, type=Job))
            except msgspec.ValidationError as error:
                claimed = msgspec.json.decode(raw, type=_Claimed)
                unread = Job(claimed.id, claimed.type, "active", attempt=claimed.attempt)
                await self._report(unread, outcome.raised(error))
        return jobs

    def _begin(self, job: Job) -> None:
        attempt = _Attempt(JobContext(job, self._transport, self.id))
        self._running.add(attempt)
        if self.state is WorkerState.TERMINATE:  # it came as the answer to a fetch that was under way
            attempt.stop(_stopped())
        attempt.task = asyncio.create_task(self._attempt(job, attempt))

    async def _attempt(self, job: Job, attempt: _Attempt) -> None:
        try:
            report = await self._outcome(job, attempt)
            if not attempt.lost:
                await self._report(job, report)
        finally:
            attempt.over = True
            if attempt.thread is None or attempt.thread.done():
                self._forget(attempt)
            else:  # its place is taken for as long as its thread is
                attempt.thread.add_done_callback(lambda _: self._forget(attempt))

    def _forget(self, attempt: _Attempt) -> None:
        self._running.discard(attempt)
        self._changed.set()

    async def _outcome(self, job: Job, attempt: _Attempt) -> outcome.Report:
        definition = self._app.definitions.get(job.type)
        if definition is None:
            known = ", ".join(sorted(self._app.definitions))
            return outcome.raised(LookupError(f"this worker has no handler for {job.type}, only for {known}"))
        try:
            given = definition.parameters.converted(job.args)
        except (TypeError, msgspec.ValidationError) as error:
            return outcome.unfit(error)
        if definition.parameters.takes_context:
            given = [attempt.context, *given]
        limit = asyncio.timeout(None if job.timeout_ms is None else job.timeout_ms / 1_000)
        try:
            async with limit:
                return outcome.returned(await self._run(definition.handler, given, attempt))
        except TimeoutError as error:
            if limit.expired():
                attempt.context.stopping = True
                return outcome.raised(outcome.TimedOut(f"the job ran for longer than its time-out of {job.timeout_ms} ms"))
            return self._failed(attempt, error)
        except asyncio.CancelledError as error:
            return self._failed(attempt, attempt.why or error)
        except Exception as error:  # noqa: BLE001  # whatever a handler raises is its job's error
            return self._failed(attempt, error)

    def _failed(self, attempt: _Attempt, error: BaseException) -> outcome.Report:
        if not attempt.lost:
            attempt.context.log.warning("the job failed", error=type(error).__name__)
        return outcome.raised(error)

    async def _run(self, handler: Any, given: list[Any], attempt: _Attempt) -> Any:
        """Raises what the handler does, and CancelledError when it has been told to stop."""
        if attempt.why is not None:
            raise attempt.why
        if inspect.iscoroutinefunction(handler):
            attempt.handler = asyncio.ensure_future(_without_exit(handler, given))
        else:
            call = functools.partial(contextvars.copy_context().run, _in_thread, handler, given)
            attempt.thread = asyncio.get_running_loop().run_in_executor(self._threads, call)
            attempt.handler = asyncio.shield(attempt.thread)
        return await attempt.handler

    async def _report(self, job: Job, report: outcome.Report) -> None:
        body = {"job_id": job.id, "worker_id": self.id, "attempt": job.attempt, **report.members}
        try:
            await self._transport.request("POST", f"/workers/{report.operation}", body, patience_s=_REPORT_S)
        except Refused as error:
            log.warning("how a job ended was refused", job_id=job.id, code=error.code, reason=str(error))
            if report.operation == "ack" and error.status not in _NOT_OURS:  # its result is too large, for one
                await self._report(job, outcome.raised(error))
        except OjsError as error:
            log.error("how a job ended could not be reported: it will run again", job_id=job.id, reason=str(error))

    async def _finish(self) -> None:
        """Let jobs end within the grace period; those that don't are stopped and handed back."""
        if await self._ended_within(self._grace_s):
            return
        log.warning("the grace period is over: jobs are handed back", active=self.active)
        for attempt in list(self._running):
            attempt.stop(_stopped())
        await self._ended_within(_HAND_BACK_S)
        threads = [attempt.thread for attempt in self._running if attempt.thread is not None]
        if threads:  # those that look whether they are to stop can clean up
            await asyncio.wait(threads, timeout=_PAUSE_S)

    async def _ended_within(self, seconds: float) -> bool:
        """Whether all jobs have been reported by then."""
        tasks = [attempt.task for attempt in self._running if attempt.task is not None]
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        return not pending


def _stopped() -> outcome.ShutDown:
    return outcome.ShutDown("the worker stopped before the job had ended")


async def _without_exit(handler: Any, given: list[Any]) -> Any:
    """A handler that exits fails; it doesn't end the worker."""
    try:
        return await handler(*given)
    except SystemExit as error:
        raise RuntimeError(f"the handler called exit({error.code})") from error


def _in_thread(handler: Any, given: list[Any]) -> Any:
    try:
        return handler(*given)
    except SystemExit as error:
        raise RuntimeError(f"the handler called exit({error.code})") from error

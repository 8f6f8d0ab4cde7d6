"""A worker: fetches jobs, runs their handlers, and reports how they ended."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from ojs_api.work import DEREGISTER, REGISTER
from ojs_nats import _deprecated
from ojs_nats._connect import transport
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._ids import new_id
from ojs_nats._logging import get_logger
from ojs_nats._loops import running_loop
from ojs_nats._names import MOST_QUEUES, check_worked_types, within, worked_queues
from ojs_nats._operations import Request
from ojs_nats._transport import Transport
from ojs_nats.app import App
from ojs_nats.errors import JobCancelled, OjsError
from ojs_nats.jobs import Job
from ojs_nats.options import DEFAULT_QUEUE
from ojs_nats.worker import _outcome
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._context import JobContext, LoopLine
from ojs_nats.worker._ending import Ending
from ojs_nats.worker._execution import Execution
from ojs_nats.worker._fetching import Fetching
from ojs_nats.worker._heartbeats import Beat, Heartbeats, Signs
from ojs_nats.worker._jobs_log import JobsLog
from ojs_nats.worker._lifecycle import Trigger, Vitals, WorkerState, after
from ojs_nats.worker._marks import Marks
from ojs_nats.worker._places import Load, Places
from ojs_nats.worker._reports import Reports, Success
from ojs_nats.worker._timings import WorkerTimings

if TYPE_CHECKING:
    from ojs_nats.worker._health import Health

log = get_logger("ojs_nats.worker.worker")

_DIRECTIVES: Final = {
    "running": Trigger.TOLD_RUNNING,
    "quiet": Trigger.TOLD_QUIET,
    "terminate": Trigger.TOLD_TERMINATE,
}


class _Registered(msgspec.Struct):
    worker_id: str
    mark: str | None = None


class Worker:
    """A worker: it fetches an app's jobs and runs them, async handlers in the running event loop, plain functions in
    threads.

    Durations are seconds, a text such as `"25s"`, or a `timedelta`.

    Args:
        app: The app whose jobs it runs.
        queues: The queues that it fetches from, the first one first. By default those that the app's definitions name.
        concurrency: How many jobs run at a time, at least 1.
        grace_period: How long jobs may go on once the worker is to stop. Then their handlers are cancelled and the jobs
            are handed back.
        heartbeat_interval: The time between heartbeats, from a millisecond to an hour.
        fetch_timeout: How long a fetch waits for a job, up to 30 seconds. An idle worker takes as long to stop.
        processes: How many jobs run in processes at a time. None means as many as there are CPUs.
        health: The host and port that serve /healthz, /readyz and /metrics. None serves nothing.
        log_payloads: Whether the log has the messages of handlers' errors, which may hold arguments.
        verbose: Whether the log has tracebacks, and a line when a job begins and when it ends.
        worker_id: The worker's name at the server. None makes a new one.
        timings: Times within the worker, for tests.

    Attributes:
        id: The worker's name at the server.
        queues: The queues that it fetches from.
        state: `running`, `quiet` (it fetches no more jobs) or `terminate` (it ends).

    Raises:
        ValueError: An argument is out of its range, or the app has no jobs.
        OSError: Another process has the port of `health`. `run` raises it.

    Example:
        ```python
        worker = Worker(app, concurrency=20)
        running = asyncio.create_task(worker.run())
        ...
        await worker.stop()
        ```
    """

    __module__ = "ojs_nats.worker"

    def __init__(
        self,
        app: App,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 10,
        grace_period: Duration = 25.0,
        heartbeat_interval: Duration = 5.0,
        fetch_timeout: Duration = 2.0,
        processes: int | None = None,
        health: tuple[str, int] | None = None,
        log_payloads: bool = True,
        verbose: bool = False,
        worker_id: str | None = None,
        timings: WorkerTimings = WorkerTimings(),
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"a worker runs at least one job at a time, not {concurrency}")
        if processes is not None and processes < 1:
            raise ValueError(f"a worker's pool has at least one process, not {processes}")
        if not app.definitions:
            raise ValueError("the app has no jobs: decorate a function with @app.job(…), and import its module")
        named = (definition.defaults.get("queue", DEFAULT_QUEUE) for definition in app.definitions.values())
        self.id = worker_id or f"worker_{new_id()}"
        self.state = WorkerState.RUNNING
        self.queues = worked_queues(queues or list(named))
        check_worked_types(app.definitions)
        within(milliseconds(fetch_timeout) / 1_000, 0.0, 30.0, "fetch_timeout: the seconds of an idle worker's fetch")
        within(milliseconds(heartbeat_interval) / 1_000, 0.001, 3_600.0, "heartbeat_interval: the seconds between heartbeats")
        self._app = app
        self._concurrency = concurrency
        self._grace_s = milliseconds(grace_period) / 1_000
        self._every_s = milliseconds(heartbeat_interval) / 1_000
        self._timings = timings
        self._started_at = datetime.now(UTC).isoformat()
        self._held: set[Attempt] = set()
        self._fetches: set[asyncio.Task[None]] = set()
        self._asked = 0
        """How many jobs these ask for beyond the acks that they bring."""
        self._plenty = False
        """Whether the last fetch brought as many jobs as it could have."""
        self._places = Places(concurrency)
        self._changed = asyncio.Event()
        self._state: Any = None
        self._running: asyncio.Task[None] | None = None
        self._serving = False
        self._served = False
        self._end = Ending(timings.closing_s)
        self._heartbeats: Heartbeats[Attempt] | None = None
        self._marks = Marks()
        self._transport = self._connected(app._inside.retry_for_s)
        self._execution = Execution(
            app,
            concurrency,
            processes or os.cpu_count() or 1,
            self.id,
            interrupt=self._interrupted,
            jobs_log=JobsLog(messages=log_payloads, verbose=verbose),
            timings=timings,
        )
        self._queue = self.queues[0] if len(self.queues) == 1 else None
        """The queue that all requests are about; None if it works on several."""
        self._reports = Reports(self._transport, self.id, self._queue, timings, self._carried)
        self._health = self._told_at(*health) if health is not None else None
        self._fetching = Fetching(
            self._transport,
            self.id,
            self.queues,
            self._queue,
            milliseconds(fetch_timeout),
            reports=self._reports,
            register=self._register,
            timings=timings,
        )

    @property
    def active(self) -> int:
        """The number of handlers that run now."""
        return self._places.running

    def notify(self, trigger: Trigger) -> None:
        """Pass a signal on to the worker. Call it in the worker's event loop.

        Args:
            trigger: The signal. SIGINT ends the grace period, and a second one ends the worker at once.
        """
        self._enter(after(self.state, trigger))
        if trigger is Trigger.SIGINT:
            if self._served and self._end.hurried and self._running is not None:
                self._running.cancel()  # what cleans up behind its jobs has no deadline
            self._end.hurry(asyncio.get_running_loop().time())
            self._changed.set()

    async def stop(self, grace_period: Duration | None = None) -> None:
        """Fetch no more jobs, let those that run end within the grace period, hand back the rest, and return when the
        worker has ended.

        It may be called before `run`, which then ends at once, and more than once.

        Args:
            grace_period: How long jobs may go on, in seconds or as `"25s"`. None means the worker's own grace period.
        """
        if grace_period is not None:
            self._grace_s = milliseconds(grace_period) / 1_000
        self.notify(Trigger.SIGTERM)
        if self._running is not None:
            await asyncio.wait({self._running})

    async def run(self) -> None:
        """Run until the worker is stopped, and its jobs have ended or been handed back.

        When this call is cancelled, jobs are handed back without a grace period.

        Raises:
            UnavailableError: No server took the worker's registration.
            RefusedError: The server refused the registration.
            RuntimeError: The worker has been run before.
        """
        if self._running is not None:
            raise RuntimeError("a worker runs once: make another one")
        self._running = running = running_loop().create_task(self._run())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and not task.cancelling():
                return  # it was stopped before it had begun
            self._break_off()
            await asyncio.wait({running})
            raise

    async def _run(self) -> None:
        try:
            with self._health or nullcontext():
                if self.state is not WorkerState.TERMINATE:
                    async with self._lifespan() as self._state:
                        await self._serve()
        finally:
            await self._transport.close()

    async def _serve(self) -> None:
        await self._register_first()
        beside = nullcontext if self._health is None else self._health.serving
        beats = Heartbeats(
            self._connect_for_heartbeats, self._described, self._heard, self._marks.marked, beside, self._timings
        )
        self._heartbeats = beats
        beats.start()
        self._serving = True
        told = {"worker_id": self.id, "queues": self.queues, "concurrency": self._concurrency, "url": self._transport.shown}
        log.info("the worker runs", **told)
        if self._health is not None:
            log.info("the worker tells how it is", port=self._health.port)
        try:
            await self._fetch_until_terminated()
        except asyncio.CancelledError:  # the loop ends with all that is in it
            self._break_off()
            raise
        finally:
            await self._finish()
            self._served = True
        log.info("the worker has stopped", worker_id=self.id)

    def _told_at(self, host: str, port: int) -> Health:
        from ojs_nats.worker._health import Health  # noqa: PLC0415  # it needs more than a worker without it

        return Health(host, port, self._app.execution, self._vitals)

    def _vitals(self) -> Vitals:
        assert self._heartbeats is not None
        beats, fetches = self._heartbeats, self._fetching.answered
        return Vitals(self.state, self.active, self._concurrency, beats.loop_turns, fetches, beats.silent_s, self._every_s)

    def _lifespan(self) -> AbstractAsyncContextManager[Any]:
        made = self._app._inside.lifespan
        return nullcontext() if made is None else asynccontextmanager(made)()

    # States

    def _enter(self, state: WorkerState) -> None:
        if state is self.state:
            return
        log.info("the worker changes its state", before=str(self.state), after=str(state), active=self.active)
        self.state = state
        if state is WorkerState.TERMINATE:
            self._end.begin(asyncio.get_running_loop().time(), self._grace_s)
            if self._running is not None and not self._serving:
                self._running.cancel()  # nobody may answer the registration
        self._changed.set()
        if self._heartbeats is not None:
            self._heartbeats.now()

    def _break_off(self) -> None:
        """End the grace period, once: a loop that ends cancels both who runs the worker and the worker."""
        if not self._end.hurried:
            self.notify(Trigger.SIGINT)

    def _interrupted(self) -> None:
        self.notify(Trigger.SIGINT)

    def _heard(self, beat: Beat[Attempt]) -> None:
        directive = _DIRECTIVES.get(beat.directive or "")
        if directive is not None:
            self._enter(after(self.state, directive))
        cancelled, lost = JobCancelled("the job was cancelled"), OjsError("the job isn't this worker's any more")
        for attempts, why in ((beat.cancelled, cancelled), (beat.lost, lost)):
            for attempt in attempts:
                if not (attempt.over or attempt.lost):
                    attempt.lost = True
                    attempt.context.log.warning("the handler is told to stop", reason=str(why))
                    attempt.stop(why)

    def _connect_for_heartbeats(self) -> Transport:
        return self._connected(0.0)

    def _connected(self, retry_for_s: float) -> Transport:
        own = self._app._inside
        return transport(self._app.url, retry_for_s=retry_for_s, headers=own.headers, tls=own.tls)

    def _described(self) -> Signs[Attempt]:
        # Called in another thread, so it goes through a copy, which is made in one step, behind what it is said to hold.
        complete = self._marks.complete()
        named = {attempt.job.id: attempt for attempt in list(self._held) if not attempt.over}
        again_s = min(
            self._every_s, *(self._renewal_s(attempt.job) for attempt in named.values()), self._timings.beat_longest_s
        )
        return Signs(str(self.state), self._identity(), named, complete, again_s, self._queue)

    def _identity(self) -> dict[str, Any]:
        return {
            "worker_id": self.id,
            "hostname": socket.gethostname(),
            "pid": os.getpid(),
            "queues": self.queues[:MOST_QUEUES],
            "concurrency": self._concurrency,
            "started_at": self._started_at,
        }

    def _renewal_s(self, job: Job) -> float:
        """How often a job's lease has to be renewed, so that one that gets lost costs nothing."""
        lease_ms, waits = job.visibility_timeout_ms, self._timings
        return waits.beat_longest_s if lease_ms is None else max(lease_ms / 3_000, waits.beat_shortest_s)

    async def _register_first(self) -> None:
        """Register. What makes a connection may swallow a cancellation (`asyncio.wait_for` does), so it is repeated."""
        registering = asyncio.create_task(self._register())
        try:
            await asyncio.wait({registering})
        finally:
            while not registering.done():
                registering.cancel()
                await asyncio.wait({registering}, timeout=self._timings.cancelled_s)
        await registering

    async def _register(self) -> None:
        # Jobs of other types stay for workers that know them, as those of a newer release (ojs-job-versioning §8.1).
        handlers = [{"type": job_type} for job_type in self._app.definitions]
        body = {**self._identity(), "handlers": handlers}
        answer = await self._transport.send(Request(REGISTER, body=body, queue=self._queue))
        self._marks.registered(msgspec.json.decode(answer, type=_Registered).mark)

    async def _deregister(self) -> None:
        body = {"worker_id": self.id, "reason": "shutdown", "pid": os.getpid(), "started_at": self._started_at}
        try:
            request = Request(DEREGISTER, body=body, queue=self._queue, answer_s=self._timings.sign_off_s)
            await self._transport.send(request, retry_for_s=0.0)
        except OjsError as error:
            log.warning("the worker could not say goodbye", reason=str(error))

    # Jobs

    async def _fetch_until_terminated(self) -> None:
        """Ask for as many jobs as there are places. While there are plenty, successes go with the next fetch, and some
        jobs are on their way while others run; an idle worker waits in one request.
        """
        while self.state is not WorkerState.TERMINATE:
            self._changed.clear()
            done = self._reports.carriable if self._carried() else 0
            load = Load(len(self._held), done, len(self._fetches), self._asked, self._plenty)
            count = 0 if self.state is WorkerState.QUIET else self._places.wanted(load)
            if count:
                carried = self._reports.take(min(done, count))
                self._asked += count - len(carried)
                self._fetches.add(asyncio.create_task(self._fetch(count, carried)))
            else:
                await self._changed.wait()
        self._reports.flush()

    def _carried(self) -> bool:
        """Return whether successes go with the next fetch."""
        return self._plenty and self.state is WorkerState.RUNNING

    async def _fetch(self, count: int, carried: Sequence[Success]) -> None:
        """Take up to `count` jobs. Raises nothing."""
        began = asyncio.get_running_loop().time()
        number = self._marks.sent()
        all_found = False
        try:
            fetched = await self._fetching.fetch(count, carried, wait=not self._plenty)
            all_found = fetched.all_found
            if self._health is not None:
                self._health.fetched(asyncio.get_running_loop().time() - began, len(fetched.jobs))
            for job in fetched.jobs:
                self._take(job)
            for job, error in fetched.unreadable:
                self._end_unread(job, error)
        finally:
            self._asked -= count - len(carried)
            self._marks.ended(number)
            self._plenty = all_found
            if not all_found:
                self._reports.flush()
            self._fetches.discard(cast("asyncio.Task[None]", asyncio.current_task()))
            self._changed.set()

    def _take(self, job: Job) -> None:
        attempt = self._attempt_of(job)
        # After the end, or while it is quiet, it comes as the answer to a fetch that was under way.
        if self.state is WorkerState.RUNNING and self._places.take():
            attempt.task = asyncio.create_task(self._attempt(attempt))
        else:
            self._hand_back(attempt)

    def _attempt_of(self, job: Job) -> Attempt:
        line = LoopLine(self._transport, self._timings)
        beat = None if self._heartbeats is None else self._heartbeats.now
        attempt = Attempt(JobContext(job, line, self.id, beat=beat, state=self._state), line, self._timings)
        self._held.add(attempt)
        if self._heartbeats is not None:
            self._heartbeats.within(self._renewal_s(job))
        return attempt

    def _hand_back(self, attempt: Attempt) -> None:
        """Hand back a job that hasn't begun."""
        reason = "the worker is quiet" if self.state is WorkerState.QUIET else "the worker has no place free"
        why = _stopped() if self.state is WorkerState.TERMINATE else _outcome.NoPlace(reason)
        attempt.stop(why)
        attempt.task = asyncio.create_task(self._report(attempt, _outcome.raised(why)))

    def _end_unread(self, job: Job, error: Exception) -> None:
        """Fail a job that can't be read."""
        attempt = self._attempt_of(job)
        attempt.context.log.error("the job can't be read", reason=str(error))
        attempt.task = asyncio.create_task(self._report(attempt, _outcome.raised(error)))

    async def _attempt(self, attempt: Attempt) -> None:
        try:
            report = await self._execution.outcome(attempt.job, attempt)
        finally:
            unfinished = attempt.unfinished
            if unfinished is None:
                self._vacate()
            else:  # its place is taken for as long as its thread is
                unfinished.add_done_callback(self._vacate)
        await self._report(attempt, report)

    async def _report(self, attempt: Attempt, report: _outcome.Report) -> None:
        try:
            if not attempt.lost:
                await self._reports.send(attempt.job, report)
        finally:
            attempt.over = True
            unfinished = attempt.unfinished
            if unfinished is None:
                self._held.discard(attempt)
            else:
                unfinished.add_done_callback(lambda _: self._held.discard(attempt))
            self._changed.set()

    def _vacate(self, _: object = None) -> None:
        self._places.vacate()
        self._changed.set()

    async def _finish(self) -> None:
        """Let jobs end within the grace period, hand back those that don't, and sign off. All of it has one
        deadline.
        """
        if not await self._ended_by(lambda: self._end.jobs_by) and self._unreported():
            log.warning("the grace period is over: jobs are handed back", active=self.active)
        try:
            async with self._end.bounded():
                await self._close()
        except TimeoutError:
            log.warning("the worker had no time left to end in order")
        finally:
            for fetch in self._fetches:
                fetch.cancel()
            assert self._heartbeats is not None
            self._heartbeats.end()
            self._reports.close()
            await self._execution.close()

    async def _close(self) -> None:
        for attempt in list(self._held):
            if not attempt.over:
                attempt.stop(_stopped())
        until = asyncio.get_running_loop().time() + self._timings.hand_back_s
        if not await self._ended_by(lambda: until) and self._unreported():
            log.error("jobs could not be reported: the server takes them back", count=self._unreported())
        rest = [attempt.unfinished for attempt in self._held if attempt.unfinished is not None]
        if rest:  # threads that look whether they are to stop can clean up
            await asyncio.wait(rest, timeout=self._timings.farewell_s)
        assert self._heartbeats is not None
        await self._heartbeats.stop()
        await self._deregister()

    def _unreported(self) -> int:
        return sum(not attempt.over for attempt in self._held)

    async def _ended_by(self, until: Callable[[], float]) -> bool:
        """Return whether all fetches have been answered and all jobs reported by then; `until` may change meanwhile."""
        while self._fetches or self._unreported():
            self._changed.clear()
            try:
                async with asyncio.timeout_at(until()):
                    await self._changed.wait()
            except TimeoutError:
                if asyncio.get_running_loop().time() >= until():
                    return not (self._fetches or self._unreported())
        return True


def _stopped() -> _outcome.ShutDown:
    return _outcome.ShutDown("the worker stopped before the job had ended")


_deprecated.arguments(Worker, every="heartbeat_interval", wait="fetch_timeout", grace="grace_period", ahead="")

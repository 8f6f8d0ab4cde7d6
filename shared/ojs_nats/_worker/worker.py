"""A worker: fetches jobs, runs their handlers, and reports how they ended."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import uuid6

from ojs_nats._connect import transport
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._errors import JobCancelled, OjsError
from ojs_nats._jobs import Job
from ojs_nats._logging import get_logger
from ojs_nats._names import check_worked_types, worked_queues
from ojs_nats._operations import DEREGISTER, REGISTER, Request
from ojs_nats._options import DEFAULT_QUEUE
from ojs_nats._transport import Transport
from ojs_nats._worker import outcome
from ojs_nats._worker.attempts import Attempt
from ojs_nats._worker.context import JobContext, LoopLine
from ojs_nats._worker.execution import Execution
from ojs_nats._worker.fetching import Fetching
from ojs_nats._worker.heartbeats import Beat, Heartbeats, Signs
from ojs_nats._worker.lifecycle import Trigger, Vitals, WorkerState, after
from ojs_nats._worker.places import Places
from ojs_nats._worker.reports import Reports

if TYPE_CHECKING:
    from ojs_nats._app import App
    from ojs_nats._worker.health import Health

log = get_logger(__name__)

_FAREWELL_S: Final = 1.0
"""What threads have to notice that they are to stop."""
_HAND_BACK_S: Final = 3.0
_SHORTEST_S: Final = 0.2
_LONGEST_S: Final = 3_600.0


class Worker:
    """Runs the jobs of an app, up to `concurrency` at a time: async handlers in this loop, plain functions in threads.

    `queues` are looked at in order, and default to those that the app's definitions name. `grace` is how long jobs may go on
    once it is to stop; then their handlers are cancelled and they are handed back. `every` is the pause between heartbeats,
    `wait` how long a fetch that finds nothing lasts, and so the stop of an idle worker. While jobs take a few milliseconds, up
    to `ahead` more are fetched than can begin at once; those for which there is no place after all are handed back.
    `processes` is how many jobs that run in processes do so at a time: as many as there are CPUs unless it is said.
    `health` is the host and port where it tells how it is. Raises OSError if that isn't free.
    """

    def __init__(
        self,
        app: App,
        *,
        queues: Sequence[str] = (),
        concurrency: int = 10,
        ahead: int = 100,
        grace: Duration = 25.0,
        every: Duration = 5.0,
        wait: Duration = 2.0,
        processes: int | None = None,
        health: tuple[str, int] | None = None,
        worker_id: str | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"a worker runs at least one job at a time, not {concurrency}")
        if ahead < 0:
            raise ValueError(f"a worker fetches 0 or more jobs ahead, not {ahead}")
        if processes is not None and processes < 1:
            raise ValueError(f"a worker's pool has at least one process, not {processes}")
        if not app.definitions:
            raise ValueError("the app has no jobs: decorate a function with @app.job(…), and import its module")
        named = (definition.options.get("queue", DEFAULT_QUEUE) for definition in app.definitions.values())
        self.id = worker_id or f"worker_{uuid6.uuid7()}"
        self.state = WorkerState.RUNNING
        self.queues = worked_queues(queues or list(named))
        check_worked_types(app.definitions)
        self._app = app
        self._concurrency = concurrency
        self._grace_s = milliseconds(grace) / 1_000
        self._every_s = milliseconds(every) / 1_000
        self._started_at = datetime.now(UTC).isoformat()
        self._most_unreported = concurrency + ahead
        self._held: set[Attempt] = set()
        self._places: Places[Attempt] = Places(concurrency, ahead, self._start, self._hand_back)
        self._changed = asyncio.Event()
        self._state: Any = None
        self._heartbeats: Heartbeats[Attempt] | None = None
        self._transport = transport(app.url, patience_s=app.patience_s, headers=app.headers)
        self._execution = Execution(app, concurrency, processes or os.cpu_count() or 1, self.id)
        queue = self.queues[0] if len(self.queues) == 1 else None
        self._reports = Reports(self._transport, self.id, queue)
        self._health = self._told_at(*health) if health is not None else None
        self._fetching = Fetching(self._transport, self._reports, self.id, self.queues, queue, milliseconds(wait))

    @property
    def active(self) -> int:
        """How many handlers it runs now."""
        return self._places.running

    def notify(self, trigger: Trigger) -> None:
        """Tell it of a signal; in its loop."""
        if trigger is Trigger.SIGINT:
            self._grace_s = 0.0
        self._enter(after(self.state, trigger))

    async def run(self) -> None:
        """Until it is told to terminate, and its jobs have ended or been handed back."""
        with self._health or nullcontext():
            async with self._lifespan() as self._state:
                await self._serve()

    async def _serve(self) -> None:
        await self._register()
        beside = nullcontext if self._health is None else self._health.serving
        self._heartbeats = Heartbeats(self._connect_for_heartbeats, self._described, self._heard, beside)
        self._heartbeats.start()
        told = {"worker_id": self.id, "queues": self.queues, "concurrency": self._concurrency, "url": self._transport.shown}
        log.info("the worker runs", **told)
        if self._health is not None:
            log.info("the worker tells how it is", port=self._health.port)
        try:
            await self._fetch_until_terminated()
            await self._finish()
        finally:
            await self._heartbeats.stop()
            await self._deregister()
            await self._transport.close()
            await self._execution.close()
        log.info("the worker has stopped", worker_id=self.id)

    def _told_at(self, host: str, port: int) -> Health:
        from ojs_nats._worker.health import Health  # noqa: PLC0415  # it needs more than a worker without it

        return Health(host, port, self._app.execution, self._vitals)

    def _vitals(self) -> Vitals:
        assert self._heartbeats is not None
        beats = self._heartbeats
        return Vitals(self.state, self.active, self._concurrency, beats.loop_turns, beats.silent_s, self._every_s)

    def _lifespan(self) -> AbstractAsyncContextManager[Any]:
        made = self._app.worker_state
        return nullcontext() if made is None else asynccontextmanager(made)()

    # States

    def _enter(self, state: WorkerState) -> None:
        if state is self.state:
            return
        log.info("the worker changes its state", before=str(self.state), after=str(state), active=self.active)
        self.state = state
        self._changed.set()
        if self._heartbeats is not None:
            self._heartbeats.now()

    def _heard(self, beat: Beat[Attempt]) -> None:
        if beat.state == "quiet":
            self._enter(after(self.state, Trigger.TOLD_QUIET))
        elif beat.state == "terminate":
            self._enter(after(self.state, Trigger.TOLD_TERMINATE))
        cancelled, lost = JobCancelled("the job was cancelled"), OjsError("the job isn't this worker's any more")
        for attempts, why in ((beat.cancelled, cancelled), (beat.lost, lost)):
            for attempt in attempts:
                if not (attempt.over or attempt.lost):
                    attempt.lost = True
                    attempt.context.log.warning("the handler is told to stop", reason=str(why))
                    attempt.stop(why)

    def _connect_for_heartbeats(self) -> Transport:
        return transport(self._app.url, patience_s=0.0, headers=self._app.headers)

    def _described(self) -> Signs[Attempt]:
        # Called in another thread, so it goes through a copy, which is made in one step.
        named = {attempt.context.job.id: attempt for attempt in list(self._held) if not attempt.over}
        again_s = min(self._every_s, *(_heartbeat_s(attempt.context.job) for attempt in named.values()), _LONGEST_S)
        return Signs({**self._identity(), "state": str(self.state)}, named, again_s)

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
        await self._transport.send(Request(REGISTER, body={**self._identity(), "handlers": handlers}))

    async def _deregister(self) -> None:
        try:
            body = {"worker_id": self.id, "reason": "shutdown"}
            await self._transport.send(Request(DEREGISTER, body=body, answer_s=2.0), patience_s=0.0)
        except OjsError as error:
            log.warning("the worker could not say goodbye", reason=str(error))

    # Jobs

    async def _fetch_until_terminated(self) -> None:
        """Ask for as many jobs as could begin at once. While there is plenty, some are on their way while others run; an idle
        worker waits in one request.
        """
        fetches: set[asyncio.Task[bool]] = set()
        plenty = True
        try:
            while self.state is not WorkerState.TERMINATE:
                self._changed.clear()
                count = self._wanted(fetches, plenty=plenty)
                if count:
                    self._places.ask(count)
                    fetches.add(asyncio.create_task(self._fetch(count)))
                    continue
                changed = asyncio.ensure_future(self._changed.wait())
                ended, _ = await asyncio.wait({changed, *fetches}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                for fetch in fetches & ended:
                    fetches.discard(fetch)
                    plenty = fetch.result()
        finally:
            if fetches:
                await asyncio.wait(fetches)

    def _wanted(self, fetches: Collection[object], *, plenty: bool) -> int:
        """How many jobs to ask for now."""
        places = self._places
        if self.state is WorkerState.QUIET or len(self._held) - places.running - places.waiting > self._most_unreported:
            return 0  # it shall not, or the server doesn't take reports
        return places.wanted(len(fetches), plenty=plenty)

    async def _fetch(self, count: int) -> bool:
        """Whether there were as many."""
        began = asyncio.get_running_loop().time()
        try:
            jobs = await self._fetching.fetch(count)
        finally:
            self._places.answered(count)
        if self._health is not None:
            self._health.fetched(asyncio.get_running_loop().time() - began, len(jobs))
        for job in jobs:
            self._take(job)
        return len(jobs) == count

    def _take(self, job: Job) -> None:
        line = LoopLine(self._transport)
        beat = None if self._heartbeats is None else self._heartbeats.now
        attempt = Attempt(JobContext(job, line, self.id, beat=beat, state=self._state), line)
        self._held.add(attempt)
        if self._heartbeats is not None:
            self._heartbeats.within(_heartbeat_s(job))
        # After the end it comes as the answer to a fetch that was under way.
        if self.state is WorkerState.TERMINATE and not (self._places.brief and self._grace_s):
            self._hand_back(attempt)
        else:
            self._places.put(attempt)

    def _start(self, attempt: Attempt) -> None:
        attempt.task = asyncio.create_task(self._attempt(attempt))

    def _hand_back(self, attempt: Attempt) -> None:
        """A job that hasn't begun."""
        why = _stopped() if self.state is WorkerState.TERMINATE else outcome.NoPlace("the jobs before it take long")
        attempt.stop(why)
        attempt.task = asyncio.create_task(self._report(attempt, outcome.raised(why)))

    async def _attempt(self, attempt: Attempt) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        report = await self._execution.outcome(attempt.context.job, attempt)
        self._places.took(now() - began)
        unfinished = attempt.unfinished
        if unfinished is None:
            self._vacate()
        else:  # its place is taken for as long as its thread is
            unfinished.add_done_callback(self._vacate)
        await self._report(attempt, report)

    async def _report(self, attempt: Attempt, report: outcome.Report) -> None:
        try:
            if not attempt.lost:
                await self._reports.send(attempt.context.job, report)
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
        """Let jobs end within the grace period; those that don't are stopped and handed back."""
        if await self._ended_within(self._grace_s):
            return
        log.warning("the grace period is over: jobs are handed back", active=self.active)
        self._places.clear()
        for attempt in list(self._held):
            attempt.stop(_stopped())
        await self._ended_within(_HAND_BACK_S)
        rest = [attempt.unfinished for attempt in self._held if attempt.unfinished is not None]
        if rest:  # threads that look whether they are to stop can clean up
            await asyncio.wait(rest, timeout=_FAREWELL_S)

    async def _ended_within(self, seconds: float) -> bool:
        """Whether all jobs have been reported by then."""
        try:
            async with asyncio.timeout(seconds):
                while not all(attempt.over for attempt in self._held):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True


def _heartbeat_s(job: Job) -> float:
    """How often a job's lease has to be renewed, so that one that gets lost costs nothing."""
    return _LONGEST_S if job.visibility_timeout_ms is None else max(job.visibility_timeout_ms / 3_000, _SHORTEST_S)


def _stopped() -> outcome.ShutDown:
    return outcome.ShutDown("the worker stopped before the job had ended")

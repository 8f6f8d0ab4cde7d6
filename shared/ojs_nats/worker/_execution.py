"""Runs the handler of one job, in the app's middleware: async ones in the loop, plain functions in threads or
processes.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from ojs_nats._chain_runs import handled
from ojs_nats._dependencies import Provided
from ojs_nats._handed_on import with_results
from ojs_nats._logging import bind_to_task
from ojs_nats.app import App
from ojs_nats.definitions import JobDefinition
from ojs_nats.jobs import Job
from ojs_nats.worker import _outcome
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._jobs_log import USUAL, JobsLog
from ojs_nats.worker._outcome import Report, SoftTimeout, TimedOut
from ojs_nats.worker._pool import Pool
from ojs_nats.worker._timings import WorkerTimings

_HANDED_BACK: Final = "the job is handed back: this worker can't run it"


class Execution:
    """The handlers of an app's jobs: up to `concurrency` at a time, and of those that run in processes, up to
    `processes`.

    `interrupt` is called when a handler has raised KeyboardInterrupt.
    """

    def __init__(
        self,
        app: App,
        concurrency: int,
        processes: int,
        worker_id: str,
        *,
        interrupt: Callable[[], None] = lambda: None,
        jobs_log: JobsLog = USUAL,
        timings: WorkerTimings = WorkerTimings(),
    ) -> None:
        self._app = app
        self._interrupt = interrupt
        self._log = jobs_log
        self._timings = timings
        # A job's handler and its dependencies follow one another, so as many threads as jobs are enough. They aren't the
        # loop's own, which handlers may use up by `asyncio.to_thread`.
        self._threads = ThreadPoolExecutor(concurrency, "ojs-nats-job")
        self._pool = Pool(processes, worker_id, timings)
        self._misfits: set[str] = set()
        """Types of jobs whose handlers have returned what isn't of their hints: the log says so once for each."""

    async def close(self) -> None:
        """Let go of threads, which end with their handlers, and end the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._pool.close()

    async def outcome(self, job: Job, attempt: Attempt) -> Report:
        """Return what the server is to be told of how it ended. Raises nothing, whatever a handler does."""
        definition = self._app.definitions.get(job.type)
        if definition is None:
            return self._not_here(attempt, f"this worker has no handler for {job.type}")
        timers = _timers(definition, job, attempt)
        began = self._log.begins(attempt.context.log, job.queue)
        try:
            report = _outcome.returned(await attempt.result(self._run(definition, attempt)))
        except _outcome.Interrupted as error:
            attempt.context.log.warning("a handler raised KeyboardInterrupt: the worker stops")
            self._interrupt()
            return self._failed(attempt, error, began)
        except _outcome.Unfit as error:
            if error.newer and _age_s(job) < self._timings.rollout_s:
                return self._not_here(attempt, f"the job's producer may be newer than this worker: {error}")
            return self._failed(attempt, error, began)
        except BaseException as error:  # noqa: BLE001  # a handler's error is its job's
            return self._failed(attempt, error, began)
        finally:
            for timer in timers:
                timer.cancel()
        self._log.completed(attempt.context.log, began)
        return report

    def _failed(self, attempt: Attempt, error: BaseException, began: float) -> Report:
        report = _outcome.raised(error, _outcome.not_tried_again(attempt.job))
        if issubclass(type(error), _outcome.NotHere):  # silence would leave nothing to see but a job that never runs
            attempt.context.log.warning(_HANDED_BACK, reason=str(error))
        if attempt.lost or report.members.get("requeue"):
            self._log.handed_back(attempt.context.log, began, _outcome.kind(error))
        else:
            self._log.failed(attempt.context.log, began, report.members["error"])
        return report

    def _not_here(self, attempt: Attempt, reason: str) -> Report:
        attempt.context.log.warning(_HANDED_BACK, reason=reason)
        return _outcome.raised(_outcome.NotHere(reason, self._timings.away_ms))

    async def _run(self, definition: JobDefinition[Any, Any], attempt: Attempt) -> Any:
        job = attempt.context.job
        bind_to_task(job_id=job.id, job_type=job.type)  # of this task: for all that logs in there
        try:
            attempt.context.job = await with_results(job, attempt.line.send)
            if self._app.execution:
                return await handled(self._app.execution, attempt.context, lambda: self._compared(definition, attempt))
            return await self._compared(definition, attempt)
        except SystemExit as error:  # either would end the loop
            raise _outcome.exited(error) from error
        except KeyboardInterrupt as error:
            raise _outcome.interrupted(error) from error

    async def _compared(self, definition: JobDefinition[Any, Any], attempt: Attempt) -> Any:
        """Return what `_handled` does, and log if it isn't of its hint. The job has done its work, so it completes."""
        result = await self._handled(definition, attempt)
        if definition.type not in self._misfits and (wrong := definition._inside.parameters.misfit(result)) is not None:
            self._misfits.add(definition.type)
            self._log.misfit(attempt.context.log, wrong)
        return result

    async def _handled(self, definition: JobDefinition[Any, Any], attempt: Attempt) -> Any:
        """Return what the handler does. Raises what it raises, and CancelledError when it has been told to stop."""
        given = definition._inside.parameters.given(attempt.context)
        if definition._inside.in_process:
            return await self._pool.run(definition, attempt)
        if not definition._inside.parameters.injected:
            return await self._called(definition, given, {}, attempt)
        provided = Provided(attempt.context, self._threads)
        async with provided.cleaning:
            named = await provided.values(definition._inside.parameters.injected)
            return await self._called(definition, given, named, attempt)
        raise RuntimeError("a dependency has swallowed the handler's error: raise it again behind the yield")

    async def _called(
        self, definition: JobDefinition[Any, Any], given: list[Any], named: dict[str, Any], attempt: Attempt
    ) -> Any:
        if definition._inside.in_loop:
            return await self._in_loop(definition, attempt, definition.handler(*given, **named))
        call = functools.partial(contextvars.copy_context().run, _outcome.called, definition.handler, given, named)
        attempt.thread = asyncio.get_running_loop().run_in_executor(self._threads, call)
        try:
            found = await asyncio.shield(attempt.thread)
        except asyncio.CancelledError:
            if named:  # what it uses isn't cleaned up as long as it does
                await asyncio.wait({attempt.thread})
            raise
        # A decorator may have made a plain function of an async one.
        return await self._in_loop(definition, attempt, found) if inspect.iscoroutine(found) else found

    async def _in_loop(self, definition: JobDefinition[Any, Any], attempt: Attempt, running: Coroutine[Any, Any, Any]) -> Any:
        return await (running if definition._inside.soft_timeout_s is None else attempt.softly(running))


def _timers(definition: JobDefinition[Any, Any], job: Job, attempt: Attempt) -> list[asyncio.TimerHandle]:
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    if definition._inside.soft_timeout_s is not None:
        soft = SoftTimeout(f"the job's soft time-out of {definition._inside.soft_timeout_s:g} s is over")
        timers.append(loop.call_later(definition._inside.soft_timeout_s, attempt.soften, soft))
    if job.timeout_ms is not None:
        hard = TimedOut(f"the job ran for longer than its time-out of {job.timeout_ms} ms")
        timers.append(loop.call_later(job.timeout_ms / 1_000, attempt.stop, hard))
    return timers


def _age_s(job: Job) -> float:
    """How long ago the job was pushed, by this machine's clock."""
    return 0.0 if job.created_at is None else (datetime.now(UTC) - job.created_at).total_seconds()

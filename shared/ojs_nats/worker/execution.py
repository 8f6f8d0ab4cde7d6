"""Runs the handler of one job: async ones in the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from ojs_nats._jobs import Job
from ojs_nats.worker import outcome
from ojs_nats.worker.attempts import Attempt
from ojs_nats.worker.outcome import Report

if TYPE_CHECKING:
    from ojs_nats._definitions import JobDefinition


class Execution:
    """Of the jobs that `definitions` name by their types, up to `concurrency` at a time."""

    def __init__(self, definitions: Mapping[str, JobDefinition[Any, Any]], concurrency: int) -> None:
        self._definitions = definitions
        self._threads = ThreadPoolExecutor(concurrency, "ojs-nats-job")

    def close(self) -> None:
        """Let go of threads; those whose handlers run end with them."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def outcome(self, job: Job, attempt: Attempt) -> Report:
        """What the server is to be told of how it ended; nothing that a handler does gets past this."""
        definition = self._definitions.get(job.type)
        if definition is None:
            known = ", ".join(sorted(self._definitions))
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

    def _failed(self, attempt: Attempt, error: BaseException) -> Report:
        if not attempt.lost:
            attempt.context.log.warning("the job failed", error=type(error).__name__)
        return outcome.raised(error)

    async def _run(self, handler: Any, given: list[Any], attempt: Attempt) -> Any:
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

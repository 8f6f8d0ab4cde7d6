"""Runs jobs in memory by what a worker runs them by: conversion, middleware, dependencies, time-outs, reports."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from ojs_nats._connect import transport
from ojs_nats.app import App
from ojs_nats.definitions import JobDefinition
from ojs_nats.jobs import Job
from ojs_nats.testing._store import Store
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._context import JobContext, LoopLine
from ojs_nats.worker._execution import Execution
from ojs_nats.worker._reports import Reports
from ojs_nats.worker._timings import WorkerTimings

_WORKER: Final = "worker_of_the_test"
_ALONE: Final = WorkerTimings(rollout_s=0.0)
"""There is no newer worker to wait for: a job with too many arguments fails at once."""

Failing = Callable[[str], BaseException | None]
"""The function that returns the exception for a type's next run, if it is to fail."""


class Running:
    """One job at a time, in the loop that it is made in; `raised` is what the last one's handler raised."""

    def __init__(self, app: App, store: Store, failing: Failing, execution: Execution, state: Any) -> None:
        self._app = app
        self._store = store
        self._failing = failing
        self._execution = execution
        self._state = state
        self._transport = transport(app.url)
        self._reports = Reports(self._transport, _WORKER, None)
        self.raised: BaseException | None = None

    async def run(self, job_id: str) -> Job:
        """The job as its attempt has left it."""
        self.raised = None
        begun = msgspec.json.encode(self._store.begin(job_id, _WORKER))
        job = msgspec.json.decode(begun, type=Job)
        line = LoopLine(self._transport)
        attempt = Attempt(JobContext(job, line, _WORKER, state=self._state), line)
        await self._reports.send(job, await self._execution.outcome(job, attempt))
        return self._store.get(job_id).job

    def watched(self, definition: JobDefinition[Any, Any]) -> JobDefinition[Any, Any]:
        """The same, but that its handler fails when the test wants it to, in this process."""
        handler = definition.handler

        def failing() -> None:
            if (error := self._failing(definition.type)) is not None:
                raise error

        @functools.wraps(handler)
        async def in_the_loop(*args: Any, **kwargs: Any) -> Any:
            try:
                failing()
                return await handler(*args, **kwargs)
            except BaseException as error:
                self.raised = error
                raise

        @functools.wraps(handler)
        def in_a_thread(*args: Any, **kwargs: Any) -> Any:
            try:
                failing()
                return handler(*args, **kwargs)
            except BaseException as error:
                self.raised = error
                raise

        watched = object.__new__(type(definition))
        vars(watched).update(vars(definition))
        watched.handler = in_the_loop if inspect.iscoroutinefunction(handler) else in_a_thread
        watched._inside = dataclasses.replace(definition._inside, in_process=False)
        return watched


@asynccontextmanager
async def running(app: App, store: Store, failing: Failing) -> AsyncIterator[Running]:
    """Run the app's lifespan around what runs its jobs."""
    own = copy.copy(app)
    lifespan = _nothing() if (own_lifespan := app._inside.lifespan) is None else asynccontextmanager(own_lifespan)()
    execution = Execution(own, 1, 1, _WORKER, timings=_ALONE)
    try:
        async with lifespan as state:
            made = Running(app, store, failing, execution, state)
            own.definitions = {name: made.watched(definition) for name, definition in app.definitions.items()}
            yield made
    finally:
        await execution.close()


@asynccontextmanager
async def _nothing() -> AsyncIterator[None]:
    yield

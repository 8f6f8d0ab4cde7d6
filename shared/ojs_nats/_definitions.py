"""A handler and how its jobs are to be run, which is also how they are pushed: checked by type checkers as a call of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, Unpack, overload

from ojs_nats._arguments import Parameters
from ojs_nats._client import JobHandle
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._jobs import NewJob
from ojs_nats._names import job_type as valid_type
from ojs_nats._options import DefinitionOptions, Options, Unique, checked, checked_of_jobs, duration_ms
from ojs_nats._sync import SyncJobHandle
from ojs_nats._worker.context import JobContext

if TYPE_CHECKING:
    from ojs_nats._app import App

P = ParamSpec("P")
R = TypeVar("R")


class JobDefinition(Generic[P, R]):
    """A job type with its handler. `options` are what each push says unless told otherwise."""

    def __init__(self, app: App, job_type: str, handler: Callable[..., Any], options: DefinitionOptions) -> None:
        valid_type(job_type)
        self.app = app
        self.type = job_type
        self.handler = handler
        self.options = options
        self._of_jobs = checked_of_jobs(options, job_type)
        self.parameters = Parameters(handler)
        self.soft_timeout_s = _soft_timeout_s(options)
        self.in_loop = inspect.iscoroutinefunction(handler)
        self.in_process = options.get("runs_in") == "process"
        if self.in_process:
            _fits_a_process(handler, self.parameters)

    def __repr__(self) -> str:
        return f"JobDefinition({self.type})"

    # How this push differs

    def using(self, **options: Unpack[Options]) -> JobDefinition[P, R]:
        """Return the same job with other options: `await send_email.using(priority=5).push("ada@example.org")`.

        Raises as `App.job` for an option that no push has.
        """
        checked(options, f"{self.type}.using")
        return JobDefinition(self.app, self.type, self.handler, DefinitionOptions(**{**self.options, **options}))

    def later(self, delay: Duration) -> JobDefinition[P, R]:
        """To be run when this time has passed."""
        return self.using(delay=delay)

    def at(self, when: datetime) -> JobDefinition[P, R]:
        """To be run then; `when` has a time zone."""
        return self.using(at=when)

    def unique(self, policy: Unique | None = None) -> JobDefinition[P, R]:
        """Return the job to be pushed only while none of its identity is there: by default, its type and arguments."""
        return self.using(unique=Unique() if policy is None else policy)

    # Pushes

    def s(self, *args: P.args, **kwargs: P.kwargs) -> NewJob[R]:
        """The job that a push with these arguments would make, for `push_many`, workflows and cron entries."""
        return NewJob(self.type, self.parameters.listed(args, kwargs), self._of_jobs, returns=self.parameters.returns)

    async def push(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Push a job with the arguments of a call. Raises as `Client.push`, and TypeError as the call would."""
        return await self.app.client.push(self.s(*args, **kwargs))

    def push_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R]:
        """The same, for code without an event loop."""
        return self.app.sync.push(self.s(*args, **kwargs))


class JobDecorator(Protocol):
    """What `App.job(…)` gives: a handler's context isn't one of its job's arguments."""

    @overload
    def __call__(self, handler: Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]], /) -> JobDefinition[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> JobDefinition[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[JobContext, P], R], /) -> JobDefinition[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> JobDefinition[P, R]: ...


def _soft_timeout_s(options: DefinitionOptions) -> float | None:
    if "soft_timeout" not in options:
        return None
    soft = duration_ms(options["soft_timeout"], "soft_timeout")
    if "timeout" in options and soft >= milliseconds(options["timeout"]):
        raise ValueError(f"soft_timeout {options['soft_timeout']!r} has to be shorter than timeout {options['timeout']!r}")
    return soft / 1_000


def _fits_a_process(handler: Callable[..., Any], parameters: Parameters) -> None:
    name = handler.__qualname__
    if inspect.iscoroutinefunction(handler):
        raise TypeError(f"{name}: what runs in a process is a plain function; coroutines run in the worker's loop")
    if "<locals>" in name:
        raise TypeError(f"{name}: a process finds a handler by its name in its module, so it can't lie within a function")
    if parameters.injected:
        raise TypeError(f"{name}: dependencies are made in the worker, so what runs in a process makes its own")

"""Definitions: functions that are handlers of jobs, called as before, and pushed by `push`."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

from ojs_nats import _deprecated
from ojs_nats._arguments import Parameters
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._has_clients import HasClients
from ojs_nats._options import checked, checked_of_jobs, duration_ms, merged
from ojs_nats.client import JobHandle
from ojs_nats.jobs import JobRequest
from ojs_nats.options import DefinitionOptions, Options
from ojs_nats.sync import SyncJobHandle
from ojs_nats.worker._context import JobContext

__all__ = [
    "AsyncContextDefinition",
    "AsyncDefinition",
    "JobDecorator",
    "JobDefinition",
    "PlainContextDefinition",
    "PlainDefinition",
]

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


_PUSH: Final = "await job.push(…), or job.push_sync(…) where no event loop runs"
_LATER: Final = 'await job.later("1m").push(…), or push_sync in place of push where no event loop runs'
_OPTIONS: Final = "job.options(priority=5).push(…)"
_OTHER_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delay", "send", "enqueue", "perform_async", "perform_later", "defer", "defer_async", "kiq"), _PUSH),
    **dict.fromkeys(("schedule", "perform_in", "perform_at"), _LATER),
    **dict.fromkeys(("apply_async", "send_with_options", "configure", "kicker", "set", "with_options"), _OPTIONS),
    **dict.fromkeys(("signature", "si", "subtask", "message"), "job.job(…), which workflows and push_all take"),
}
"""What other job queues call the methods of a definition, and what is written here."""


@dataclass(frozen=True)
class _Inside:
    """What a worker takes from a definition."""

    parameters: Parameters
    soft_timeout_s: float | None
    in_loop: bool
    in_process: bool


class JobDefinition(Generic[P, R_co]):
    """A function that is the handler of a job type: `App.job` makes one.

    It is called as the function that it was, in tests and by other code; its name, docstring, signature and pickling are
    the function's. `P` are the arguments of its jobs, without the context, and `R` what it returns.

    Attributes:
        type: The job type.
        handler: The function.
        defaults: The options of each push that says no others.

    Example:
        >>> from ojs_nats import App
        >>> app = App()
        >>> @app.job("math.add")
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> add(1, 2)
        3
        >>> add.options(priority=5).job(1, 2).args
        (1, 2)
    """

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        clients: HasClients,
        job_type: str,
        handler: Callable[..., Any],
        parameters: Parameters,
        options: DefinitionOptions,
    ) -> None:
        functools.update_wrapper(self, handler)
        self.type = job_type
        self.handler = handler
        self.defaults = options
        self._clients = clients
        self._options = checked_of_jobs(options, job_type)
        self._changed: Options = {}
        self._origin: JobDefinition[P, R_co] | None = None
        own = self._inside = _Inside(
            parameters,
            _soft_timeout_s(options),
            in_loop=inspect.iscoroutinefunction(handler),
            in_process=options.get("runs_in") == "process",
        )
        if own.in_process:
            _check_fits_a_process(handler, parameters)
        if own.in_loop and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, here and now. No job is pushed."""
        return self.handler(*args, **kwargs)

    if not TYPE_CHECKING:  # which would find no slip of the pen any more

        def __getattr__(self, name: str) -> Any:
            instead = _OTHER_NAMES.get(name)
            said = f"; write {instead}" if instead else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{said}", name=name, obj=self)

    def __get__(self, instance: object, owner: type | None = None) -> Self:
        """Return itself: in a class, it is a function that the class doesn't bind. For `help`, it makes it a routine."""
        return self

    def __repr__(self) -> str:
        return f"<job {self.type}: {self.handler.__module__}.{self.handler.__qualname__}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle it as functions are, by its name in its module."""
        if self._origin is None:
            return self.handler.__qualname__
        return _with_options, (self._origin, dict(self._changed))

    # Pushes

    async def push(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Push a job with these arguments.

        The arguments are checked as a call of the function would be, and against its hints.

        Returns:
            A handle of the job: `await handle.result()` waits for what the function returns.

        Raises:
            TypeError: The function can't be called so, or an argument isn't of its hint's type.
            ValueError: JSON can't hold an argument: NaN, infinity, half a surrogate pair.
            DuplicateError, QueueFullError, QueueClosedError: As `Client.push`.
            UnavailableError: No server answered for as long as the app's `retry_for`.
        """
        return await self._clients.client.push(self.job(*args, **kwargs))

    def push_sync(self, *args: P.args, **kwargs: P.kwargs) -> SyncJobHandle[R_co]:
        """Push a job from code without an event loop: a thread, a script, a view of Django.

        Returns:
            A handle of the job: `handle.result()` waits for what the function returns.

        Raises:
            RuntimeError: It was called in the loop of such calls, as enqueue middleware is.
            TypeError, ValueError, DuplicateError, QueueFullError, QueueClosedError, UnavailableError: As `push`.
        """
        return self._clients.sync.push(self.job(*args, **kwargs))

    def job(self, *args: P.args, **kwargs: P.kwargs) -> JobRequest[R_co]:
        """Return the job that a push with these arguments would make, without pushing it.

        `push_all`, workflows and cron entries take such jobs.

        Raises:
            TypeError, ValueError: As `push`.
        """
        return JobRequest(
            self.type, self._inside.parameters.listed(args, kwargs), self._options, returns=self._inside.parameters.returns
        )

    # How the next push differs

    def options(self, **options: Unpack[Options]) -> Self:
        """Return a copy of the definition with other options: `await
        send_email.options(priority=5).push("ada@example.org")`.

        Args:
            **options: Any of `ojs_nats.options.Options`. Each replaces the one that the definition had.

        Raises:
            TypeError: There is no such option, or the value is of another kind.
            ValueError: The server would refuse the value.
        """
        return self._copy(checked(options, f"{self.type}.options"))

    def later(self, when: Duration | datetime) -> Self:
        """Return a copy of the definition whose jobs run later: `await remind.later("5m").push(order)`.

        Args:
            when: A delay (seconds, `"5m"` or a `timedelta`), or a `datetime` with a time zone.

        Raises:
            ValueError: The `datetime` has no time zone, or the delay is negative.
        """
        return self.options(scheduled_at=when) if isinstance(when, datetime) else self.options(delay=when)

    def _copy(self, changed: Options) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._changed = Options(**{**self._changed, **changed})
        made._origin = self._origin or self
        made.defaults = DefinitionOptions(**{**self.defaults, **changed})
        made._options = merged(self._options, changed, self.type)
        _soft_timeout_s(made.defaults)  # a changed time-out may be too short for it
        return made


class AsyncDefinition(JobDefinition[P, R_co]):
    """The definition of `async def f(to: str)`."""

    if TYPE_CHECKING:  # the function is called as it stands, whatever it is

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...


class AsyncContextDefinition(JobDefinition[P, R_co]):
    """The definition of `async def f(ctx: JobContext, to: str)`."""

    if TYPE_CHECKING:

        def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...


class PlainDefinition(JobDefinition[P, R_co]):
    """The definition of `def f(to: str)`."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class PlainContextDefinition(JobDefinition[P, R_co]):
    """The definition of `def f(ctx: JobContext, to: str)`."""

    if TYPE_CHECKING:

        def __call__(self, context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class JobDecorator(Protocol):
    """A decorator that makes a definition of a function: what `App.job(…)` returns."""

    # A coroutine is no plain function's result, though type checkers say that the overloads overlap.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, handler: Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextDefinition[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, handler: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncDefinition[P, R]: ...
    @overload
    def __call__(self, handler: Callable[Concatenate[JobContext, P], R], /) -> PlainContextDefinition[P, R]: ...
    @overload
    def __call__(self, handler: Callable[P, R], /) -> PlainDefinition[P, R]: ...


def _with_options(definition: JobDefinition[P, R], options: Options) -> JobDefinition[P, R]:
    return definition.options(**options)


def _soft_timeout_s(options: DefinitionOptions) -> float | None:
    if "soft_timeout" not in options:
        return None
    soft = duration_ms(options["soft_timeout"], "soft_timeout")
    if "timeout" in options and soft >= milliseconds(options["timeout"]):
        raise ValueError(f"soft_timeout {options['soft_timeout']!r} has to be shorter than timeout {options['timeout']!r}")
    return soft / 1_000


def _check_fits_a_process(handler: Callable[..., Any], parameters: Parameters) -> None:
    """Raise TypeError for a handler that couldn't run in a process of its own."""
    name = handler.__qualname__
    if inspect.iscoroutinefunction(handler):
        raise TypeError(f"{name}: what runs in a process is a plain function; coroutines run in the worker's loop")
    if "<locals>" in name:
        raise TypeError(f"{name}: a process finds a handler by its name in its module, so it can't lie within a function")
    if parameters.injected:
        raise TypeError(f"{name}: dependencies are made in the worker, so what runs in a process makes its own")


_deprecated.methods(JobDefinition, using="options", s="job", at="later", unique="options(unique=)")

"""Dependencies: objects that a handler is given besides its job's arguments, made for each job and cleaned up."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

from ojs_nats._hints import hints_of
from ojs_nats.worker._context import JobContext
from ojs_nats.worker._outcome import called

T = TypeVar("T")
Provider = Callable[..., Any]

_UNSET: Final = object()


class Dependency:
    """The default value of a parameter that is a dependency."""

    def __init__(self, provider: Provider) -> None:
        self.provider: Final = provider
        self.needs: Final = needs(provider)


def _function(provider: Provider) -> Provider:
    """Return what runs when the provider is called, which may be an object or a class."""
    while isinstance(provider, functools.partial):
        provider = provider.func
    if inspect.isroutine(provider):
        return provider
    made: Provider = getattr(provider, "__init__" if inspect.isclass(provider) else "__call__")
    return made


def _key(provider: Provider) -> object:
    """Return what tells it from others: itself, unless it is an object without a hash."""
    try:
        hash(provider)
    except TypeError:
        return id(provider)
    return provider


class Need:
    """A parameter that the package fills in: the context, or a dependency."""

    def __init__(self, name: str, dependency: Dependency | None) -> None:
        self.name = name
        self.dependency = dependency


def needs(provider: Provider) -> list[Need]:
    """Return the parameters of a provider that the package fills in.

    Raises:
        TypeError: A parameter is neither the context nor a dependency.
    """
    found: list[Need] = []
    called = getattr(provider, "__qualname__", repr(provider))
    hints = hints_of(_function(provider))
    for name, parameter in inspect.signature(provider).parameters.items():
        if isinstance(parameter.default, Dependency):
            found.append(Need(name, parameter.default))
        elif hints.get(name) is JobContext:
            found.append(Need(name, None))
        elif parameter.default is parameter.empty and parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            raise TypeError(
                f"{called}: nobody gives its parameter {name!r} a value; "
                "hint it JobContext, or give it a default, as Depends(…)"
            )
        else:
            continue
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"{called}: what a provider needs is given by name, so {name!r} can't be by position alone")
    return found


class Provided:
    """The dependencies of one job. `async with` cleans them up, the last one first.

    Args:
        context: The running job.
        threads: The pool that plain providers run in.
    """

    def __init__(self, context: JobContext, threads: Executor) -> None:
        self._context = context
        self._threads = threads
        self._made: dict[object, Any] = {}
        self.cleaning: Final = AsyncExitStack()

    async def values(self, wanted: Mapping[str, Dependency]) -> dict[str, Any]:
        """Make the values of dependencies.

        Args:
            wanted: The dependencies, by the names of their parameters.

        Returns:
            The values, by the same names.
        """
        return {name: await self._value(dependency) for name, dependency in wanted.items()}

    async def _value(self, dependency: Dependency) -> Any:
        provider = dependency.provider
        key = _key(provider)
        if key not in self._made:
            given = {
                need.name: self._context if need.dependency is None else await self._value(need.dependency)
                for need in dependency.needs
            }
            self._made[key] = await self._called(provider, given)
        return self._made[key]

    async def _called(self, provider: Provider, given: dict[str, Any]) -> Any:
        function = _function(provider)
        if inspect.isasyncgenfunction(function):
            return await self.cleaning.enter_async_context(asynccontextmanager(provider)(**given))
        if inspect.isgeneratorfunction(function):
            return await self.cleaning.enter_async_context(_in_threads(self._threads, contextmanager(provider)(**given)))
        if inspect.iscoroutinefunction(function):
            return await provider(**given)
        return await _in_thread(self._threads, lambda: provider(**given))


@asynccontextmanager
async def _in_threads(threads: Executor, manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    context = contextvars.copy_context()  # of its own, also for a reset() behind its yield
    entering = _begun(threads, manager.__enter__, context)
    try:
        value = await _ended(entering)
    except asyncio.CancelledError:  # what the thread has made is to be cleaned up
        if entering.done() and entering.exception() is None:
            await _ended(_begun(threads, lambda: manager.__exit__(None, None, None), context))
        raise
    _adopt(context)
    try:
        yield value
    except BaseException as error:
        context.run(_adopt, contextvars.copy_context())
        leave = functools.partial(manager.__exit__, type(error), error, error.__traceback__)
        if not await _ended(_begun(threads, leave, context)):
            raise
    else:
        context.run(_adopt, contextvars.copy_context())
        await _ended(_begun(threads, lambda: manager.__exit__(None, None, None), context))


async def _in_thread(threads: Executor, call: Callable[[], T]) -> T:
    context = contextvars.copy_context()
    value = await _ended(_begun(threads, call, context))
    _adopt(context)
    return value


def _adopt(context: contextvars.Context) -> None:
    """Set the context variables that have another value there, as a thread has left them."""
    for variable, value in context.items():
        if variable.get(_UNSET) is not value:
            variable.set(value)


def _begun(threads: Executor, call: Callable[[], T], context: contextvars.Context) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(threads, lambda: context.run(called, call))


async def _ended(running: asyncio.Future[T]) -> T:
    """Return what the thread does. A job that is cancelled meanwhile keeps its place until its thread is free."""
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait({running})
        raise

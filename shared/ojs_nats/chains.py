"""Chains of middleware: functions around each push of an app and each run of its handlers (ojs-middleware)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, TypeVar

from ojs_nats.jobs import JobRequest
from ojs_nats.worker._context import JobContext

__all__ = [
    "Chain",
    "EnqueueChain",
    "EnqueueMiddleware",
    "EnqueueNext",
    "ExecutionChain",
    "ExecutionMiddleware",
    "ExecutionNext",
]

EnqueueNext = Callable[[JobRequest[object]], Awaitable[JobRequest[object] | None]]
EnqueueMiddleware = Callable[[JobRequest[object], EnqueueNext], Awaitable[JobRequest[object] | None]]
ExecutionNext = Callable[[], Awaitable[object]]
ExecutionMiddleware = Callable[[JobContext, ExecutionNext], Awaitable[object]]

M = TypeVar("M", bound=Callable[..., Awaitable[Any]])


class Chain(Generic[M]):
    """A chain of middleware, the first one outermost. Build it before the first push, or before the worker starts.

    Each has a name: the one that it is added under, or that of its function or class. If two have the same name, the
    first is meant.
    """

    def __init__(self) -> None:
        self._items: list[tuple[str, M]] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The names, from the outermost to the innermost."""
        return tuple(name for name, _ in self._items)

    def __iter__(self) -> Iterator[M]:
        return (middleware for _, middleware in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, middleware: M, name: str | None = None) -> M:
        """Append a middleware as the innermost.

        Args:
            middleware: The function or object.
            name: Its name in the chain. None means that of its function or class.

        Returns:
            The middleware, so that this can decorate a function.
        """
        return self._insert(len(self._items), middleware, name)

    def prepend(self, middleware: M, name: str | None = None) -> M:
        """Insert a middleware as the outermost.

        Args:
            middleware: The function or object.
            name: Its name in the chain. None means that of its function or class.

        Returns:
            The middleware, so that this can decorate a function.
        """
        return self._insert(0, middleware, name)

    def insert_before(self, existing: str, middleware: M, name: str | None = None) -> M:
        """Insert a middleware just outside another one.

        Args:
            existing: The name of the other one.
            middleware: The function or object.
            name: Its name in the chain. None means that of its function or class.

        Raises:
            LookupError: There is no middleware named `existing`.
        """
        return self._insert(self._index(existing), middleware, name)

    def insert_after(self, existing: str, middleware: M, name: str | None = None) -> M:
        """Insert a middleware just inside another one.

        Args:
            existing: The name of the other one.
            middleware: The function or object.
            name: Its name in the chain. None means that of its function or class.

        Raises:
            LookupError: There is no middleware named `existing`.
        """
        return self._insert(self._index(existing) + 1, middleware, name)

    def remove(self, name: str) -> None:
        """Remove a middleware.

        Raises:
            LookupError: There is no middleware of that name.
        """
        del self._items[self._index(name)]

    def _insert(self, index: int, middleware: M, name: str | None) -> M:
        self._items.insert(index, (name or str(getattr(middleware, "__name__", type(middleware).__name__)), middleware))
        return middleware

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise LookupError(f"no middleware is named {name!r}, only: {', '.join(self.names) or 'the chain is empty'}")
        return self.names.index(name)


class EnqueueChain(Chain[EnqueueMiddleware]):
    """The middleware around pushes: `async def middleware(new, next)`, which calls `await next(new)`.

    `next` runs the rest of the chain and returns the job as it leaves the chain. A middleware may change anything but
    the job's id, as in `await next(new.with_options(priority=5))`. Returning None drops the job, and the push raises
    `JobDropped`. An exception is raised by the push.

    Example:
        >>> from ojs_nats import App
        >>> app = App()
        >>> @app.enqueue.add
        ... async def tenant(new, next):
        ...     return await next(new.with_options(meta={"tenant": "acme"}))
        >>> app.enqueue.names
        ('tenant',)
    """


class ExecutionChain(Chain[ExecutionMiddleware]):
    """The middleware around handlers: `async def middleware(ctx, next)`, which calls `await next()`.

    `next` runs the rest of the chain and the handler; it returns or raises what the handler does. The middleware's own
    result is the job's result, and its exception is the job's error. If it doesn't call `next`, the handler doesn't
    run. A middleware may replace `ctx.job`, from which the handler's arguments are taken.
    """

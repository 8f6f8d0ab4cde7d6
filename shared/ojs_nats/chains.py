"""Middleware: functions around every push of an app, and around every run of its handlers (ojs-middleware)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ojs_nats.jobs import JobRequest

if TYPE_CHECKING:
    from ojs_nats.worker.context import JobContext

EnqueueNext = Callable[[JobRequest[Any]], Awaitable[JobRequest[Any] | None]]
EnqueueMiddleware = Callable[[JobRequest[Any], EnqueueNext], Awaitable[JobRequest[Any] | None]]
ExecutionNext = Callable[[], Awaitable[Any]]
ExecutionMiddleware = Callable[["JobContext", ExecutionNext], Awaitable[Any]]

M = TypeVar("M", bound=Callable[..., Awaitable[Any]])


class Chain(Generic[M]):
    """The first one is the outermost.

    Each has a name: the one it is added under, else that of its function or class. Where two have the same, the first is
    meant. To be built before the first push, or the worker's start.
    """

    def __init__(self) -> None:
        self._items: list[tuple[str, M]] = []

    @property
    def names(self) -> tuple[str, ...]:
        """From the outermost to the innermost."""
        return tuple(name for name, _ in self._items)

    def __iter__(self) -> Iterator[M]:
        return (middleware for _, middleware in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, middleware: M, name: str | None = None) -> M:
        """Append as the innermost. What was given comes back, so that it may decorate a function."""
        return self._insert(len(self._items), middleware, name)

    def prepend(self, middleware: M, name: str | None = None) -> M:
        """Put in front as the outermost."""
        return self._insert(0, middleware, name)

    def insert_before(self, existing: str, middleware: M, name: str | None = None) -> M:
        """Put just outside the one called `existing`. Raises LookupError if there is none."""
        return self._insert(self._index(existing), middleware, name)

    def insert_after(self, existing: str, middleware: M, name: str | None = None) -> M:
        """Put just inside the one called `existing`. Raises LookupError if there is none."""
        return self._insert(self._index(existing) + 1, middleware, name)

    def remove(self, name: str) -> None:
        """Take one out. Raises LookupError if there is none of that name."""
        del self._items[self._index(name)]

    def _insert(self, index: int, middleware: M, name: str | None) -> M:
        self._items.insert(index, (name or str(getattr(middleware, "__name__", type(middleware).__name__)), middleware))
        return middleware

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise LookupError(f"no middleware is named {name!r}, only: {', '.join(self.names) or 'the chain is empty'}")
        return self.names.index(name)


class EnqueueChain(Chain[EnqueueMiddleware]):
    """`async def middleware(new, next)`: `await next(new)` runs the rest and gives the job as it leaves the chain.

    All of a job but its id may be changed: `await next(new.with_options(priority=5))`. None drops it; an exception refuses
    it, and reaches whoever pushes.
    """

    async def run(self, new: JobRequest[Any]) -> JobRequest[Any] | None:
        """The job as it is to be pushed, or None if it isn't to be."""
        left = await self._step(0, new)
        if left is not None and left.id != new.id:
            raise ValueError(f"middleware can't change a job's id ({new.id} became {left.id}): change its other members")
        return left

    async def _step(self, index: int, new: JobRequest[Any]) -> JobRequest[Any] | None:
        if index == len(self._items):
            return new
        return await self._items[index][1](new, lambda changed: self._step(index + 1, changed))


class ExecutionChain(Chain[ExecutionMiddleware]):
    """`async def middleware(ctx, next)`: `await next()` runs the rest, and returns or raises what the handler does.

    What a middleware returns is the job's result, what it raises is its error. It may not call `next`, and so the handler
    doesn't run. `ctx.job` is what the handler's arguments are taken from; a middleware may put another one there.
    """

    async def run(self, context: JobContext, handler: ExecutionNext) -> Any:
        return await self._step(0, context, handler)

    def _step(self, index: int, context: JobContext, handler: ExecutionNext) -> Awaitable[Any]:
        if index == len(self._items):
            return handler()
        name, middleware = self._items[index]
        called = False

        def following() -> Awaitable[Any]:
            nonlocal called
            if called:
                raise RuntimeError(f"the middleware {name!r} has called next() twice: a handler runs once in an attempt")
            called = True
            return self._step(index + 1, context, handler)

        return middleware(context, following)

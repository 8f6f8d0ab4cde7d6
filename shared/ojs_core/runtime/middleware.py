"""Enqueue middleware: functions around every push, on the server (ojs-middleware).

A middleware is an async callable `(job, next) -> job | None`. `job` is the whole envelope as a dict of plain values with the
options flat beside `type` and `args`; `await next(job)` runs the rest of the chain and returns what came of it. Anything but
`id` may be changed, the result is validated again. None drops the job: its client is told that nothing was enqueued. An
exception refuses it, with an `OjsError`'s own status and code.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

Envelope = dict[str, Any]
NextMiddleware = Callable[[Envelope], Awaitable[Envelope | None]]
EnqueueMiddleware = Callable[[Envelope, NextMiddleware], Awaitable[Envelope | None]]

_FROZEN: Final = "the enqueue chain is frozen: middleware can't change once the server accepts jobs"


class MiddlewareProblem(Exception):
    """A middleware can't be had; the message is one plain sentence."""


class EnqueueChain:
    """An ordered chain; the first one added is the outermost.

    Each middleware has a name: the one it is added under, else its `__name__`. The same name or function may occur more
    than once; `insert_before`, `insert_after` and `remove` then mean the first.
    """

    def __init__(self) -> None:
        self._items: list[tuple[str, EnqueueMiddleware]] = []
        self._frozen = False

    @classmethod
    def load(cls, paths: Iterable[str]) -> EnqueueChain:
        """A chain of import paths, `package.module:attribute`, each of which is its name, too. Raises MiddlewareProblem."""
        chain = cls()
        for path in paths:
            chain.add(_imported(path), name=path)
        return chain

    @property
    def names(self) -> tuple[str, ...]:
        """The chain from the outermost to the innermost."""
        return tuple(name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, middleware: EnqueueMiddleware, name: str | None = None) -> None:
        """Append as the innermost."""
        self._insert(len(self._items), middleware, name)

    def prepend(self, middleware: EnqueueMiddleware, name: str | None = None) -> None:
        """Put in front as the outermost."""
        self._insert(0, middleware, name)

    def insert_before(self, existing: str, middleware: EnqueueMiddleware, name: str | None = None) -> None:
        """Put just outside the one called `existing`. Raises LookupError if there is none."""
        self._insert(self._index(existing), middleware, name)

    def insert_after(self, existing: str, middleware: EnqueueMiddleware, name: str | None = None) -> None:
        """Put just inside the one called `existing`. Raises LookupError if there is none."""
        self._insert(self._index(existing) + 1, middleware, name)

    def remove(self, name: str) -> None:
        """Take one out. Raises LookupError if there is none of that name."""
        self._check_open()
        del self._items[self._index(name)]

    def freeze(self) -> None:
        """Refuse every change from now on."""
        self._frozen = True

    async def run(self, job: Envelope) -> Envelope | None:
        """The envelope as the chain leaves it, or None if a middleware dropped it."""
        return await self._step(0, job)

    async def _step(self, index: int, job: Envelope) -> Envelope | None:
        if index == len(self._items):
            return job

        async def following(changed: Envelope) -> Envelope | None:
            return await self._step(index + 1, changed)

        return await self._items[index][1](job, following)

    def _insert(self, index: int, middleware: EnqueueMiddleware, name: str | None) -> None:
        self._check_open()
        self._items.insert(index, (name or str(getattr(middleware, "__name__", type(middleware).__name__)), middleware))

    def _index(self, name: str) -> int:
        for index, (found, _) in enumerate(self._items):
            if found == name:
                return index
        known = ", ".join(self.names) or "it is empty"
        raise LookupError(f"no middleware named {name!r} in the enqueue chain ({known})")

    def _check_open(self) -> None:
        if self._frozen:
            raise RuntimeError(_FROZEN)


def _imported(path: str) -> EnqueueMiddleware:
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise MiddlewareProblem(f"enqueue middleware {path!r} is not an import path of the form package.module:attribute")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise MiddlewareProblem(f"enqueue middleware {path!r} can't be imported: {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise MiddlewareProblem(f"enqueue middleware {path!r} can't be imported: {module_name} has no {attribute!r}")
        found = getattr(found, name)
    if isinstance(found, type) or not callable(found):
        raise MiddlewareProblem(
            f"enqueue middleware {path!r} is neither an async function nor an object that is called like one"
        )
    middleware: EnqueueMiddleware = found
    return middleware

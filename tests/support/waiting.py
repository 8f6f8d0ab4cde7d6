"""Waiting for a condition with a deadline, in place of sleeping for a guess."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar, overload

from ojs_engine.base.errors import OjsError

T = TypeVar("T")

PATIENCE_S: Final = 60.0
"""How long a busy machine may take for what is waited for. It costs time only in a test that fails."""
_SHARE: Final = 6
"""A pause between two looks is this part of the time that has gone by: most looks ask a server, which costs CPU."""
_SHORTEST_S: Final = 0.02
_LONGEST_S: Final = 0.25


def until(condition: Callable[[], T], seconds: float = PATIENCE_S, *, every: float | None = None) -> T:
    """Poll until the condition holds, and return what it returned; the condition's name says what was missing.

    The longer it takes, the longer are the pauses between two looks, unless `every` says how long they are.
    """
    begun = time.monotonic()
    while True:
        if found := condition():
            return found
        if time.monotonic() > begun + seconds:
            raise AssertionError(_missing(condition, seconds))
        time.sleep(_pause(begun, every))


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], seconds: float = PATIENCE_S, *, every: float | None = None
) -> T: ...


@overload
async def eventually(condition: Callable[[], T], seconds: float = PATIENCE_S, *, every: float | None = None) -> T: ...


async def eventually(condition: Callable[[], Any], seconds: float = PATIENCE_S, *, every: float | None = None) -> Any:
    """The same for tests with an event loop; the condition may be a coroutine function."""
    begun = time.monotonic()
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > begun + seconds:
            raise AssertionError(_missing(condition, seconds))
        await asyncio.sleep(_pause(begun, every))


async def answered(request: Callable[..., Awaitable[T]], *arguments: Any, patience_s: float = PATIENCE_S) -> T:
    """What a request returns once it isn't refused for the moment: a leader is being chosen, or a projector is behind."""
    found: list[T] = []

    async def given() -> bool:
        try:
            found.append(await request(*arguments))
        except OjsError as error:
            if error.code != "backend_unavailable":
                raise
        return bool(found)

    await eventually(given, patience_s)
    return found[0]


async def in_the_end(
    condition: Callable[[], Awaitable[object]],
    progress: Callable[[], Awaitable[object]],
    patience_s: float = PATIENCE_S,
    *,
    every: float = 0.25,
) -> None:
    """The same for work that takes as long as it takes: the deadline begins anew whenever `progress` returns something else."""
    deadline, reached = 0.0, object()
    while not await condition():
        now = time.monotonic()
        before, reached = reached, await progress()
        if reached != before:
            deadline = now + patience_s
        elif now > deadline:
            raise AssertionError(f"{_missing(condition, patience_s)} after it had come to {reached}")
        await asyncio.sleep(every)


def _pause(begun: float, every: float | None) -> float:
    return max(_SHORTEST_S, min((time.monotonic() - begun) / _SHARE, _LONGEST_S)) if every is None else every


def _missing(condition: Callable[[], object], seconds: float) -> str:
    function = condition.func if isinstance(condition, partial) else condition
    name = getattr(function, "__qualname__", repr(function))
    return f"{name} ({inspect.getfile(function)}) didn't hold within {seconds:g} s"

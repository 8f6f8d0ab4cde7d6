"""Many things at the same time, but not all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE: Final = 64
"""Jobs of one request that are worked on at a time; others have requests, too."""


def portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, up to `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


async def in_portions(items: Sequence[T], one: Callable[[T], Awaitable[R]], at_once: int) -> list[R]:
    """What `one` makes of each item, in order: `at_once` begin together, the next ones when all of those have ended."""
    made: list[R] = []
    for portion in portions(items, at_once):
        made += await asyncio.gather(*map(one, portion))
    return made

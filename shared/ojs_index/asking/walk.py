"""Everything that fits a question, for those who act on all of it or sum it up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import msgspec

from ojs_index.asking.client import Queries, settled
from ojs_index.asking.messages import MAX_PAGE, JobsAsk, PageAnswer, PageAsk, WorkerRow, WorkersAsk

A = TypeVar("A", bound=PageAsk | JobsAsk)
P = TypeVar("P", bound=PageAnswer)


async def walk(question: Callable[[A], Awaitable[P]], ask: A) -> AsyncIterator[P]:
    """The answers to `ask`, as large as they may be, from its cursor to the end of the list.

    A page begins behind the last row of the one before, in the order of what doesn't change of a row that stays. So whatever
    becomes of what was found, or can't be done to it, nothing is met twice and the walk gets to the end; what is new meanwhile
    stands ahead of the walk where the newest come first, and else is met last. A page may be empty and not be the last.

    How much one request does is for whoever walks to bound, by breaking off.

    Raises OjsError backend_unavailable, also at any page while the index is built anew: half an index is no answer to "all".
    """
    while True:
        page = settled(await question(msgspec.structs.replace(ask, limit=MAX_PAGE)))
        yield page
        if page.next_cursor is None:
            return
        ask = msgspec.structs.replace(ask, cursor=page.next_cursor)


async def live_workers(queries: Queries) -> list[WorkerRow]:
    """All workers that were heard of within 30 s. Raises OjsError backend_unavailable, also while the index is built anew."""
    return [row async for page in walk(queries.workers, WorkersAsk()) for row in page.workers if not row.stale]

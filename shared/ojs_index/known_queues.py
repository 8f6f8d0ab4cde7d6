"""Queues that somebody has configured, or pushed to."""

from __future__ import annotations

import asyncio

from ojs_engine.base.errors import not_found
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.store.store import Store
from ojs_index.asking.client import Queries, settled
from ojs_index.asking.numbers import Queue


async def known_queue(store: Store, queries: Queries, name: str) -> tuple[QueueRecord | None, Queue]:
    """Return what is set for a queue, and its numbers. Raises not_found if nobody ever configured it or pushed to it."""
    record, queue = await asyncio.gather(store.queues.get(name), queries.queue(name))
    if record is None and queue.created_at is None:
        settled(queue)
        raise not_found("queue", name)
    return record, queue

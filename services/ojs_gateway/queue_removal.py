"""Emptying and removing queues (ojs-queue-config §6.1, ojs-admin-api §6.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from ojs_engine.base.errors import OjsError, not_found, unless_moved_on
from ojs_engine.base.portions import AT_ONCE, in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import TERMINAL, State
from ojs_engine.domain.queues import record as queue_record
from ojs_engine.domain.queues.config import DEFAULT_QUEUE
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.store.announce import announce
from ojs_engine.store.store import Store
from ojs_engine.wire.queues.requests import Deletion, Purge
from ojs_index.asking.client import Queries, settled
from ojs_index.asking.messages import JobsAsk
from ojs_index.asking.walk import walk

Act = Callable[[str], Awaitable[None]]


class Emptied(NamedTuple):
    """How many jobs were removed or moved, and how many there may be more."""

    done: int
    remaining: int


class QueueRemoval:
    """Goes through the jobs of a queue as the index lists them, the oldest first."""

    def __init__(self, store: Store, queries: Queries, max_jobs: int = 5_000) -> None:
        """`max_jobs` is what one request changes; it says how many remain, and can be repeated."""
        self._max_jobs = max_jobs
        self._store = store
        self._queries = queries

    async def purge(self, name: str, asked: Purge) -> Emptied:
        """Remove the jobs in some states, up to `max_jobs`."""
        return await self._all(name, asked.states, self._remove, asked.before)

    async def delete(self, name: str, asked: Deletion) -> Emptied:
        """Have a queue drain, and delete it once nothing is left: `remaining` is 0 then, else it is to be called again.

        Raises OjsError not_found, and conflict if there are jobs that are not to be touched.
        """
        before = await self._store.queues.get(name)
        queue = settled(await self._queries.queue(name))
        if before is None and queue.created_at is None:
            raise not_found("queue", name)
        await self._store.queues.change(name, lambda old, moment: queue_record.draining(old, name, moment))
        affected = 0
        if asked.strategy != "reject":
            in_order = asked.strategy == "move"
            affected, _ = await self._all(name, transitions.WAITING, self._clearing(asked), at_once=1 if in_order else AT_ONCE)
        left = await self._left(name)
        if left and asked.strategy == "reject":
            await self._restore(name, before)
            message = f"queue {name!r} holds {left} unfinished jobs; choose strategy discard or move, or wait for them"
            raise OjsError("conflict", message, details={"queue": name, "jobs": left}, canonical="QUEUE_NOT_EMPTY")
        if not left:
            await self._store.queues.change(
                name, lambda old, moment: None if old is None else queue_record.deleted(old, moment)
            )
            await tell_of_queue(self._store, "queue.deleted", name)
        return Emptied(affected, left)

    async def _restore(self, name: str, before: QueueRecord | None) -> None:
        def decide(old: QueueRecord | None, moment: transitions.Moment) -> QueueRecord | None:
            if old is None or old.state != "draining":  # somebody else has decided meanwhile
                return None
            if before is None:
                return queue_record.deleted(old, moment)
            return msgspec.structs.replace(before, op=moment.op)

        await self._store.queues.change(name, decide)

    def _clearing(self, asked: Deletion) -> Act:
        async def act(job_id: str) -> None:
            target = asked.target_queue
            if target is None:
                await self._store.jobs.change(job_id, lambda job, moment: transitions.drop(job, "queue_deleted", moment))
            else:
                await self._store.jobs.change(job_id, lambda job, moment: transitions.move(job, target, moment))

        return act

    async def _remove(self, job_id: str) -> None:
        """A job that waits is cancelled first, so that whatever depends on its end hears of it."""
        if not (await self._store.jobs.get(job_id)).terminal:
            await self._store.jobs.change(job_id, lambda job, moment: transitions.cancel(job, moment, "purged"))
        await self._store.jobs.change(job_id, transitions.remove)

    async def _left(self, name: str) -> int:
        counts = msgspec.structs.asdict(settled(await self._queries.queue(name)).counts)
        return sum(counts[state] for state in State if state not in TERMINAL)

    async def _all(
        self, queue: str, states: tuple[State, ...], act: Act, before: int | None = None, at_once: int = AT_ONCE
    ) -> Emptied:
        """Act on the queue's jobs in some states, the oldest of each first: how many, and how many there may be more.

        Jobs that have moved on meanwhile are let be. `before` (Unix ms) leaves out those that ended later, or don't wait
        that long.
        """
        until = None if before is None else before - 1
        ids: list[str] = []
        remaining = 0
        for state in states:
            seen = total = 0
            async for page in walk(self._queries.jobs, JobsAsk(queue=queue, state=state, ascending=True, until=until)):
                total = total or page.total or 0
                wanted = [row.id for row in page.jobs if before is None or (row.finished_at or row.created_at) < before]
                taken = wanted[: self._max_jobs - len(ids)]
                ids += taken
                seen += len(page.jobs)
                if len(ids) >= self._max_jobs:
                    # Beyond what the index counts it is only certain that there are some.
                    remaining += max(total - seen, int(page.next_cursor is not None)) + len(wanted) - len(taken)
                    break
        return Emptied(sum(await in_portions(ids, lambda job_id: unless_moved_on(act(job_id)), at_once)), remaining)


async def tell_of_queue(store: Store, event_type: str, name: str) -> None:
    """Publish an event of a queue; the default settings are none."""
    if name != DEFAULT_QUEUE:
        await announce(store, event_type, scope=name, subject=name, data={"queue": name})

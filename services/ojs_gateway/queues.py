"""Queues: create, read, configure, pause, resume, purge, delete (requirements §12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
import structlog

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_nats import queues as pure
from ojs_nats import transitions
from ojs_nats.errors import OjsError, not_found
from ojs_nats.events.announce import announce
from ojs_nats.job import TERMINAL, State
from ojs_nats.queries import MAX_PAGE, JobsAsk, settled
from ojs_nats.queues import DEFAULT_QUEUE, NOT_SET, Patch, QueueRecord
from ojs_nats.wire.fields import queue_name
from ojs_nats.wire.lists import queue_stats_view, with_progress
from ojs_nats.wire.output import encode
from ojs_nats.wire.queues import (
    Deletion,
    config_view,
    parse_config,
    parse_create,
    parse_deletion,
    parse_purge,
    parse_queue_limit,
    queue_view,
    state_view,
)
from ojs_nats.wire.statistics import lately_view

__all__ = ["Queues"]

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 32
"""Jobs of one request that are changed at the same time."""
_MAX_JOBS: Final = 5_000
"""Jobs that one request changes; it says how many remain, and can be repeated."""

Act = Callable[[str], Awaitable[None]]


class Queues:
    """Handlers under /queues and /admin/queues. Any name stands for a queue; `_default` for the policy of all of them."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    # Configuration

    async def create(self, call: Call) -> Answer:
        """POST /queues: 201, or 409 if it was created before."""
        name, patch = parse_create(await call.body(), self._limits)
        record = await self._store.queues.change(
            name, lambda old, moment: pure.created(old, name, pure.patched(NOT_SET, patch), moment)
        )
        await self._tell("queue.created", name)
        view = await self._view(name, record, None)
        return Answer(201, encode(view), (("Location", f"/ojs/v1/queues/{name}"),))

    async def read(self, call: Call) -> Answer:
        """GET /queues/{name}: settings and numbers; 404 if nobody ever configured it or pushed to it."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record, queue = await asyncio.gather(self._store.queues.get(name), self._queries.queue(name))
        if record is None and queue.created_at is None:
            settled(queue)
            raise not_found("queue", name)
        now = self._store.clock.now()
        stats = queue_stats_view(queue, record, now=now, as_text=True)
        view = await self._view(name, record, queue.created_at)
        view |= {
            "stats": stats["stats"],
            "counts": msgspec.structs.asdict(queue.counts),
            "depth": queue.counts.available,
            "running": queue.counts.active,
            **lately_view(queue, now),
        }
        return Answer(200, encode(with_progress(view, queue)))

    async def read_config(self, call: Call) -> Answer:
        """GET /queues/{name}/config: what is set for the queue or below it."""
        name = self._name(call)
        record = await self._store.queues.get(name)
        return Answer(200, encode(await self._view(name, record, None)))

    async def configure(self, call: Call) -> Answer:
        """PUT /queues/{name}/config: sets what is sent, takes back what is null. Jobs that are queued keep what they have."""
        name = self._name(call)
        return await self._configure(name, parse_config(await call.body(), self._limits))

    async def _configure(self, name: str, patch: Patch) -> Answer:
        def decide(old: QueueRecord | None, moment: transitions.Moment) -> QueueRecord:
            standing = old.config if old is not None and old.state != "deleted" else NOT_SET
            return pure.configured(old, name, pure.patched(standing, patch), moment)

        record = await self._store.queues.change(name, decide)
        await self._tell("queue.config_updated", name)
        return Answer(200, encode(await self._view(name, record, None)))

    async def limit(self, call: Call) -> Answer:
        """PUT /admin/queues/{name}/rate-limit `{concurrency, rate: {limit, period}}` (ojs-rate-limiting §7.2)."""
        name = self._name(call)
        patch = parse_queue_limit(await call.body(), self._limits)
        return await self._configure(name, patch)

    # Pause

    async def pause(self, call: Call) -> Answer:
        """POST /queues/{name}/pause: once this is answered, nothing is fetched from it, through whichever gateway."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record = await self._store.queues.pause(name)
        await self._tell("queue.paused", name)
        return Answer(200, encode(state_view(name, record, as_text=call.dialect.queue_as_text)))

    async def resume(self, call: Call) -> Answer:
        """POST /queues/{name}/resume: ends a pause, and a drain."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        record = await self._store.queues.resume(name)
        await self._tell("queue.resumed", name)
        return Answer(200, encode(state_view(name, record, as_text=call.dialect.queue_as_text)))

    # Clearing

    async def purge(self, call: Call) -> Answer:
        """POST /queues/{name}/purge: removes the jobs that wait, or those in the `states` that the body names."""
        return await self._purge(call, confirmed=True)

    async def purge_states(self, call: Call) -> Answer:
        """DELETE /admin/queues/{name}/jobs `{states, older_than, confirm: true}` (ojs-admin-api §6.5)."""
        return await self._purge(call, confirmed=False)

    async def _purge(self, call: Call, *, confirmed: bool) -> Answer:
        asked = parse_purge(await call.body(), self._store.clock.now(), self._limits, confirmed=confirmed)
        name = queue_name(call.parameters[0], "queue", self._limits)
        done, remaining = await self._all(name, asked.states, self._remove, asked.before)
        view = {"queue": name, "purged_count": done, "purged": done, "deleted": done, "remaining": remaining}
        return Answer(200, encode(view | {"has_more": remaining > 0, "states": asked.states}))

    async def delete(self, call: Call) -> Answer:
        """DELETE /queues/{name}: 200 when it is gone, 202 while jobs of it are left, 409 if they are not to be touched.

        The queue drains meanwhile: it takes no jobs. A request that is answered 202 goes on when it is repeated.
        """
        name = queue_name(call.parameters[0], "queue", self._limits)
        asked = parse_deletion(await call.body(), call.queries, name, self._limits)
        before = await self._store.queues.get(name)
        queue = settled(await self._queries.queue(name))
        if before is None and queue.created_at is None:
            raise not_found("queue", name)
        await self._store.queues.change(name, lambda old, moment: pure.draining(old, name, moment))
        affected = 0
        if asked.strategy != "reject":
            in_order = asked.strategy == "move"
            affected, _ = await self._all(name, transitions.WAITING, self._clearing(asked), at_once=1 if in_order else _AT_ONCE)
        left = await self._left(name)
        if left and asked.strategy == "reject":
            await self._restore(name, before)
            message = f"queue {name!r} holds {left} unfinished jobs; choose strategy discard or move, or wait for them"
            raise OjsError("conflict", message, details={"queue": name, "jobs": left}, canonical="QUEUE_NOT_EMPTY")
        if not left:
            await self._store.queues.change(name, lambda old, moment: None if old is None else pure.deleted(old, moment))
            await self._tell("queue.deleted", name)
        view: dict[str, Any] = {"queue": name, "name": name, "strategy": asked.strategy, "jobs_affected": affected}
        if asked.target_queue is not None:
            view["target_queue"] = asked.target_queue
        view |= {"jobs_remaining": left, "state": "draining" if left else "deleted"}
        return Answer(202 if left else 200, encode(view))

    async def _restore(self, name: str, before: QueueRecord | None) -> None:
        def decide(old: QueueRecord | None, moment: transitions.Moment) -> QueueRecord | None:
            if old is None or old.state != "draining":  # somebody else has decided meanwhile
                return None
            if before is None:
                return pure.deleted(old, moment)
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
        self, queue: str, states: tuple[State, ...], act: Act, before: int | None = None, at_once: int = _AT_ONCE
    ) -> tuple[int, int]:
        """Act on the queue's jobs in some states, the oldest of each first: how many, and how many there may be more.

        Jobs that have moved on meanwhile are let be. `before` (Unix ms) leaves out those that ended later, or don't wait
        that long.
        """
        until = None if before is None else before - 1
        ids: list[str] = []
        remaining = 0
        for state in states:
            ask = JobsAsk(queue=queue, state=state, ascending=True, until=until, limit=MAX_PAGE)
            seen = total = 0
            while True:
                page = settled(await self._queries.jobs(ask))
                total = total or page.total or 0
                wanted = [row.id for row in page.jobs if before is None or (row.finished_at or row.created_at) < before]
                taken = wanted[: _MAX_JOBS - len(ids)]
                ids += taken
                seen += len(page.jobs)
                if page.next_cursor is None or len(ids) >= _MAX_JOBS:
                    break
                ask = msgspec.structs.replace(ask, cursor=page.next_cursor)
            # Beyond what the index counts it is only certain that there are some.
            remaining += max(total - seen, int(page.next_cursor is not None)) + len(wanted) - len(taken)
        done = 0
        for start in range(0, len(ids), at_once):
            done += sum(await asyncio.gather(*(_acted(act, job_id) for job_id in ids[start : start + at_once])))
        return done, remaining

    # Shared

    def _name(self, call: Call) -> str:
        """The queue of the path, or `_default`."""
        name = call.parameters[0]
        return name if name == DEFAULT_QUEUE else queue_name(name, "queue", self._limits)

    async def _view(self, name: str, record: QueueRecord | None, created_at: int | None) -> dict[str, Any]:
        common = await self._store.queues.get(DEFAULT_QUEUE) if name != DEFAULT_QUEUE else None
        own = NOT_SET if record is None else record.config
        effective = own if common is None else pure.layered(common.config, own)
        view = queue_view(name, record, effective, created_at)
        return view | {"own_config": config_view(own)}

    async def _tell(self, event_type: str, name: str) -> None:
        if name != DEFAULT_QUEUE:
            await announce(self._store, event_type, scope=name, subject=name, data={"queue": name})


async def _acted(act: Act, job_id: str) -> bool:
    try:
        await act(job_id)
    except OjsError as error:
        if error.code not in {"not_found", "conflict"}:
            raise
        return False
    return True

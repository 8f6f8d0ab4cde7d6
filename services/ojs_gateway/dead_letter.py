"""The dead letter queue: lists, statistics, manual retry and deletion, one by one or by filter (requirements §14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_gateway.lists import whole_jobs
from ojs_nats import transitions
from ojs_nats.errors import OjsError, invalid, not_found
from ojs_nats.job import Job, State
from ojs_nats.queries import MAX_PAGE, DeadLettersAsk, settled
from ojs_nats.queues import DEFAULT_QUEUE, NOT_SET
from ojs_nats.transitions import Moment, Override, Transition
from ojs_nats.wire.fields import before_ms, queue_name, shown, struct_of, timestamp
from ojs_nats.wire.ids import job_id_of
from ojs_nats.wire.lists import dead_letter_stats_view, job_detail, jobs_view
from ojs_nats.wire.output import encode, job_body
from ojs_nats.wire.pages import Page, parse_page
from ojs_nats.wire.worker import parse_override

__all__ = [
    "DeadBulk",
    "DeadFilter",
    "DeadLetter",
]

_AT_ONCE: Final = 32
"""Jobs of a bulk request that are changed at the same time."""
_MAX_BULK: Final = 10_000
"""Jobs that one bulk request changes; its answer says how many remain."""


_MAX_ERRORS: Final = 100
"""Skipped jobs of which the answer says why."""


class DeadFilter(Struct, frozen=True, forbid_unknown_fields=True):
    queue: str | None = None
    type: str | None = None
    error_type: str | None = None
    since: str | None = None
    until: str | None = None
    older_than: str | int | float | None = None
    state: str | None = None
    """Dead letters are discarded; any other state selects none of them."""


class DeadBulk(Struct, frozen=True, forbid_unknown_fields=True):
    """What no filter has is refused: a misspelt member would change more than was meant."""

    filter: DeadFilter | None = None
    older_than: str | int | float | None = None
    confirm: bool | None = None


class DeadQuery(DeadFilter, frozen=True):
    confirm: bool | None = None


class _Outcome(NamedTuple):
    matched: int
    done: int
    skipped: int
    errors: list[dict[str, str]]


class DeadLetter:
    """Handlers under /dead-letter. A job that is not there is `not_found`, whatever else it is."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    async def list(self, call: Call) -> Answer:
        """GET /dead-letter?queue&type&error_type&since&until: the latest first."""
        return await self._list(call, parse_page(call.queries))

    async def admin_list(self, call: Call) -> Answer:
        """GET /admin/dead-letter: the same, in numbered pages."""
        return await self._list(call, parse_page(call.queries, numbered=True))

    async def _list(self, call: Call, asked: Page) -> Answer:
        named = {name: value for name, value in call.queries.items() if name in DeadFilter.__struct_fields__}
        wanted = self._asked(msgspec.convert(named, DeadFilter))
        page = await self._queries.dead_letters(
            msgspec.structs.replace(wanted, limit=asked.limit, cursor=asked.cursor, offset=asked.offset, whole=True)
        )
        jobs, cursor = await whole_jobs(self._store, page, "finished_at")
        return Answer(200, encode(jobs_view(jobs, page, asked, page.total, cursor)))

    async def read(self, call: Call) -> Answer:
        """GET /dead-letter/{id}."""
        job = _dead(await self._store.jobs.get(job_id_of(call.parameters[0])))
        view = job_detail(job)
        return Answer(200, encode({**view, "job": view} if call.dialect.flat_job else {"job": view}))

    async def stats(self, call: Call) -> Answer:
        """GET /dead-letter/stats?queue: with the retention of that queue, or of those that nobody configured."""
        queue = call.query("queue") or None
        if queue is not None:
            queue = queue_name(queue, "queue", self._limits)
        stats, settings = await asyncio.gather(
            self._queries.dead_letter_stats(queue), self._store.queues.settings(queue or DEFAULT_QUEUE)
        )
        return Answer(200, encode(dead_letter_stats_view(stats, NOT_SET if settings is None else settings.config)))

    async def retry(self, call: Call) -> Answer:
        """POST /dead-letter/{id}/retry: a new life under the same id, changed by `override` if the body has one."""
        override = parse_override(await call.body(), self._limits)

        def decide(job: Job, moment: Moment) -> Transition:
            return transitions.retry_discarded(_dead(job), override(job), moment)

        change = await self._store.jobs.revive(job_id_of(call.parameters[0]), decide)
        return Answer(200, job_body(change.after))

    async def delete(self, call: Call) -> Answer:
        """DELETE /dead-letter/{id}."""
        job_id = job_id_of(call.parameters[0])
        await self._delete(job_id)
        return Answer(200, encode({"deleted": True, "job_id": job_id}))

    async def admin_delete(self, call: Call) -> Answer:
        """DELETE /admin/dead-letter/{id}: answers 204 (ojs-admin-api §6.5)."""
        await self._delete(job_id_of(call.parameters[0]))
        return Answer(204, b"")

    async def retry_all(self, call: Call) -> Answer:
        """POST /dead-letter/retry `{filter, confirm: true}`."""
        outcome = await self._all(await self._bulk(call), self._retry)
        return Answer(200, encode(_bulk_view("retry", outcome)))

    async def clear(self, call: Call) -> Answer:
        """DELETE /dead-letter `{filter, older_than, confirm: true}`, or the same in the query."""
        outcome = await self._all(await self._bulk(call), self._delete)
        return Answer(200, encode(_bulk_view("delete", outcome)))

    async def purge(self, call: Call) -> Answer:
        """POST /dead-letter/purge?older_than=7d: the same, confirmed by its name (ojs CLI)."""
        outcome = await self._all(await self._bulk(call, confirmed=True), self._delete)
        return Answer(200, encode(_bulk_view("delete", outcome)))

    async def _bulk(self, call: Call, *, confirmed: bool = False) -> DeadLettersAsk:
        body = await call.body()
        if body:
            asked = struct_of(body, DeadBulk)
        else:
            query = struct_of(encode(dict(call.queries)), DeadQuery, strict=False)
            asked = DeadBulk(query, None, query.confirm)
        if not (confirmed if asked.confirm is None else asked.confirm):
            raise invalid("confirm", "this changes every dead letter that matches the filter; send confirm: true to do it")
        wanted = asked.filter or DeadFilter()
        for name, value in msgspec.structs.asdict(wanted).items():
            if value == "":  # somebody's form with a field that was not filled in
                raise invalid(name, f"{name} is empty; leave it out to match any")
        if asked.older_than is not None:
            wanted = msgspec.structs.replace(wanted, older_than=asked.older_than)
        return self._asked(wanted)

    def _asked(self, wanted: DeadFilter) -> DeadLettersAsk:
        until = timestamp(wanted.until, "until")
        if wanted.older_than is not None:
            before = before_ms(wanted.older_than, "older_than", self._store.clock.now(), self._limits)
            until = before - 1 if until is None else min(until, before - 1)
        if wanted.state not in {None, "", State.DISCARDED}:
            raise invalid("state", f"state must be discarded, as every dead letter is, not {shown(wanted.state)}")
        return DeadLettersAsk(
            queue=wanted.queue or None,
            type=wanted.type or None,
            error_type=wanted.error_type or None,
            since=timestamp(wanted.since, "since"),
            until=until,
        )

    async def _all(self, wanted: DeadLettersAsk, change: Callable[[str], Awaitable[None]]) -> _Outcome:
        """Change everything that matches, page by page; what has left meanwhile is skipped."""
        matched: int | None = None
        done = skipped = 0
        errors: list[dict[str, str]] = []
        cursor: str | None = None
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(job_id: str) -> bool:
            async with limit:
                try:
                    await change(job_id)
                except OjsError as error:
                    if error.code not in {"not_found", "conflict", "duplicate"}:
                        raise
                    if len(errors) < _MAX_ERRORS:
                        errors.append({"job_id": job_id, "error": error.message})
                    return False
                return True

        while done + skipped < _MAX_BULK:
            page = settled(await self._queries.dead_letters(msgspec.structs.replace(wanted, limit=MAX_PAGE, cursor=cursor)))
            matched = page.total if matched is None else matched
            changed = await asyncio.gather(*(one(row.id) for row in page.jobs))
            done += sum(changed)
            skipped += len(changed) - sum(changed)
            cursor = page.next_cursor
            if cursor is None:
                break
        return _Outcome(matched or 0, done, skipped, errors)

    async def _retry(self, job_id: str) -> None:
        def decide(job: Job, moment: Moment) -> Transition:
            return transitions.retry_discarded(_dead(job), Override(), moment)

        await self._store.jobs.revive(job_id, decide)

    async def _delete(self, job_id: str) -> None:
        await self._store.jobs.change(job_id, lambda job, moment: transitions.delete(_dead(job), moment))


def _dead(job: Job) -> Job:
    if not job.dead_letter:
        raise not_found("dead_letter", job.id)
    return job


def _bulk_view(action: str, outcome: _Outcome) -> dict[str, Any]:
    """`remaining` match as well and are left to the next request; the rest in the words of ojs-admin-api §8.1, too."""
    return {
        "action": action,
        "retried" if action == "retry" else "deleted": outcome.done,
        "skipped": outcome.skipped,
        "total_matched": outcome.matched,
        "remaining": max(outcome.matched - outcome.done - outcome.skipped, 0),
        "matched": outcome.done + outcome.skipped,
        "succeeded": outcome.done,
        "failed": outcome.skipped,
        "errors": outcome.errors,
    }

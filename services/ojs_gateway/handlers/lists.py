"""What people look at: lists of jobs and queues, statistics, one job in detail."""

from __future__ import annotations

import asyncio
from typing import Any, Final, get_args

from ojs_api import queues as contract
from ojs_api import words
from ojs_api.jobs import JobPage as JobPageAnswer
from ojs_engine.api.call import Call, Response
from ojs_engine.api.queries import searched
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import queue_name, shown, timestamp
from ojs_engine.base.ids import job_id_of
from ojs_engine.domain.job import State
from ojs_engine.domain.members import FOUND_BY
from ojs_engine.wire.jobs.filters import meta_members
from ojs_engine.wire.jobs.results import without_expired_result
from ojs_engine.wire.pages import Page, check_cursor, parse_page
from ojs_gateway.answers.queues import admin_queue_page, priority_stats, queue_page, queue_stats
from ojs_gateway.context import Context
from ojs_index.asking.messages import (
    JobsAsk,
    QueuesAsk,
    Sort,
    is_job_cursor,
)
from ojs_index.asking.numbers import QueuePage
from ojs_index.lists.jobs import BareJobDetail, admin_job_page, job_detail, job_page
from ojs_index.lists.whole_jobs import whole_jobs

_SORTS: Final[tuple[Sort, ...]] = get_args(Sort)
_ORDERS: Final = get_args(words.Order)


class ListHandlers:
    """Handlers of lists. All of them see everything that any gateway has answered before."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    async def jobs(self, call: Call) -> Response:
        """GET /jobs, by the filters of `JobsAsk` and in its orders: the newest first by default."""
        return Response(200, await self._jobs(call, parse_page(call.queries)))

    async def admin_jobs(self, call: Call) -> Response:
        """GET /admin/jobs: the same, in numbered pages."""
        return Response(200, admin_job_page(await self._jobs(call, parse_page(call.queries, numbered=True))))

    async def _jobs(self, call: Call, asked: Page) -> JobPageAnswer:
        sort = _sort(call.query("sort"))
        check_cursor(asked, lambda cursor: is_job_cursor(cursor, sort), f"a page sorted by {sort}")
        meta = meta_members(call.queries)
        call.require_payloads("meta", meta)
        queue, job_type = call.narrowed_to(call.query("queue") or None, call.query("type") or None)
        sought: dict[str, Any] = {by.name: call.query(by.name) or None for by in FOUND_BY}
        sought["worker"] = sought["worker"] or call.query("worker_id") or None
        page = await self._queries.jobs(
            JobsAsk(
                state=_state(call.query("state")),
                queue=queue,
                type=job_type,
                **sought,
                meta=meta,
                since=timestamp(call.query("since"), "since"),
                until=timestamp(call.query("until"), "until"),
                sort=sort,
                ascending=_ascending(call.query("order")),
                limit=asked.limit,
                cursor=asked.cursor,
                offset=asked.offset,
                whole=True,
            )
        )
        jobs, cursor = await whole_jobs(self._store, page, sort)
        jobs = [job for job in jobs if call.sees(job.queue, job.type)]  # some have moved since
        return job_page(jobs, page, asked, page.total, cursor)

    async def detail(self, call: Call) -> Response:
        """GET /admin/jobs/{id}: the bare job with its timeline and timers."""
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        job = without_expired_result(job, self._store.clock.now())
        return Response(200, BareJobDetail(job_detail(await self._store.blobs.whole(job))))

    async def queues(self, call: Call) -> Response:
        """GET /queues: by name, each with its counts."""
        page, _ = await self._queues(call, parse_page(call.queries))
        return Response(200, page)

    async def admin_queues(self, call: Call) -> Response:
        """GET /admin/queues: the same in numbered pages, with how they got on."""
        page, found = await self._queues(call, parse_page(call.queries, numbered=True), backlog=True)
        return Response(200, admin_queue_page(page, found))

    async def _queues(self, call: Call, asked: Page, *, backlog: bool = False) -> tuple[contract.QueuePage, QueuePage]:
        call.held = True  # about each queue; there may be none
        configured = await self._store.queues.all()
        records = {name: record for name, record in configured.items() if call.sees(name)}
        ask = QueuesAsk(
            also=tuple(records),
            patterns=call.queue_patterns(),
            search=searched(call, self._limits),
            limit=asked.limit,
            cursor=asked.cursor,
            offset=asked.offset,
            backlog=backlog,
        )
        found = await self._queries.queues(ask)
        return queue_page(found, asked, records, self._store.clock.now()), found

    async def priority_stats(self, call: Call) -> Response:
        """GET /queues/{name}/priority-stats: what waits to be fetched, by priority."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        return Response(200, priority_stats(name, await self._queries.levels(name)))

    async def queue_stats(self, call: Call) -> Response:
        """GET /queues/{name}/stats: exact counts of all states."""
        name = queue_name(call.parameters[0], "queue", self._limits)
        queue, record = await asyncio.gather(self._queries.queue(name), self._store.queues.get(name))
        return Response(200, queue_stats(queue, record, self._store.queues.bound(name), self._store.clock.now()))


def _state(text: str | None) -> State | None:
    if not text:
        return None
    try:
        return State(text)
    except ValueError:
        raise invalid("state", f"state must be one of {', '.join(State)}, not {shown(text)}") from None


def _sort(text: str | None) -> Sort:
    for sort in _SORTS:
        if sort == (text or "created_at"):
            return sort
    raise invalid("sort", f"sort must be one of {', '.join(_SORTS)}, not {shown(text or '')}")


def _ascending(text: str | None) -> bool:
    order = (text or "desc").lower()
    if order not in _ORDERS:
        raise invalid("order", f"order must be asc or desc, not {shown(order)}")
    return order == "asc"

"""The dead letter queue: lists, statistics, manual retry and deletion, one by one or by filter."""

from __future__ import annotations

import asyncio

import msgspec

from ojs_api.dead_letters import DeletedDeadLetter
from ojs_api.jobs import JobPage, OneJob, OneJobDetail
from ojs_engine.api.call import Call, Response
from ojs_engine.base.fields import queue_name
from ojs_engine.base.ids import job_id_of
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import DEFAULT_QUEUE, NOT_SET
from ojs_engine.domain.strict import require_metadata
from ojs_engine.domain.transitions.manual import RetryOverride
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.pages import Page, check_cursor, parse_page
from ojs_features.context import HandlerContext
from ojs_features.dead_letters.answers import dead_letter_stats, deleted_dead_letters, retried_dead_letters
from ojs_features.dead_letters.changes import DeadLetters
from ojs_features.dead_letters.requests import parse_change, parse_narrowed, parse_override
from ojs_index.asking.messages import DeadLettersAsk, is_time_cursor
from ojs_index.lists.jobs import admin_job_page, job_detail, job_page
from ojs_index.lists.whole_jobs import whole_jobs


class DeadLetterHandlers:
    """Handlers under /dead-letter. A job that isn't a dead letter is `not_found`."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits
        self._context = context

    async def list(self, call: Call) -> Response:
        """GET /dead-letter?queue&type&error_type&since&until: the latest first."""
        return Response(200, await self._list(call, parse_page(call.queries)))

    async def admin_list(self, call: Call) -> Response:
        """GET /admin/dead-letter: the same, in numbered pages."""
        return Response(200, admin_job_page(await self._list(call, parse_page(call.queries, numbered=True))))

    async def _list(self, call: Call, asked: Page) -> JobPage:
        check_cursor(asked, is_time_cursor, "a page of dead letters")
        wanted = _narrowed(parse_narrowed(call.queries, self._store.clock.now(), self._limits), call)
        page = await self._queries.dead_letters(
            msgspec.structs.replace(wanted, limit=asked.limit, cursor=asked.cursor, offset=asked.offset, whole=True)
        )
        jobs, cursor = await whole_jobs(self._store, page, "finished_at")
        jobs = [job for job in jobs if call.sees(job.queue, job.type)]  # some have moved since
        return job_page(jobs, page, asked, page.total, cursor)

    async def read(self, call: Call) -> Response:
        """GET /dead-letter/{id}."""
        job = await self._of(call).get(job_id_of(call.parameters[0]))
        return Response(200, OneJobDetail(job_detail(job)))

    async def stats(self, call: Call) -> Response:
        """GET /dead-letter/stats?queue: with the retention of that queue, or of those that nobody configured."""
        queue = call.require_one_queue(call.query("queue") or None)
        if queue is not None:
            queue = queue_name(queue, "queue", self._limits)
        stats, settings = await asyncio.gather(
            self._queries.dead_letter_stats(queue), self._store.queues.settings(queue or DEFAULT_QUEUE)
        )
        return Response(200, dead_letter_stats(stats, NOT_SET if settings is None else settings.config))

    async def retry(self, call: Call) -> Response:
        """POST /dead-letter/{id}/retry: a new life under the same id, changed by `override` if the body has one."""
        override_of = await call.read(parse_override, self._limits)

        def checked(job: Job) -> RetryOverride:
            override = override_of(job)
            if override.queue is not None or override.args or override.meta:
                call.require("enqueue", "an override of queue, args or meta")
            if override.queue is not None:
                call.require_queue(override.queue, job_type=job.type)
            if self._context.strict is not None and override.meta:
                require_metadata(override.meta, "override.meta")
            return override

        change = await self._of(call).retry(job_id_of(call.parameters[0]), checked)
        return Response(200, OneJob(job_view(change.after)))

    async def delete(self, call: Call) -> Response:
        """DELETE /dead-letter/{id}."""
        job_id = job_id_of(call.parameters[0])
        await self._of(call).delete(job_id)
        return Response(200, DeletedDeadLetter(job_id=job_id, deleted=True))

    async def admin_delete(self, call: Call) -> Response:
        """DELETE /admin/dead-letter/{id}: answers 204 (ojs-admin-api §6.5)."""
        await self._of(call).delete(job_id_of(call.parameters[0]))
        return Response(204, b"")

    async def retry_all(self, call: Call) -> Response:
        """POST /dead-letter/retry `{filter, confirm: true}`."""
        return Response(200, retried_dead_letters(await self._of(call).retry_all(await self._bulk(call))))

    async def clear(self, call: Call) -> Response:
        """DELETE /dead-letter `{filter, older_than, confirm: true}`, or the same in the query."""
        return Response(200, deleted_dead_letters(await self._of(call).delete_all(await self._bulk(call))))

    async def purge(self, call: Call) -> Response:
        """POST /dead-letter/purge?older_than=7d: the same, confirmed by its name (ojs CLI)."""
        asked = await self._bulk(call, confirmed=True)
        return Response(200, deleted_dead_letters(await self._of(call).delete_all(asked)))

    async def _bulk(self, call: Call, *, confirmed: bool = False) -> DeadLettersAsk:
        body = await call.body(self._limits.max_control_bytes)
        now = self._store.clock.now()
        return _narrowed(parse_change(body, call.queries, now, self._limits, confirmed=confirmed), call)

    def _of(self, call: Call) -> DeadLetters:
        """Return the operations on those that a request may be about."""
        return DeadLetters(self._store, self._queries, call.own)


def _narrowed(asked: DeadLettersAsk, call: Call) -> DeadLettersAsk:
    """The question with the queue and the type that the request may be about. Raises permission_denied."""
    queue, job_type = call.narrowed_to(asked.queue, asked.type)
    return msgspec.structs.replace(asked, queue=queue, type=job_type)

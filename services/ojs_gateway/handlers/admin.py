"""Operators' totals and single jobs (ojs-admin-api §7, §10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ojs_api.jobs import AdminChangedJob
from ojs_engine.api.call import Call, Response
from ojs_engine.base.fields import queue_name
from ojs_engine.base.ids import job_id_of
from ojs_engine.domain import transitions
from ojs_engine.read.messages import QueuesAsk, WorkersAsk
from ojs_engine.read.numbers import Numbers, Queue
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.pages import parse_page
from ojs_engine.wire.statistics.answers import AskedStats, admin_stats, queue_in_brief
from ojs_engine.wire.workers.requests import parse_cancel
from ojs_gateway.context import Context


class AdminHandlers:
    """Handlers under /admin that are about the whole system or one job."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    async def stats(self, call: Call) -> Response:
        """GET /admin/stats?queue: of everything, or of one queue; `detail=true` lists the queues for the CLI."""
        queue = call.query("queue") or None
        if queue is not None:
            queue = queue_name(queue, "queue", self._limits)
        detailed = call.query("detail") == "true"
        limit = parse_page(call.queries).limit if detailed else 1
        records = await self._store.queues.all()
        numbers: Awaitable[Numbers] = self._queries.totals() if queue is None else self._queries.queue(queue)
        found, workers, page = await asyncio.gather(
            numbers,
            self._queries.workers(WorkersAsk(limit=1)),
            self._queries.queues(QueuesAsk(also=tuple(records), limit=limit)),
        )
        known, shown = page.total, records
        if isinstance(found, Queue):
            shown = {name: record for name, record in records.items() if name == found.name}
            known = int(bool(shown) or found.created_at is not None)
        stats = admin_stats(found, known, workers.summary, self._context.uptime_s, self._store.clock.now())
        paused = sum(record.held for record in shown.values())
        briefs = [queue_in_brief(one) for one in page.queues] if detailed else None
        return Response(200, AskedStats(stats, paused, workers.summary, briefs))

    async def retry(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/retry: a discarded or cancelled job gets a new life, one that waits for its next
        attempt gets it now.
        """
        change = await self._store.jobs.revive(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.retry_one(call.own(job), moment)
        )
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))

    async def run(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/run: one that is scheduled, pending, or waits for its next attempt runs now."""
        change = await self._store.jobs.change(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.run_now(call.own(job), moment)
        )
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))

    async def cancel(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/cancel."""
        reason = await call.read(parse_cancel, self._limits)
        job_id = job_id_of(call.parameters[0])
        change = await self._store.jobs.change(job_id, lambda job, moment: transitions.cancel(call.own(job), moment, reason))
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))

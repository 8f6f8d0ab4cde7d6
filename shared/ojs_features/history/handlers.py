"""What happened to jobs: history, lineage, attempts, recent failures."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_api.history import FailurePage
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import queue_name, shown
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.numbers import whole_number
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.event_reader import EventFilter, EventReader
from ojs_engine.wire.pages import pagination, parse_page
from ojs_features.context import HandlerContext
from ojs_features.history.answers import attempt_trace, failure_answer, history_page, job_lineage, job_traces
from ojs_features.history.timelines import job_history, job_retries, job_trace
from ojs_index.asking.messages import MAX_OFFSET


def _place(cursor: str) -> int:
    """Return how many failures come before the page of a cursor. Raises invalid_request for one of another making."""
    place = whole_number(cursor, 9)
    if place is None or place > MAX_OFFSET:
        raise invalid("cursor", f"cursor must be the next_cursor of a page of failures, not {shown(cursor)}")
    return place


class HistoryHandlers:
    """Handlers that read the log of one job, or stored failures. None of them changes anything."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits
        self._reader = EventReader(context.store.bulk, context.store.config)

    async def history(self, call: Call) -> Response:
        """GET /jobs/{id}/history?limit&cursor: the oldest first."""
        page = parse_page(call.queries)
        return Response(200, history_page(await self._job(call), page))

    async def lineage(self, call: Call) -> Response:
        """GET /jobs/{id}/lineage."""
        return Response(200, job_lineage(await self._job(call)))

    async def traces(self, call: Call) -> Response:
        """GET /debug/jobs/{id}/traces: its attempts."""
        return Response(200, job_traces(await self._job(call)))

    async def trace(self, call: Call) -> Response:
        """GET /debug/jobs/{id}/traces/{attempt}."""
        return Response(200, attempt_trace(await self._job(call), call.parameters[1]))

    async def retries(self, call: Call) -> Response:
        """GET /jobs/{id}/retries: its failed attempts, and the policy that says what follows."""
        return Response(200, job_retries(await self._job(call)))

    async def states(self, call: Call) -> Response:
        """GET /admin/jobs/{id}/trace: its log by the states that it was in."""
        return Response(200, job_trace(await self._job(call)))

    async def log(self, call: Call) -> Response:
        """GET /events/{id}/history: its log by what happened."""
        return Response(200, job_history(await self._job(call)))

    async def failures(self, call: Call) -> Response:
        """GET /debug/failures?queue&limit&offset: the latest first, from the stream of events."""
        asked = parse_page(call.queries)
        if asked.cursor:
            asked = replace(asked, offset=_place(asked.cursor))
        queue = call.require_one_queue(call.query("queue") or None)
        queues = () if queue is None else (queue_name(queue, "queue", self._limits),)
        await self._queries.until_relayed()
        wanted = EventFilter(types=("job.failed",), queues=queues)
        page = await self._reader.newest(wanted, asked.offset, asked.limit)
        after = asked.offset + len(page.events)
        place = pagination(asked, page.total, str(after) if after < page.total else None)
        return Response(200, FailurePage(failures=[failure_answer(event.body) for event in page.events], pagination=place))

    async def _job(self, call: Call) -> Job:
        return call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))

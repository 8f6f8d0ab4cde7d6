"""The workers as operators see and direct them (ojs-admin-api §9)."""

from __future__ import annotations

from typing import Final

from ojs_api.workers import STATES, DirectedWorkers, FleetPage, RemovedWorker, Worker
from ojs_engine.api.call import Call, Response
from ojs_engine.api.queries import searched
from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_engine.base.fields import short_text, shown
from ojs_engine.base.portions import in_portions
from ojs_engine.domain.job import State
from ojs_engine.store.announce import announce_lost
from ojs_engine.store.workers.notes import Wish
from ojs_engine.wire.pages import parse_page
from ojs_gateway.context import Context
from ojs_index.asking.client import settled
from ojs_index.asking.messages import MAX_PAGE, JobsAsk, WorkerRow, WorkersAsk
from ojs_index.asking.walk import live_workers
from ojs_index.lists.fleet import (
    fleet_page,
    parse_wish,
    worker_answer,
    worker_detail,
    worker_list,
)

_AT_ONCE: Final = 200


class WorkerAdminHandlers:
    """Handlers under /admin/workers, and of the list that /workers gives. Workers that deregistered are not there."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._notes = context.worker_notes
        self._limits = context.limits

    async def admin_list(self, call: Call) -> Response:
        """GET /admin/workers?state: by id."""
        return Response(200, await self._list(call))

    async def list(self, call: Call) -> Response:
        """GET /workers?state: the same, called by what it lists."""
        return Response(200, worker_list(await self._list(call)))

    async def _list(self, call: Call) -> FleetPage:
        asked = parse_page(call.queries, numbered=True)
        state = call.query("state") or None
        if state is not None and state not in STATES:
            raise invalid("state", f"state must be one of {', '.join(STATES)}, not {shown(state)}")
        search = searched(call, self._limits)
        ask = WorkersAsk(state=state, search=search, limit=asked.limit, cursor=asked.cursor, offset=asked.offset)
        page = await self._queries.workers(ask)
        directives = [await self._notes.of(row.record) for row in page.workers]
        return fleet_page(page, directives, asked)

    async def read(self, call: Call) -> Response:
        """GET /admin/workers/{id}: with up to 200 of the jobs that it holds."""
        row = await self._worker(call)
        held = await self._queries.jobs(JobsAsk(worker=row.record.id, state=State.ACTIVE, limit=MAX_PAGE))
        return Response(200, worker_detail(await self._answer(row), held.jobs))

    async def quiet(self, call: Call) -> Response:
        """POST /admin/workers/{id}/quiet: its next heartbeat is answered `quiet`."""
        return await self._direct(call, "quiet")

    async def direct(self, call: Call) -> Response:
        """POST /admin/workers/{id}/directive `{directive}`: running, quiet or terminate."""
        return await self._direct(call, await call.read(parse_wish))

    async def _direct(self, call: Call, wish: Wish) -> Response:
        row = await self._worker(call)
        await self._notes.give(row.record, wish)
        return Response(200, await self._answer(row))

    async def direct_all(self, call: Call) -> Response:
        """POST /admin/workers/directive `{directive}`: to all that are there now, not to those that come later."""
        wish = await call.read(parse_wish)
        live = await live_workers(self._queries)
        await in_portions(live, lambda row: self._notes.give(row.record, wish), _AT_ONCE)
        return Response(200, DirectedWorkers(wish, len(live)))

    async def remove(self, call: Call) -> Response:
        """DELETE /admin/workers/{id}: of a stale one, whose jobs run elsewhere. 409 for one that is there."""
        row = await self._worker(call)
        worker_id = row.record.id
        if not row.stale:
            message = f"worker {worker_id} has been heard of within the last 30 s; direct it to terminate first"
            raise OjsError("conflict", message, details={"worker_id": worker_id, "state": row.record.state})
        await self._store.workers.remove(worker_id)
        await self._notes.withdraw(worker_id)
        await announce_lost(self._store, row.record)
        return Response(200, RemovedWorker(True, worker_id))

    async def _worker(self, call: Call) -> WorkerRow:
        worker_id = short_text(call.parameters[0], "the worker's id", self._limits)
        page = await self._queries.workers(WorkersAsk(id=worker_id, limit=1))
        if not page.workers:
            settled(page)
            raise not_found("worker", worker_id)
        return page.workers[0]

    async def _answer(self, row: WorkerRow) -> Worker:
        return worker_answer(row, await self._notes.of(row.record))

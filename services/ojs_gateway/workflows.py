"""Workflows: create, read, cancel, retry, progress (requirements §16)."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_gateway.lists import with_results
from ojs_gateway.pressure import pressure_headers
from ojs_gateway.refusals import Refusals
from ojs_nats.errors import OjsError, invalid, not_found
from ojs_nats.queries import WorkflowsAsk
from ojs_nats.store.workflow_records import StoredWorkflow
from ojs_nats.wire.pages import parse_page
from ojs_nats.wire.workflow import Page, cancelled_body, pages, progress_body, shown_jobs, workflow_body, workflows_body
from ojs_nats.workflows import Definition, parse_workflow
from ojs_nats.workflows.parse import workflow_id_of

__all__ = ["Workflows"]

_LOCATION: Final = "/ojs/v1/workflows/"
_STATES: Final = ("running", "completed", "failed", "cancelled")
_LARGE_BODY: Final = 64 * 1024
"""A definition from this size on is read beside the event loop, which has other requests to serve."""


class Workflows:
    """Handlers under /workflows."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._limits = context.limits
        self._refusals = Refusals(context.store)
        self._prepare = context.prepare
        self._queries = context.queries

    async def create(self, call: Call) -> Answer:
        """POST /workflows: 201 once it is stored; its first jobs are in their queues then."""
        body = await call.body()
        now = self._store.clock.now()
        if len(body) < _LARGE_BODY:
            definition = parse_workflow(body, now, self._limits)
        else:
            definition = await asyncio.to_thread(parse_workflow, body, now, self._limits)
        definition = await self._prepared(definition)
        try:
            stored = await self._store.workflows.create(definition)
        except OjsError as error:
            await self._refusals.tell(error, list(definition.jobs.values()))
            raise
        pressed = pressure_headers(self._store, (draft.queue for draft in definition.jobs.values()))
        headers = (("Location", _LOCATION + stored.record.id), *pressed)
        return Answer(201, await self._body(stored, Page(0, self._limits.max_workflow_page)), headers)

    async def list(self, call: Call) -> Answer:
        """GET /workflows?state: the newest first, with the paging of all lists."""
        asked = parse_page(call.queries)
        state = call.query("state") or None
        if state is not None and state not in _STATES:
            raise invalid("state", f"state must be one of {', '.join(_STATES)}, not {state[:40]!r}")
        ask = WorkflowsAsk(state=state, limit=asked.limit, cursor=asked.cursor, offset=asked.offset)
        return Answer(200, workflows_body(await self._queries.workflows(ask), asked))

    async def read(self, call: Call) -> Answer:
        """GET /workflows/{id}?offset=&limit=: all of its steps, as many as fit into one answer."""
        page = self._page(call)
        return Answer(200, await self._body(await self._store.workflows.get(_id(call)), page))

    async def cancel(self, call: Call) -> Answer:
        """DELETE /workflows/{id}, POST /workflows/{id}/cancel: 409 if it has ended."""
        stored = await self._store.workflows.cancel(_id(call))
        return Answer(200, cancelled_body(stored.graph, stored.record))

    async def retry(self, call: Call) -> Answer:
        """POST /workflows/{id}/retry: what failed or was cancelled is done again; 409 unless it has failed or was cancelled."""
        stored = await self._store.workflows.retry(_id(call))
        return Answer(200, await self._body(stored, Page(0, self._limits.max_workflow_page)))

    async def progress(self, call: Call) -> Answer:
        """GET /workflows/{id}/progress: numbers alone, whatever its size."""
        stored = await self._store.workflows.get(_id(call))
        return Answer(200, progress_body(stored.graph, stored.record))

    async def _prepared(self, definition: Definition) -> Definition:
        """The definition with every job as the enqueue middleware leaves it."""
        jobs = {}
        for node, draft in definition.jobs.items():
            prepared = await self._prepare(draft)
            if prepared is None:
                raise OjsError(
                    "invalid_workflow",
                    f"an enqueue middleware dropped a job of type {draft.type}, so the workflow can't be run",
                    details={"job_type": draft.type},
                )
            jobs[node] = prepared
        return replace(definition, jobs=jobs)

    async def _body(self, stored: StoredWorkflow, page: Page) -> bytes:
        _, record, graph = stored
        shown = pages(graph, page)
        jobs = await self._store.workflows.members(record, shown_jobs(graph, record, shown))
        whole = await with_results(self._store, jobs.values())
        return workflow_body(graph, record, dict(zip(jobs, whole, strict=True)), shown)

    def _page(self, call: Call) -> Page:
        most = self._limits.max_workflow_page
        limit, offset = _number(call, "limit", most), _number(call, "offset", 0)
        if limit < 1:
            raise invalid("limit", f"limit must be a number from 1 to {most}")
        return Page(offset, min(limit, most))


def _number(call: Call, name: str, default: int) -> int:
    text = call.query(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise invalid(name, f"{name} must be a whole number, not {text[:40]!r}")
    return int(text)


def _id(call: Call) -> str:
    found = workflow_id_of(call.parameters[0])
    if found is None:
        raise not_found("workflow", call.parameters[0][:64])
    return found

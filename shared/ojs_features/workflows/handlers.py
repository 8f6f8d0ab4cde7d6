"""Workflows: create, read, cancel, retry, progress."""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import partial
from typing import Final, get_args

from msgspec.structs import replace

from ojs_api.workflows import OneWorkflow
from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import Made, gone, once
from ojs_engine.api.pressure import pressure_headers
from ojs_engine.base.errors import OjsError, invalid, not_found, placed
from ojs_engine.base.fields import shown
from ojs_engine.base.ids import derived_job_id
from ojs_engine.base.numbers import whole_number
from ojs_engine.store.records.idempotency import KeyedRun
from ojs_engine.wire.members import MOST_WARNINGS, AnswerWarning, warnings_at, warnings_of
from ojs_engine.wire.pages import check_cursor, parse_page
from ojs_features.context import HandlerContext
from ojs_features.workflows.answers import (
    StepPage,
    cancelled_workflow,
    extended_steps,
    one_workflow,
    pages,
    shown_jobs,
    workflow_page,
    workflow_progress,
)
from ojs_features.workflows.definition import Definition
from ojs_features.workflows.index import QUESTION, WorkflowPage, WorkflowsAsk
from ojs_features.workflows.record import WorkflowState
from ojs_features.workflows.records import StoredWorkflow
from ojs_features.workflows.requests import parse_workflow, workflow_id_of
from ojs_features.workflows.store import Workflows
from ojs_index.asking.messages import is_time_cursor
from ojs_index.lists.whole_jobs import with_results

_LOCATION: Final = "/ojs/v1/workflows/"
_STATES: Final[dict[str, WorkflowState]] = {state: state for state in get_args(WorkflowState)} | {"active": "running"}
"""The words that a list may be filtered by; `active` is the admin UI's word."""
_NEVER: Final = "pending"
"""A workflow's first jobs are in their queues when it is stored, so none is ever in this state of ojs-workflows §8.1."""


class WorkflowHandlers:
    """Handlers under /workflows."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store
        self._workflows = context.store.of(Workflows)
        self._limits = context.limits
        self._check = context.check
        self._refusals = context.refusals
        self._queries = context.queries

    async def create(self, call: Call) -> Response:
        """POST /workflows: 201 once it is stored; its first jobs are in their queues then."""
        body = await call.body(self._limits.max_body_bytes)
        make = partial(self._create, call, body)
        return await once(
            self._context.store, self._context.limits, call, "workflow", body, make, partial(self._created_before, call)
        )

    async def _create(self, call: Call, body: bytes, run: KeyedRun | None) -> tuple[Response, Made]:
        warnings: list[AnswerWarning] = []
        derived = None if run is None else derived_job_id(run.began, run.name)
        now = self._store.clock.now()
        definition = await call.parsed(body, parse_workflow, now, self._limits, warnings, default_id=derived)
        for draft in definition.jobs.values():
            call.admit(draft)
        call.count_pushes(len(definition.jobs))
        await self._checked(definition, warnings)
        try:
            stored = await self._workflows.create(definition)
        except OjsError as error:
            await self._refusals.tell(error, list(definition.jobs.values()))
            stored = await self._stored_before(definition, run, error, derived)
        if run is not None:
            run.made = True
        pressed = pressure_headers(self._store, (draft.queue for draft in definition.jobs.values()))
        headers = (("Location", _LOCATION + stored.record.id), *pressed)
        answer = await self._answer(stored, StepPage(0, self._limits.max_workflow_page))
        made = Made([stored.record.id])
        return Response(201, replace(answer, warnings=warnings[:MOST_WARNINGS] or None), headers), made

    async def _stored_before(
        self, definition: Definition, run: KeyedRun | None, error: OjsError, derived: str | None
    ) -> StoredWorkflow:
        """Return the workflow if the same request stored it before it could answer. Raises `error` for another one."""
        if run is None or error.details.get("existing_workflow_id") != definition.id:
            raise error
        stored = await self._workflows.get(definition.id)
        if not run.takes(stored.record.created_at, named_by_key=definition.id == derived):
            raise error
        return stored

    async def _created_before(self, call: Call, status: int, made: Made) -> Response:
        try:
            stored = await self._visible(call, made.ids[0])
        except OjsError as error:
            raise gone(error, f"workflow {made.ids[0]}") from None
        answer = await self._answer(stored, StepPage(0, self._limits.max_workflow_page))
        return Response(status, answer, (("Location", _LOCATION + stored.record.id),), of_others=True)

    async def list(self, call: Call) -> Response:
        """GET /workflows?state: the newest first, with the paging of all lists."""
        asked = parse_page(call.queries)
        check_cursor(asked, is_time_cursor, "a page of workflows")
        state = call.query("state") or None
        if state == _NEVER:
            return Response(200, workflow_page(WorkflowPage(workflows=[], total=0), asked))
        if state is not None and state not in _STATES:
            raise invalid("state", f"state must be one of {', '.join((*_STATES, _NEVER))}, not {shown(state)}")
        ask = WorkflowsAsk(state=_STATES.get(state or ""), limit=asked.limit, cursor=asked.cursor, offset=asked.offset)
        return Response(200, workflow_page(await self._queries.ask(QUESTION, ask, WorkflowPage), asked))

    async def read(self, call: Call) -> Response:
        """GET /workflows/{id}?offset=&limit=: all of its steps, as many as fit into one answer."""
        page = self._page(call)
        return Response(200, await self._answer(await self._own(call), page))

    async def cancel(self, call: Call) -> Response:
        """DELETE /workflows/{id}, POST /workflows/{id}/cancel: 409 if it has ended."""
        stored = await self._workflows.cancel((await self._own(call)).record.id)
        return Response(200, cancelled_workflow(stored.graph, stored.record))

    async def retry(self, call: Call) -> Response:
        """POST /workflows/{id}/retry: what failed or was cancelled is done again; 409 unless it has failed or was cancelled."""
        stored = await self._workflows.retry((await self._own(call)).record.id)
        return Response(200, await self._answer(stored, StepPage(0, self._limits.max_workflow_page)))

    async def progress(self, call: Call) -> Response:
        """GET /workflows/{id}/progress: numbers alone."""
        stored = await self._own(call)
        return Response(200, workflow_progress(stored.graph, stored.record))

    async def _own(self, call: Call) -> StoredWorkflow:
        """The workflow of the path, if the request may be about all of its jobs. Raises not_found."""
        return await self._visible(call, _id(call))

    async def _visible(self, call: Call, workflow_id: str) -> StoredWorkflow:
        stored = await self._workflows.get(workflow_id)
        if call.bounded:
            drafts = await self._workflows.drafts(stored)
            if not all(call.sees(draft.queue, draft.type) for draft in drafts):
                raise not_found("workflow", stored.record.id)
            call.held = True
        return stored

    async def _checked(self, definition: Definition, warnings: MutableSequence[AnswerWarning]) -> None:
        """Hold every job to what is checked of it; adds what the sender is warned of. Raises OjsError."""
        for node, draft in definition.jobs.items():
            try:
                found = await self._check(draft)
            except OjsError as error:
                raise placed(error, definition.places[node]) from None
            if found:
                warnings.extend(warnings_at(definition.places[node], warnings_of(found)))

    async def _answer(self, stored: StoredWorkflow, page: StepPage) -> OneWorkflow:
        _, record, graph = stored
        visible = pages(graph, page)
        jobs = await self._workflows.members(record, shown_jobs(graph, record, visible))
        whole = await with_results(self._store, jobs.values())
        templates = await self._workflows.templates(stored, extended_steps(graph, visible))
        return one_workflow(graph, record, dict(zip(jobs, whole, strict=True)), visible, templates)

    def _page(self, call: Call) -> StepPage:
        most = self._limits.max_workflow_page
        limit, offset = _number(call, "limit", most), _number(call, "offset", 0)
        if limit < 1:
            raise invalid("limit", f"limit must be a number from 1 to {most}")
        return StepPage(offset, min(limit, most))


def _number(call: Call, name: str, default: int) -> int:
    text = call.query(name)
    if not text:
        return default
    number = whole_number(text, 9)
    if number is None:
        raise invalid(name, f"{name} must be a whole number, not {shown(text)}")
    return number


def _id(call: Call) -> str:
    found = workflow_id_of(call.parameters[0])
    if found is None:
        raise not_found("workflow", call.parameters[0][:64])
    return found

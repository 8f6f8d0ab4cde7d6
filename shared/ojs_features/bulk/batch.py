"""Batch push: many jobs or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec import Raw

from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import Made, gone, once
from ojs_engine.api.pressure import pressure_headers
from ojs_engine.base.errors import OjsError, indexed, not_found
from ojs_engine.base.ids import derived_job_id
from ojs_engine.domain.job import Job
from ojs_engine.store.records.idempotency import KeyedRun
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.members import AnswerWarning, encode, warnings_at, warnings_of
from ojs_features.bulk.answers import pushed_batch
from ojs_features.bulk.requests import parse_batch, read_draft
from ojs_features.context import HandlerContext
from ojs_index.lists.whole_jobs import with_results
from ojs_runtime import tracing

_CHUNK: Final = 200
"""Jobs that are read or written before the event loop has its turn, which other requests wait for."""


class BatchHandlers:
    """POST /jobs/batch."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits

    async def push(self, call: Call) -> Response:
        """All jobs in the order of the request, or an error that names the first one that can't be; 200 if none is new."""
        body = await call.body(self._limits.max_body_bytes)
        make = partial(self._push, call, body)
        return await once(
            self._context.store, self._context.limits, call, "batch", body, make, partial(self._pushed_before, call)
        )

    async def _push(self, call: Call, body: bytes, run: KeyedRun | None) -> tuple[Response, Made]:
        sent = await call.parsed(body, parse_batch, self._limits)
        call.count_pushes(len(sent.jobs))
        drafts: list[Job] = []
        warnings: list[AnswerWarning] = []
        for index, draft in enumerate(await _drafts(self._context, sent.jobs, warnings, run)):
            call.admit(draft)
            if index % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)
            try:
                found = await self._context.check(draft)
            except OjsError as error:
                raise indexed(error, index) from None
            drafts.append(draft)
            if found:
                warnings += warnings_at(f"jobs[{index}]", warnings_of(found))
        try:
            jobs = await tracing.enqueued_all(drafts, self._store.enqueue.push_all)
        except OjsError as error:
            await self._context.refusals.tell(error, drafts)
            jobs = await self._stored_before(drafts, run, error)
        if run is not None:
            run.made = True
        superfluous = [index for index, (draft, job) in enumerate(zip(drafts, jobs, strict=True)) if draft.id != job.id]
        status = 201 if len(superfluous) < len(jobs) else 200
        headers = pressure_headers(self._store, (draft.queue for draft in drafts))
        views = await _views(await with_results(self._context.store, jobs))
        answer = pushed_batch(views, superfluous, warnings)
        made = Made([job.id for job in jobs], superfluous)
        return Response(status, answer, headers, of_others=bool(superfluous)), made

    async def _stored_before(self, drafts: Sequence[Job], run: KeyedRun | None, error: OjsError) -> list[Job]:
        """Return the jobs if the same request stored them before it could answer. Raises `error` for others."""
        if run is None or error.code != "duplicate":
            raise error
        found = await self._store.records.many([draft.id for draft in drafts])
        stored = [job for draft in drafts if (job := found[draft.id].job) is not None]
        if len(stored) < len(drafts) or not run.takes(min(job.created_at for job in stored)):
            raise error
        return stored

    async def _pushed_before(self, call: Call, status: int, made: Made) -> Response:
        found = await self._store.records.many(made.ids)
        jobs = [call.own(job) for job_id in made.ids if (job := found[job_id].job) is not None]
        call.held = True  # none may be left
        if made.ids and not jobs:
            raise gone(not_found("job", made.ids[0]), f"{len(made.ids)} jobs")
        views = await _views(await with_results(self._context.store, jobs))
        return Response(status, pushed_batch(views, made.superfluous, []), of_others=True)


async def _drafts(
    context: HandlerContext, envelopes: Sequence[Raw], warnings: list[AnswerWarning], run: KeyedRun | None
) -> list[Job]:
    """The drafts of a request's jobs, in order. Raises OjsError with the `index` of the first that is refused."""
    now = context.store.clock.now()

    def read_one(index: int, raw: Raw) -> Job:
        found: list[AnswerWarning] = []
        derived = None if run is None else derived_job_id(run.began, run.name, str(index))
        draft = read_draft(raw, index, now, context.limits, found, own_id=derived)
        if found:
            warnings.extend(warnings_at(f"jobs[{index}]", found))
        return draft

    def read() -> list[Job]:
        return [read_one(index, raw) for index, raw in enumerate(envelopes)]

    return await context.aside.run(sum(map(len, envelopes)), read)


async def _views(jobs: Sequence[Job]) -> list[bytes]:
    views: list[bytes] = []
    for start in range(0, len(jobs), _CHUNK):
        views += [encode(job_view(job)) for job in jobs[start : start + _CHUNK]]
        await asyncio.sleep(0)
    return views

"""Batch push: many jobs or none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from ojs_core.base.errors import OjsError, indexed
from ojs_core.domain.job import Job
from ojs_core.domain.schemas.validator import Finding
from ojs_core.telemetry import tracing
from ojs_core.wire.jobs.bulk import parse_batch, pushed_batch, read_draft
from ojs_core.wire.jobs.job import job_view
from ojs_core.wire.members import AnswerWarning, encode, warnings_at, warnings_of
from ojs_gateway.context import Context
from ojs_gateway.handlers.lists import with_results
from ojs_gateway.http.call import Call, Response
from ojs_gateway.pressure import pressure_headers

_CHUNK: Final = 200
"""Jobs read or written between two looks at the event loop, which other requests wait for."""


class BatchHandlers:
    """POST /jobs/batch."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits

    async def push(self, call: Call) -> Response:
        """All jobs in the order of the request, or an error that names the first one that can't be; 200 if none is new."""
        sent = await call.read_jobs(parse_batch, self._limits)
        call.count_pushes(len(sent.jobs))
        drafts: list[Job] = []
        dropped: list[int] = []
        warnings: list[AnswerWarning] = []
        for index, draft in enumerate(await _drafts(self._context, sent.jobs, warnings)):
            call.admit(draft)
            if index % _CHUNK == _CHUNK - 1:
                await asyncio.sleep(0)
            told: list[Finding] = []
            try:
                prepared = await self._context.prepare(draft, told)
            except OjsError as error:
                raise indexed(error, index) from None
            if prepared is None:
                dropped.append(index)
            else:
                drafts.append(prepared)
                if told:
                    warnings += warnings_at(f"jobs[{index}]", warnings_of(told))
        try:
            jobs = await tracing.enqueued_all(drafts, self._store.batches.push) if drafts else []
        except OjsError as error:
            await self._context.refusals.tell(error, drafts)
            raise
        superfluous = [index for index, (draft, job) in enumerate(zip(drafts, jobs, strict=True)) if draft.id != job.id]
        status = 201 if len(superfluous) < len(jobs) else 200
        headers = pressure_headers(self._store, (draft.queue for draft in drafts))
        views = await _views(await with_results(self._context.store, jobs))
        return Response(status, pushed_batch(views, superfluous, dropped, warnings), headers, of_others=bool(superfluous))


async def _drafts(context: Context, envelopes: Sequence[Raw], warnings: list[AnswerWarning]) -> list[Job]:
    """The drafts of a request's jobs, in order. Raises OjsError with the `index` of the first that is refused."""
    now = context.store.clock.now()

    def read_one(index: int, raw: Raw) -> Job:
        told: list[AnswerWarning] = []
        draft = read_draft(raw, index, now, context.limits, told)
        if told:
            warnings.extend(warnings_at(f"jobs[{index}]", told))
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

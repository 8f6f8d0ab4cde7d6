"""Batch push: many jobs or none (requirements §13)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_gateway.lists import with_results
from ojs_gateway.pressure import pressure_headers
from ojs_gateway.refusals import Refusals
from ojs_nats import tracing
from ojs_nats.errors import OjsError, indexed
from ojs_nats.job import Job
from ojs_nats.wire.bulk import batch_body, parse_batch, read_draft
from ojs_nats.wire.output import encode, job_view

__all__ = ["Batch", "drafts_of"]

_CHUNK: Final = 200
"""Jobs read or written between two looks at the event loop, which other requests wait for."""


class Batch:
    """POST /jobs/batch."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits
        self._refusals = Refusals(context.store)

    async def push(self, call: Call) -> Answer:
        """All jobs in the order of the request, or an error that names the first one that can't be; 200 if none is new."""
        sent = parse_batch(await call.body(), self._limits)
        drafts: list[Job] = []
        dropped: list[int] = []
        for index, draft in enumerate(await drafts_of(self._context, sent.jobs)):
            try:
                prepared = await self._context.prepare(draft)
            except OjsError as error:
                raise indexed(error, index) from None
            if prepared is None:
                dropped.append(index)
            else:
                drafts.append(prepared)
        try:
            jobs = await tracing.enqueued_all(drafts, self._store.batches.push) if drafts else []
        except OjsError as error:
            await self._refusals.tell(error, drafts)
            raise
        superfluous = [index for index, (draft, job) in enumerate(zip(drafts, jobs, strict=True)) if draft.id != job.id]
        status = 201 if len(superfluous) < len(jobs) else 200
        headers = pressure_headers(self._store, (draft.queue for draft in drafts))
        return Answer(
            status, batch_body(await _views(await with_results(self._context.store, jobs)), superfluous, dropped), headers
        )


async def drafts_of(context: Context, envelopes: Sequence[Raw]) -> list[Job]:
    """The drafts of a request's jobs, in order. Raises OjsError with the `index` of the first that is refused."""
    drafts: list[Job] = []
    now = context.store.clock.now()
    for index, raw in enumerate(envelopes):
        drafts.append(read_draft(raw, index, now, context.limits))
        if index % _CHUNK == _CHUNK - 1:
            await asyncio.sleep(0)
    return drafts


async def _views(jobs: Sequence[Job]) -> list[bytes]:
    views: list[bytes] = []
    for start in range(0, len(jobs), _CHUNK):
        views += [encode(job_view(job)) for job in jobs[start : start + _CHUNK]]
        await asyncio.sleep(0)
    return views

"""Progress of jobs: reported by workers, read once or followed."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from email.utils import formatdate
from typing import TYPE_CHECKING

from ojs_engine.api.call import Call, Response
from ojs_engine.api.streams import KEEP_ALIVE, EventStream
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.waiting import within
from ojs_engine.store.announce import tell_of_job
from ojs_engine.wire.members import encode
from ojs_engine.wire.redaction import redacted
from ojs_features.context import HandlerContext
from ojs_features.progress.bodies import parse_progress, progress_answer, progress_event, progress_frame, reported_progress
from ojs_features.progress.store import JobProgress, ProgressTimings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ojs_engine.domain.job import Job
    from ojs_features.progress.rules import ProgressRecord


class ProgressHandlers:
    """Handlers of progress."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._progress = context.store.of(JobProgress)
        self._limits = context.limits
        self._keep_alive_s = context.keep_alive_s
        self._settling_s = context.store.bucket.timings(ProgressTimings).settling_s

    async def report(self, call: Call) -> Response:
        """PUT /jobs/{id}/progress, POST /workers/progress: a sign of life for the job as well."""
        named = call.parameters[0] if call.parameters else None
        ask = await call.read(parse_progress, self._limits, named)
        await call.require_job(ask.job_id, self._store.jobs.get)
        job, progress, accepted = await self._progress.report(ask.job_id, ask.report, ask.holder, self._tell)
        return Response(200, reported_progress(job, progress, accepted=accepted))

    def _tell(self, job: Job, progress: ProgressRecord) -> None:
        tell_of_job(self._store, "job.progress", job, progress_event(job, progress))

    async def read(self, call: Call) -> Response:
        """GET /jobs/{id}/progress."""
        job, progress = await self._progress.get(job_id_of(call.parameters[0]))
        call.own(job)
        headers: tuple[tuple[str, str], ...] = (("Cache-Control", "no-cache"),)
        if progress is not None:
            headers += (("Last-Modified", formatdate(progress.at / 1_000, usegmt=True)),)
            if progress.fraction is not None:
                headers += (("X-OJS-Progress", f"{progress.fraction:.4g}"),)
        return Response(200, progress_answer(job, progress), headers)

    async def stream(self, call: Call) -> EventStream:
        """GET /jobs/{id}/progress/stream: what stands, each change, and the job's end."""
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        return EventStream(self._frames(job.id, call, also_unnamed=call.dialect.reader == "ui"))

    async def _frames(self, job_id: str, call: Call, *, also_unnamed: bool) -> AsyncGenerator[bytes]:
        changed = asyncio.Event()
        seen: tuple[int, str | None] | None = None
        async with AsyncExitStack() as listening:
            for subject in (self._progress.subject(job_id), self._store.config.job(job_id)):
                listening.push_async_callback(await self._store.nats.listen(subject, lambda _message: changed.set()))
            while True:
                changed.clear()
                job, progress = await self._progress.get(job_id)
                stands = job.attempt, None if progress is None else progress.op
                if stands != seen or job.terminal:
                    seen = stands
                    body = encode(progress_answer(job, progress))
                    if call.hides:
                        body = redacted(body)
                    yield progress_frame(body, job, named=True)
                    if also_unnamed:
                        yield progress_frame(body, job, named=False)
                if job.terminal:
                    return
                if await within(self._keep_alive_s, changed):
                    await asyncio.sleep(self._settling_s)
                else:
                    yield KEEP_ALIVE

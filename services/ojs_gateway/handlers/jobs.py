"""Jobs: push, read, cancel, activate and results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from ojs_api.jobs import ChangedPriority, EnqueuedJob, JobResult, JobResults, OneJob, PushedJob
from ojs_engine.access.admission import unauthenticated
from ojs_engine.api.call import Call, Response
from ojs_engine.api.job_extras import Headers
from ojs_engine.api.keyed import Made, gone, once
from ojs_engine.api.pressure import pressure_headers
from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_engine.base.fields import shown
from ojs_engine.base.ids import derived_job_id, is_job_id, job_id_of
from ojs_engine.base.numbers import decimal_number
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.operations.job_checks import JobWarning
from ojs_engine.store.records.idempotency import KeyedRun
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.jobs.job import job_members, job_view, shown_job
from ojs_engine.wire.jobs.priority import parse_priority
from ojs_engine.wire.jobs.results import NO_RESULT, job_result, without_expired_result
from ojs_engine.wire.members import AnswerWarning, warnings_of, written
from ojs_engine.wire.workers.requests import parse_cancel, parse_result_ids
from ojs_gateway.context import Context
from ojs_runtime import tracing

_LOCATION: Final = "/ojs/v1/jobs/"
_NOT_FETCHED: Final = (State.AVAILABLE, State.SCHEDULED, State.PENDING)
_ASK_AGAIN: Final = (("Retry-After", "1"),)


class JobHandlers:
    """Handlers under /jobs that are not a worker's."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._extras = [extras for feature in context.features for extras in feature.jobs]
        self._limits = context.limits

    async def push(self, call: Call) -> Response:
        """POST /jobs."""
        body = await call.body(self._limits.max_body_bytes)
        make = partial(self._push, call, body)
        return await once(
            self._context.store, self._context.limits, call, "push", body, make, partial(self._pushed_before, call)
        )

    async def _push(self, call: Call, body: bytes, run: KeyedRun | None) -> tuple[Response, Made]:
        warned: list[AnswerWarning] = []
        derived = None if run is None else derived_job_id(run.began, run.name)
        now = self._store.clock.now()
        draft = await call.parsed(body, parse_enqueue, now, self._limits, warned, default_id=derived)
        call.admit(draft)
        call.count_pushes(1)
        found = await self._context.check(draft)
        try:
            job = await tracing.enqueued(draft, self._store.enqueue.push)
        except OjsError as error:
            await self._context.refusals.tell(error, [draft])
            job = await self._stored_before(draft, run, error, derived)
        if run is not None:
            run.made = run.made or job.id == draft.id
        answer = await self._pushed(call, draft, job, warned, found)
        return answer, Made([job.id])

    async def _stored_before(self, draft: Job, run: KeyedRun | None, error: OjsError, derived: str | None) -> Job:
        """Return the job if the same request stored it before it could answer. Raises `error` for another one."""
        mine = error.code == "duplicate" and error.details["existing_job_id"] == draft.id
        if run is None or not mine:
            raise error
        job = await self._store.jobs.get(draft.id)
        if not run.takes(job.created_at, named_by_key=draft.id == derived):
            raise error
        return job

    async def _pushed_before(self, call: Call, status: int, made: Made) -> Response:
        if not made.ids:
            raise gone(not_found("job", ""), "a job that an earlier version dropped")
        try:
            job = call.own(await self._read(made.ids[0]))
        except OjsError as error:
            raise gone(error, f"job {made.ids[0]}") from None
        view = job_view(job)
        answer = EnqueuedJob(view) if status == 201 else PushedJob(view, deduplicated=True)
        return Response(status, answer, (("Location", _LOCATION + job.id),), of_others=True)

    async def _pushed(
        self, call: Call, draft: Job, job: Job, warned: list[AnswerWarning], found: Sequence[JobWarning]
    ) -> Response:
        call.require_queue(job.queue, job_type=job.type)
        if job.id != draft.id:  # its uniqueness policy says `ignore`
            return Response(200, PushedJob(job_view(await self._whole(job)), deduplicated=True), of_others=True)
        headers: Headers = (("Location", _LOCATION + job.id), *pressure_headers(self._store, [job.queue]))
        for extras in self._extras:
            if extras.asks(job):
                headers += await extras.pushed(self._store, job)
        if found:
            warned += warnings_of(found)
        return Response(201, EnqueuedJob(job_view(job), warned or None), headers)

    async def read(self, call: Call) -> Response:
        """GET /jobs/{id}."""
        job = call.own(await self._read(job_id_of(call.parameters[0])))
        answer = job_members(job)
        for extras in self._extras:
            if extras.asks(job):
                await extras.show(self._store, job, answer)
        return Response(200, OneJob(shown_job(answer, job)), () if job.terminal else _ASK_AGAIN)

    async def cancel(self, call: Call) -> Response:
        """DELETE /jobs/{id}, POST /jobs/{id}/cancel."""
        reason = await call.read(parse_cancel, self._limits)
        change = await self._store.jobs.change(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.cancel(call.own(job), moment, reason)
        )
        return Response(200, OneJob(job_view(change.after, previous_state=change.before.state)))

    async def activate(self, call: Call) -> Response:
        """POST /jobs/{id}/activate."""
        change = await self._store.jobs.change(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.activate(call.own(job), moment)
        )
        return Response(200, OneJob(job_view(change.after, previous_state=change.before.state)))

    async def reprioritise(self, call: Call) -> Response:
        """PATCH /jobs/{id} {"priority": n}: of a job that was not fetched yet. The one it has is no change."""
        priority = await call.read(parse_priority)
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        if job.priority == priority and job.state in _NOT_FETCHED:
            return Response(200, ChangedPriority(id=job.id, priority=priority, previous_priority=priority))
        change = await self._store.jobs.change(job.id, lambda job, moment: transitions.reprioritise(job, priority, moment))
        before, after = change.before.priority, change.after.priority
        return Response(200, ChangedPriority(id=job.id, priority=after, previous_priority=before))

    async def result(self, call: Call) -> Response:
        """GET /jobs/{id}/result?wait=true&timeout=30: 408 if it isn't there in time, 410 if it was not kept."""
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        if not job.terminal and _flag(call, "wait"):
            timeout_s = self._timeout_s(call)
            with call.waiting():
                wait = self._store.jobs.wait_terminal(job.id, timeout_s, lambda: call.admission.over)
                waited = await self._context.unless_stopping(wait)
            job = waited or job
            if not job.terminal:
                if call.admission.over:
                    raise unauthenticated("the key has ended meanwhile")
                raise OjsError(
                    "request_timeout",
                    f"job {job.id} is still {job.state}",
                    details={"job_id": job.id, "current_state": job.state},
                    retry_after=1,
                )
        whole = await self._whole(job)
        if not whole.result and (job.result_stored_at is not None or (job.state is State.COMPLETED and job.result_ttl_s == 0)):
            raise OjsError("result_pruned", f"the result of job {job.id} is not kept any more", details={"job_id": job.id})
        return Response(200, job_result(whole), () if job.terminal else _ASK_AGAIN)

    async def results(self, call: Call) -> Response:
        """POST /jobs/results: one entry for each id, `not_found` where there is no such job."""
        ids = await call.read(parse_result_ids, self._limits)
        call.held = True  # about each job; there may be none
        views = await asyncio.gather(*(self._result_or_nothing(job_id, call) for job_id in ids))
        return Response(200, JobResults(dict(zip(ids, views, strict=True))))

    async def _result_or_nothing(self, job_id: str, call: Call) -> JobResult:
        if is_job_id(job_id.lower()):
            try:
                return job_result(call.own(await self._read(job_id.lower())))
            except OjsError as error:
                if error.code != "not_found":
                    raise
        return JobResult(job_id=job_id, state="not_found", result=written(NO_RESULT))

    async def _read(self, job_id: str) -> Job:
        return await self._whole(await self._store.jobs.get(job_id))

    async def _whole(self, job: Job) -> Job:
        """The job with its result, as long as that is there."""
        return await self._store.blobs.whole(without_expired_result(job, self._store.clock.now()))

    def _timeout_s(self, call: Call) -> float:
        text = call.query("timeout")
        if text is None:
            return self._limits.default_result_wait_s
        seconds = decimal_number(text)
        longest = self._limits.max_result_wait_s
        if seconds is None or not 0 <= seconds <= longest:
            raise invalid("timeout", f"timeout must be 0 to {longest:.0f} seconds, not {shown(text)}")
        return seconds


def _flag(call: Call, name: str) -> bool:
    text = (call.query(name) or "false").lower()
    if text not in {"true", "false", "1", "0"}:
        raise invalid(name, f"{name} must be true or false, not {shown(text)}")
    return text in {"true", "1"}

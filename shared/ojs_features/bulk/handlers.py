"""Bulk operations: enqueue, cancel, retry, delete and reprioritise many jobs in one request (ojs-bulk-operations)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import HEADER, idempotency_key
from ojs_engine.api.pressure import pressure_headers, refusal_headers
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import derived_job_id, new_job_id
from ojs_engine.domain.job import Job
from ojs_engine.store.announce import announce
from ojs_engine.store.records.idempotency import KeptAnswer, KeyedRun
from ojs_engine.wire.members import AnswerWarning, encode
from ojs_features.bulk.answers import DONE, bulk_changed, bulk_confirmed, bulk_enqueued
from ojs_features.bulk.changes import BulkChange
from ojs_features.bulk.outcomes import ItemOutcome, final, require_outcome
from ojs_features.bulk.pushes import BulkPush
from ojs_features.bulk.requests import JobList, parse_bulk_enqueue, parse_confirmed, parse_selection, read_draft
from ojs_features.bulk.selection import Operation, Selection
from ojs_features.context import HandlerContext

_Work = Callable[[KeyedRun | None], Awaitable[KeptAnswer]]


class BulkHandlers:
    """Handlers under /jobs/bulk."""

    def __init__(self, context: HandlerContext) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits
        self._push = BulkPush(context.store, context.check, context.refusals)
        self._change = BulkChange(context.store, context.queries)

    # Enqueue

    async def enqueue(self, call: Call) -> Response:
        """POST /jobs/bulk: each job by itself, or all or none (`atomicity`), with one item of the answer for each."""
        body = await call.body(self._limits.max_body_bytes)
        sent = await call.parsed(body, parse_bulk_enqueue, self._limits)
        call.count_pushes(len(sent.jobs))
        if call.bounded:  # checked ahead of the answer that is kept under the request's key
            call.held = True  # about each job; all may be refused before
            drafts = await self._drafts(sent, None, {})
            for draft in drafts:
                if not isinstance(draft, OjsError):
                    call.admit(draft)

        outcomes: list[ItemOutcome] = []

        async def work(run: KeyedRun | None) -> KeptAnswer:
            nonlocal outcomes
            slips: dict[int, list[AnswerWarning]] = {}
            drafts = await self._drafts(sent, run, slips)
            outcomes = await (self._push.all_or_none if sent.atomic else self._push.each)(drafts, run)
            require_outcome(outcomes)
            status, answer = bulk_enqueued(outcomes, slips)
            summary = {"total": answer.total, "succeeded": answer.succeeded, "failed": answer.failed}
            await self._announce("enqueue", summary | {"atomicity": "atomic" if sent.atomic else "partial"})
            return KeptAnswer(status, encode(answer), final(outcomes))

        answer = await self._once("enqueue", call, sent.idempotency_key, body, work, len(sent.jobs))
        met = (queue for outcome in outcomes if (queue := _queue_met(outcome)) is not None)
        pressed = pressure_headers(self._store, met), refusal_headers(outcome.error for outcome in outcomes)
        return answer._replace(headers=sum(pressed, answer.headers), of_others=True)

    async def _drafts(self, sent: JobList, run: KeyedRun | None, slips: dict[int, list[AnswerWarning]]) -> list[Job | OjsError]:
        """The jobs of the request as they are asked for, or why they are refused; warnings go into `slips`, by place."""
        now = self._store.clock.now()

        def read(index: int, raw: Raw) -> Job | OjsError:
            # The id follows from the idempotency key, so that a second go at the request meets the jobs of the first.
            derived = None if run is None else derived_job_id(run.began, run.name, str(index))
            found: list[AnswerWarning] = []
            try:
                draft = read_draft(raw, index, now, self._limits, found, own_id=derived)
            except OjsError as error:
                return error
            if found:
                slips[index] = found
            return draft

        def all_of_them() -> list[Job | OjsError]:
            return [read(index, raw) for index, raw in enumerate(sent.jobs)]

        return await self._context.aside.run(sum(map(len, sent.jobs)), all_of_them)

    # Cancel, retry, delete and reprioritise

    async def cancel(self, call: Call) -> Response:
        """POST /jobs/bulk/cancel. Active jobs are skipped: DELETE /jobs/{id} cancels one at once."""
        return await self._operate("cancel", call)

    async def retry(self, call: Call) -> Response:
        """POST /jobs/bulk/retry: discarded jobs get a new life, those that wait for their next attempt get it now."""
        return await self._operate("retry", call)

    async def delete(self, call: Call) -> Response:
        """POST /jobs/bulk/delete: finished jobs."""
        return await self._operate("delete", call)

    async def reprioritise(self, call: Call) -> Response:
        """POST /jobs/bulk/reprioritise: jobs that were not fetched yet get another priority."""
        return await self._operate("reprioritise", call)

    async def confirmed_cancel(self, call: Call) -> Response:
        """POST /admin/jobs/bulk/cancel: active jobs, too, if the filter names that state."""
        return await self._confirmed("cancel", call)

    async def confirmed_retry(self, call: Call) -> Response:
        """POST /admin/jobs/bulk/retry."""
        return await self._confirmed("retry", call)

    async def confirmed_delete(self, call: Call) -> Response:
        """POST /admin/jobs/bulk/delete."""
        return await self._confirmed("delete", call)

    async def confirmed_reprioritise(self, call: Call) -> Response:
        """POST /admin/jobs/bulk/reprioritise."""
        return await self._confirmed("reprioritise", call)

    async def _confirmed(self, operation: Operation, call: Call) -> Response:
        """All jobs that fit `{filter, confirm: true}` (ojs-admin-api §8)."""
        selection = await call.parsed(
            await call.body(self._limits.max_control_bytes), parse_confirmed, operation, self._store.clock.now(), self._limits
        )
        selection = _narrowed(selection, call)
        outcomes, rest = await self._change.change_all(operation, selection, call.own)
        require_outcome(outcomes)
        sample = await self._change.sample(outcomes) if selection.dry_run else None
        answer = bulk_confirmed(operation, outcomes, sample=sample, rest=rest)
        if not selection.dry_run:
            summary = {"total": answer.matched, DONE[operation]: answer.succeeded, "skipped": answer.failed}
            await self._announce(operation, summary)
        return Response(200, answer)

    async def _operate(self, operation: Operation, call: Call) -> Response:
        body = await call.body(self._limits.max_control_bytes)
        selection = await call.parsed(body, parse_selection, operation, self._store.clock.now(), self._limits)
        selection = _narrowed(selection, call)

        outcomes: list[ItemOutcome] = []

        async def work(run: KeyedRun | None) -> KeptAnswer:
            nonlocal outcomes
            outcomes, rest = await self._change.change(operation, selection, run, call.own if call.bounded else None)
            require_outcome(outcomes)
            status, answer = bulk_changed(operation, outcomes, dry_run=selection.dry_run, rest=rest)
            if not selection.dry_run:
                done = answer.total_matched - answer.skipped
                summary = {"total": answer.total_matched, DONE[operation]: done, "skipped": answer.skipped}
                await self._announce(operation, summary)
            return KeptAnswer(status, encode(answer), final(outcomes))

        answer = await self._once(operation, call, selection.idempotency_key, body, work, len(selection.job_ids))
        return answer._replace(headers=answer.headers + refusal_headers(outcome.error for outcome in outcomes))

    # Common

    async def _once(self, operation: str, call: Call, sent_key: str | None, body: bytes, work: _Work, items: int) -> Response:
        """Do the work, under the request's idempotency key if it has one."""
        key = idempotency_key(call.header(HEADER), sent_key, self._limits)
        if key is None:
            status, answer, _ = await work(None)
        else:
            scope = call.own_scope(f"bulk.{operation}")
            status, answer = await self._store.idempotency.run(scope, key, body, work)
        headers = (("X-OJS-Batch-Size", str(items)),) if items else ()
        return Response(status, answer, headers)

    async def _announce(self, operation: str, data: dict[str, Any]) -> None:
        subject = new_job_id(self._store.clock.now())
        await announce(self._store, f"bulk.{operation}.completed", scope="bulk", subject=subject, data=data)


def _narrowed(selection: Selection, call: Call) -> Selection:
    """The selection with a filter that finds the caller's jobs alone. Raises permission_denied.

    Jobs that are named are checked one by one, later.
    """
    wanted = selection.filter
    if wanted is None:
        call.held = True
        return selection
    call.require_payloads("filter.meta", wanted.meta)
    queue, job_type = call.narrowed_to(wanted.queue, wanted.type)
    return replace(selection, filter=replace(wanted, queue=queue, type=job_type))


def _queue_met(outcome: ItemOutcome) -> str | None:
    """The queue that took the job, or was too full for it."""
    if outcome.job is not None:
        return outcome.job.queue
    if outcome.error is not None and outcome.error.code == "queue_full":
        return str(outcome.error.details["queue"])
    return None

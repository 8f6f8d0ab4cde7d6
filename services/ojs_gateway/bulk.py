"""Bulk operations: enqueue, cancel, retry and delete many jobs in one request (ojs-bulk-operations; requirements §13)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_gateway.matches import Matches
from ojs_gateway.pressure import pressure_headers, refusal_headers
from ojs_gateway.refusals import Refusals
from ojs_nats import tracing, transitions
from ojs_nats.errors import OjsError, conflict
from ojs_nats.events.announce import announce
from ojs_nats.job import Job, State
from ojs_nats.store.idempotency import Reply, Run
from ojs_nats.transitions import Event, Moment, Transition
from ojs_nats.wire.bulk import (
    DONE,
    JobList,
    Outcome,
    bulk_body,
    bulk_enqueue_body,
    confirmed_body,
    idempotency_key,
    parse_bulk_enqueue,
    read_draft,
)
from ojs_nats.wire.ids import derived_job_id, new_job_id
from ojs_nats.wire.selection import Operation, Selection, parse_confirmed, parse_selection

__all__ = ["Bulk"]

T = TypeVar("T")

_AT_ONCE: Final = 64
"""Jobs of one request that are worked on at a time; others have requests, too."""
_MOST_CONFIRMED: Final = 10_000
"""Jobs that one request of the admin API changes."""
_KEY: Final = "Idempotency-Key"


class Bulk:
    """Handlers under /jobs/bulk."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits
        self._refusals = Refusals(context.store)
        self._matches = Matches(context)

    # Enqueue

    async def enqueue(self, call: Call) -> Answer:
        """POST /jobs/bulk: each job by itself, or all or none (`atomicity`), with one item of the answer for each."""
        body = await call.body()
        sent = parse_bulk_enqueue(body, self._limits)

        outcomes: list[Outcome] = []

        async def work(run: Run | None) -> Reply:
            nonlocal outcomes
            outcomes = await (self._all_or_none(sent, run) if sent.atomic else self._each(sent, run))
            status, answer = bulk_enqueue_body(outcomes)
            failed = sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
            told = {"total": len(outcomes), "succeeded": len(outcomes) - failed, "failed": failed}
            await self._announce("enqueue", told | {"atomicity": "atomic" if sent.atomic else "partial"})
            return Reply(status, answer, _final(outcomes))

        answer = await self._once("enqueue", call, sent.idempotency_key, body, work, len(sent.jobs))
        met = (queue for outcome in outcomes if (queue := _queue_met(outcome)) is not None)
        pressed = pressure_headers(self._store, met), refusal_headers(outcome.error for outcome in outcomes)
        return answer._replace(headers=sum(pressed, answer.headers))

    async def _each(self, sent: JobList, run: Run | None) -> list[Outcome]:
        now = self._store.clock.now()

        async def one(index: int) -> Outcome:
            try:
                return await self._pushed(await self._prepared(sent, index, now, run), run)
            except OjsError as error:
                return Outcome(error=error)

        return await _in_turn(range(len(sent.jobs)), one)

    async def _prepared(self, sent: JobList, index: int, now: int, run: Run | None) -> Job:
        """One job of the request as it will be pushed. Raises OjsError for one that is refused, or dropped by middleware."""
        draft = _named(read_draft(sent.jobs[index], index, now, self._limits), sent, index, run)
        prepared = await self._context.prepare(draft)
        if prepared is None:
            raise OjsError("invalid_request", "an enqueue middleware dropped the job", details={"index": index})
        return prepared

    async def _pushed(self, draft: Job, run: Run | None) -> Outcome:
        try:
            job = await tracing.enqueued(draft, self._store.jobs.push)
        except OjsError as error:
            await self._refusals.tell(error, [draft])
            if run is None or not run.repeated or error.code != "duplicate" or error.details["existing_job_id"] != draft.id:
                raise
            job = await self._store.jobs.get(draft.id)
            if job.created_at < run.began:  # it was there before anybody ran this request
                raise
        return Outcome(job=job, existing=job.id != draft.id)

    async def _all_or_none(self, sent: JobList, run: Run | None) -> list[Outcome]:
        outcomes = [Outcome(rolled_back=True)] * len(sent.jobs)
        now = self._store.clock.now()
        drafts: list[Job] = []
        for index in range(len(sent.jobs)):
            try:
                drafts.append(await self._prepared(sent, index, now, run))
            except OjsError as error:
                outcomes[index] = Outcome(error=error)
        if len(drafts) < len(sent.jobs):
            return outcomes
        try:
            jobs = await tracing.enqueued_all(drafts, self._store.batches.push)
        except OjsError as error:
            if error.code == "queue_full":
                await self._refusals.tell(error, drafts)
                return [_without_room(draft, error, now) for draft in drafts]
            if "index" not in error.details:
                raise
            created = await self._created_before(drafts, run) if error.code == "duplicate" else None
            if created is not None:
                return created
            outcomes[error.details["index"]] = Outcome(error=error)
            return outcomes
        return [Outcome(job=job, existing=job.id != draft.id) for draft, job in zip(drafts, jobs, strict=True)]

    async def _created_before(self, drafts: Sequence[Job], run: Run | None) -> list[Outcome] | None:
        """The jobs, if the same request stored them before it could answer."""
        if run is None or not run.repeated:
            return None
        found = await self._store.records.many([draft.id for draft in drafts])
        jobs = [found[draft.id].job for draft in drafts]
        mine = [job for job in jobs if job is not None and job.created_at >= run.began]
        return [Outcome(job=job) for job in mine] if len(mine) == len(drafts) else None

    # Cancel, retry and delete

    async def cancel(self, call: Call) -> Answer:
        """POST /jobs/bulk/cancel. Active jobs are skipped: DELETE /jobs/{id} cancels one at once."""
        return await self._operate("cancel", call)

    async def retry(self, call: Call) -> Answer:
        """POST /jobs/bulk/retry: discarded jobs get a new life, those that wait for their next attempt get it now."""
        return await self._operate("retry", call)

    async def delete(self, call: Call) -> Answer:
        """POST /jobs/bulk/delete: finished jobs."""
        return await self._operate("delete", call)

    async def confirmed_cancel(self, call: Call) -> Answer:
        """POST /admin/jobs/bulk/cancel: active jobs, too, if the filter names that state."""
        return await self._confirmed("cancel", call)

    async def confirmed_retry(self, call: Call) -> Answer:
        """POST /admin/jobs/bulk/retry."""
        return await self._confirmed("retry", call)

    async def confirmed_delete(self, call: Call) -> Answer:
        """POST /admin/jobs/bulk/delete."""
        return await self._confirmed("delete", call)

    async def _confirmed(self, operation: Operation, call: Call) -> Answer:
        """All jobs that fit `{filter, confirm: true}` (ojs-admin-api §8), up to `_MOST_CONFIRMED`; it can be repeated."""
        selection = parse_confirmed(await call.body(), operation, self._store.clock.now(), self._limits)
        outcomes: list[Outcome] = []
        while True:
            matched, cursor = await self._matches.of(selection)
            outcomes += await self._outcomes(operation, selection, matched, _CONFIRMED[operation])
            if cursor is None or len(outcomes) >= _MOST_CONFIRMED:
                break
            selection = replace(selection, cursor=cursor)
        failed = sum(outcome.error is not None for outcome in outcomes)
        told = {"total": len(outcomes), DONE[operation]: len(outcomes) - failed, "skipped": failed}
        if not selection.dry_run:
            await self._announce(operation, told)
        assert selection.filter is not None
        rest = await self._matches.rest(selection.filter, cursor)
        return Answer(200, confirmed_body(operation, outcomes, dry_run=selection.dry_run, rest=rest))

    async def _operate(self, operation: Operation, call: Call) -> Answer:
        body = await call.body()
        now = self._store.clock.now()
        selection = parse_selection(body, operation, now, self._limits, confirmed=call.dialect.flat_job)

        async def work(run: Run | None) -> Reply:
            matched, cursor = await self._matches.of(selection)
            outcomes = await self._outcomes(operation, selection, matched, _DECISIONS[operation])
            if run is not None and run.repeated and not selection.dry_run:
                outcomes = await _in_turn(outcomes, lambda outcome: self._done_before(operation, outcome, run.began))
            if not selection.dry_run:
                skipped = sum(outcome.error is not None or outcome.rolled_back for outcome in outcomes)
                done = len(outcomes) - skipped
                told = {"total": len(outcomes), DONE[operation]: done, "skipped": skipped}
                await self._announce(operation, told)
            rest = None if selection.filter is None else await self._matches.rest(selection.filter, cursor)
            return Reply(*bulk_body(operation, outcomes, dry_run=selection.dry_run, rest=rest), _final(outcomes))

        return await self._once(operation, call, selection.idempotency_key, body, work, len(selection.job_ids))

    async def _outcomes(
        self, operation: Operation, selection: Selection, matched: Sequence[str], decide: Decide
    ) -> list[Outcome]:
        if selection.atomic and not selection.dry_run and matched:
            changed = await self._store.together.change(matched, decide)
            refused = any(isinstance(one, OjsError) for one in changed)
            by_id = dict(zip(dict.fromkeys(matched), changed, strict=True))
            return [_outcome(job_id, by_id[job_id], rolled_back=refused) for job_id in matched]

        async def one(job_id: str) -> Outcome:
            try:
                if selection.dry_run:
                    decide(await self._store.jobs.get(job_id), self._store.clock.moment())
                elif operation == "retry":
                    await self._store.jobs.revive(job_id, decide)
                else:
                    await self._store.jobs.change(job_id, decide)
            except OjsError as error:
                return Outcome(job_id=job_id, error=error)
            return Outcome(job_id=job_id)

        return await _in_turn(matched, one)

    async def _done_before(self, operation: Operation, outcome: Outcome, began: int) -> Outcome:
        """The outcome of a request that is run a second time, because whoever ran it first died: what it did then is done."""
        job_id = outcome.job_id
        if outcome.error is None or _failed(outcome) or job_id is None:
            return outcome
        events = _EVENTS[operation]
        log = await self._store.records.log_of(job_id)
        return Outcome(job_id=job_id) if any(entry.event in events and entry.at >= began for entry in log) else outcome

    # Common

    async def _once(self, operation: str, call: Call, sent_key: str | None, body: bytes, work: _Work, items: int) -> Answer:
        """Do the work, under the request's idempotency key if it has one."""
        key = idempotency_key(call.header(_KEY), sent_key, self._limits)
        if key is None:
            status, answer, _ = await work(None)
        else:
            status, answer = await self._store.idempotency.run(f"bulk.{operation}", key, body, work)
        headers = (("X-OJS-Batch-Size", str(items)),) if items else ()
        return Answer(status, answer, headers)

    async def _announce(self, operation: str, data: dict[str, Any]) -> None:
        subject = new_job_id(self._store.clock.now())
        await announce(self._store, f"bulk.{operation}.completed", scope="bulk", subject=subject, data=data)


Decide = Callable[[Job, Moment], Transition]
_Work = Callable[[Run | None], Awaitable[Reply]]


async def _in_turn(items: Sequence[T], one: Callable[[T], Awaitable[Outcome]]) -> list[Outcome]:
    """The outcome of each, some at a time; they begin in order, so that jobs keep the order of the request."""
    outcomes: list[Outcome] = []
    for start in range(0, len(items), _AT_ONCE):
        outcomes += await asyncio.gather(*(one(item) for item in items[start : start + _AT_ONCE]))
    return outcomes


def _named(draft: Job, sent: JobList, index: int, run: Run | None) -> Job:
    """A draft whose id follows from the idempotency key, so that a second go at the request meets the jobs of the first."""
    if run is None or draft.id.encode() in bytes(sent.jobs[index]):  # the client's own
        return draft
    return replace(draft, id=derived_job_id(run.began, run.name, str(index)))


def _outcome(job_id: str, changed: Job | OjsError, *, rolled_back: bool) -> Outcome:
    if isinstance(changed, OjsError):
        return Outcome(job_id=job_id, error=changed)
    return Outcome(job_id=job_id, rolled_back=rolled_back)


def _failed(outcome: Outcome) -> bool:
    """Whether it was not the item's fault."""
    return outcome.error is not None and outcome.error.info.status >= 500


def _final(outcomes: Sequence[Outcome]) -> bool:
    return not any(_failed(outcome) for outcome in outcomes)


def _queue_met(outcome: Outcome) -> str | None:
    """The queue that took the job, or was too full for it."""
    if outcome.job is not None:
        return outcome.job.queue
    if outcome.error is not None and outcome.error.code == "queue_full":
        return str(outcome.error.details["queue"])
    return None


def _without_room(draft: Job, error: OjsError, now: int) -> Outcome:
    """What became of a job whose request failed, because a queue has no room for it or for another."""
    crowded = draft.queue == error.details["queue"] and transitions.waits_at_once(draft, now)
    return Outcome(error=error) if crowded else Outcome(rolled_back=True)


def _cancelled(job: Job, moment: Moment) -> Transition:
    if job.state is State.ACTIVE:
        message = f"job {job.id} is in active state; DELETE /jobs/{job.id} cancels it"
        raise conflict(message, job.id, job.state, "available, scheduled, retryable or pending")
    return transitions.cancel(job, moment, "bulk")


_DECISIONS: Final[dict[Operation, Decide]] = {
    "cancel": _cancelled,
    "retry": transitions.retry_by_hand,
    "delete": transitions.remove,
}
_CONFIRMED: Final = _DECISIONS | {"cancel": lambda job, moment: transitions.cancel(job, moment, "bulk")}
"""Operators who name active jobs mean them (ojs-admin-api §8.2)."""


_EVENTS: Final[dict[Operation, tuple[Event, ...]]] = {
    "cancel": ("cancelled",),
    "retry": ("retried", "promoted"),
    "delete": ("deleted", "removed"),
}

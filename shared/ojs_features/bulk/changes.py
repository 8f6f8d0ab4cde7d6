"""Cancelling, retrying, deleting and reprioritising many jobs in one request (ojs-bulk-operations §6, ojs-admin-api §8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, conflict
from ojs_engine.base.portions import AT_ONCE, in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment, Transition, TransitionName
from ojs_engine.store.records.idempotency import KeyedRun
from ojs_engine.store.store import Store
from ojs_features.bulk.atomic_changes import AtomicChanges
from ojs_features.bulk.outcomes import ItemOutcome, Rest, failed
from ojs_features.bulk.selection import Operation, Selection
from ojs_features.bulk.targets import BulkTargets
from ojs_index.asking.client import Queries

_MOST_CONFIRMED: Final = 10_000
"""Jobs that one request of an operator changes."""
_MOST_SAMPLES: Final = 5
"""Jobs that a dry run shows."""


class BulkChange:
    """Changes the jobs that a selection is about. Active jobs are skipped by a cancel, unless an operator names them."""

    def __init__(self, store: Store, queries: Queries) -> None:
        self._store = store
        self._targets = BulkTargets(store, queries)

    async def change(
        self, operation: Operation, selection: Selection, run: KeyedRun | None, own: Own | None = None
    ) -> tuple[list[ItemOutcome], Rest | None]:
        """What became of each job, and what a filter has still before it; None for jobs that were named.

        `own` raises not_found for a job that the caller may not touch.
        """
        matched, cursor = await self._targets.of(selection)
        outcomes = await self._outcomes(operation, selection, matched, _decision(operation, selection, own))
        if run is not None and run.repeated and not selection.dry_run and own is None:
            outcomes = await in_portions(outcomes, lambda outcome: self._done_before(operation, outcome, run.began), AT_ONCE)
        return outcomes, None if selection.filter is None else await self._targets.rest(selection, cursor, len(matched))

    async def change_all(
        self, operation: Operation, selection: Selection, own: Own | None = None
    ) -> tuple[list[ItemOutcome], Rest]:
        """The same for all jobs that fit a filter, up to `_MOST_CONFIRMED`, or for a page of them; it can be repeated."""
        first = selection
        outcomes: list[ItemOutcome] = []
        while True:
            matched, cursor = await self._targets.of(selection)
            outcomes += await self._outcomes(operation, selection, matched, _decision(operation, selection, own, active=True))
            if cursor is None or selection.one_page or len(outcomes) >= _MOST_CONFIRMED:
                break
            selection = replace(selection, cursor=cursor)
        return outcomes, await self._targets.rest(first, cursor, len(outcomes))

    async def sample(self, outcomes: Sequence[ItemOutcome]) -> list[Job]:
        """Some of the jobs that a dry run would change. Jobs that have left since are left out."""
        ids = [outcome.job_id for outcome in outcomes if outcome.error is None][:_MOST_SAMPLES]
        read = await self._store.records.many(ids)
        return [job for one in ids if (job := read[one].job) is not None]

    async def _outcomes(
        self, operation: Operation, selection: Selection, matched: Sequence[str], decide: DecideItem
    ) -> list[ItemOutcome]:
        if selection.atomic and not selection.dry_run and matched:
            changed = await self._store.of(AtomicChanges).change(matched, decide)
            refused = any(isinstance(one, OjsError) for one in changed)
            by_id = dict(zip(dict.fromkeys(matched), changed, strict=True))
            return [_outcome(job_id, by_id[job_id], rolled_back=refused) for job_id in matched]

        async def one(job_id: str) -> ItemOutcome:
            try:
                if selection.dry_run:
                    decide(await self._store.jobs.get(job_id), self._store.clock.moment())
                elif operation == "retry":
                    await self._store.jobs.revive(job_id, decide)
                else:
                    await self._store.jobs.change(job_id, decide)
            except OjsError as error:
                return ItemOutcome(job_id=job_id, error=error)
            return ItemOutcome(job_id=job_id)

        return await in_portions(matched, one, AT_ONCE)

    async def _done_before(self, operation: Operation, outcome: ItemOutcome, began: int) -> ItemOutcome:
        """Return the outcome for a request that is run again since its first process died: what that did is done."""
        job_id = outcome.job_id
        if outcome.error is None or failed(outcome) or job_id is None:
            return outcome
        events = _EVENTS[operation]
        log = await self._store.records.log_of(job_id)
        return ItemOutcome(job_id=job_id) if any(entry.event in events and entry.at >= began for entry in log) else outcome


DecideItem = Callable[[Job, Moment], Transition]
Own = Callable[[Job], Job]


def _outcome(job_id: str, changed: Job | OjsError, *, rolled_back: bool) -> ItemOutcome:
    if isinstance(changed, OjsError):
        return ItemOutcome(job_id=job_id, error=changed)
    return ItemOutcome(job_id=job_id, rolled_back=rolled_back)


def _decision(operation: Operation, selection: Selection, own: Own | None, *, active: bool = False) -> DecideItem:
    """What is done with each job; `active` jobs are cancelled only where an operator has confirmed it."""
    decide: DecideItem
    match operation:
        case "retry":
            decide = transitions.retry_by_hand
        case "delete":
            decide = transitions.remove
        case "cancel":
            decide = partial(_cancelled, reason=selection.reason, active=active)
        case "reprioritise":
            decide = partial(_reprioritised, priority=selection.priority)
    return decide if own is None else lambda job, moment: decide(own(job), moment)


def _cancelled(job: Job, moment: Moment, *, reason: str, active: bool) -> Transition:
    if job.state is State.ACTIVE and not active:
        message = f"job {job.id} is in active state; DELETE /jobs/{job.id} cancels it"
        raise conflict(message, job.id, job.state, "available, scheduled, retryable or pending")
    return transitions.cancel(job, moment, reason)


def _reprioritised(job: Job, moment: Moment, *, priority: int | None) -> Transition:
    """Give a job another priority; one that has it already keeps its place in line."""
    changed = transitions.reprioritise(job, job.priority if priority is None else priority, moment)
    if job.priority == priority:
        raise conflict(f"job {job.id} has priority {priority} already", job.id, job.state, "another priority")
    return changed


_EVENTS: Final[dict[Operation, tuple[TransitionName, ...]]] = {
    "cancel": ("cancelled",),
    "retry": ("retried", "promoted"),
    "delete": ("deleted", "removed"),
    "reprioritise": ("reprioritised",),
}

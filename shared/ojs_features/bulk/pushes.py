"""Pushing many jobs in one request: each by itself, or all or none (ojs-bulk-operations §5)."""

from __future__ import annotations

from collections.abc import Sequence

from ojs_engine.base.errors import OjsError
from ojs_engine.base.portions import AT_ONCE, in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.operations.job_checks import JobCheck, JobWarning
from ojs_engine.operations.rejections import RejectionEvents
from ojs_engine.store.records.idempotency import KeyedRun
from ojs_engine.store.store import Store
from ojs_features.bulk.outcomes import ItemOutcome
from ojs_runtime import tracing


class BulkPush:
    """Pushes drafts; one that could not be read is its refusal, and has its place in the answer.

    `check` returns what the sender of a job is warned of.
    """

    def __init__(self, store: Store, check: JobCheck, rejections: RejectionEvents) -> None:
        self._store = store
        self._check = check
        self._rejections = rejections

    async def each(self, drafts: Sequence[Job | OjsError], run: KeyedRun | None) -> list[ItemOutcome]:
        """Push each job by itself."""

        async def one(index: int) -> ItemOutcome:
            try:
                draft, warnings = await self._checked(drafts[index])
                return await self._pushed(draft, warnings, run)
            except OjsError as error:
                return ItemOutcome(error=error)

        # They begin in order, so that jobs keep the order of the request.
        return await in_portions(range(len(drafts)), one, AT_ONCE)

    async def all_or_none(self, drafts: Sequence[Job | OjsError], run: KeyedRun | None) -> list[ItemOutcome]:
        """Push all jobs, or none: then there is an error for at least one of them, and the others are rolled back."""
        now = self._store.clock.now()
        outcomes = [ItemOutcome(rolled_back=True)] * len(drafts)
        wanted: list[Job] = []
        warnings: list[Sequence[JobWarning]] = []
        for index, sent in enumerate(drafts):
            try:
                draft, found = await self._checked(sent)
            except OjsError as error:
                outcomes[index] = ItemOutcome(error=error)
            else:
                wanted.append(draft)
                warnings.append(found)
        if len(wanted) < len(drafts):
            return outcomes
        try:
            jobs = await tracing.enqueued_all(wanted, self._store.enqueue.push_all)
        except OjsError as error:
            if error.code == "queue_full":
                await self._rejections.tell(error, wanted)
                return [_without_room(draft, error, now) for draft in wanted]
            if "index" not in error.details:
                raise
            created = await self._created_before(wanted, run) if error.code == "duplicate" else None
            if created is not None:
                return created
            outcomes[error.details["index"]] = ItemOutcome(error=error)
            return outcomes
        return [
            ItemOutcome(job=job, existing=job.id != draft.id, warnings=found)
            for draft, job, found in zip(wanted, jobs, warnings, strict=True)
        ]

    async def _checked(self, draft: Job | OjsError) -> tuple[Job, Sequence[JobWarning]]:
        """Return one job of the request, and what its sender is warned of. Raises OjsError for one that is refused."""
        if isinstance(draft, OjsError):
            raise draft
        return draft, await self._check(draft)

    async def _pushed(self, draft: Job, warnings: Sequence[JobWarning], run: KeyedRun | None) -> ItemOutcome:
        try:
            job = await tracing.enqueued(draft, self._store.enqueue.push)
        except OjsError as error:
            await self._rejections.tell(error, [draft])
            if run is None or error.code != "duplicate" or error.details["existing_job_id"] != draft.id:
                raise
            job = await self._store.jobs.get(draft.id)
            if not run.takes(job.created_at):
                raise
        return ItemOutcome(job=job, existing=job.id != draft.id, warnings=warnings)

    async def _created_before(self, drafts: Sequence[Job], run: KeyedRun | None) -> list[ItemOutcome] | None:
        """The jobs, if the same request stored them before it could answer."""
        if run is None:
            return None
        found = await self._store.records.many([draft.id for draft in drafts])
        stored = [job for draft in drafts if (job := found[draft.id].job) is not None]
        if len(stored) < len(drafts) or not run.takes(min(job.created_at for job in stored)):
            return None
        return [ItemOutcome(job=job) for job in stored]


def _without_room(draft: Job, error: OjsError, now: int) -> ItemOutcome:
    """What became of a job whose request failed, because a queue has no room for it or for another."""
    crowded = draft.queue == error.details["queue"] and transitions.waits_at_once(draft, now)
    return ItemOutcome(error=error) if crowded else ItemOutcome(rolled_back=True)

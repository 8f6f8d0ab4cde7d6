"""Changing several existing jobs, all or none: atomic bulk cancel, retry and delete (ojs-bulk-operations §6-§8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, duplicate, not_found
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.store.records.atomic import AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.store import Store

DecideAll = Callable[[Job, Moment], Transition]


class AtomicChanges:
    """Applies one decision to many jobs at once."""

    def __init__(self, store: Store) -> None:
        self._records = store.records
        self._unique = store.unique
        self._atomic = store.atomic
        self._clock = store.clock
        self._tries = store.bucket.tries

    async def change(self, job_ids: Sequence[str], decide: DecideAll) -> list[Job | OjsError]:
        """Change every job, or none: then there is an error for at least one of them, and each other one is as it
        stands.

        Raises OjsError batch_size_exceeded, backend_unavailable.
        """
        async for _ in self._tries():
            owners: dict[str, Job] = {}
            decided = [await self._decide(job_id, decide, owners) for job_id in dict.fromkeys(job_ids)]
            if any(isinstance(one, OjsError) for one, _ in decided):
                return [one.transition.job if isinstance(one, AtomicCommit) else one for one, _ in decided]
            commits = [one for one, _ in decided if isinstance(one, AtomicCommit)]
            try:
                await self._atomic.commit(commits, [lock for _, lock in decided if lock is not None])
            except Conflict:
                continue
            else:
                return [commit.transition.job for commit in commits]
        raise contended("one of the jobs")

    async def _decide(
        self, job_id: str, decide: DecideAll, owners: dict[str, Job]
    ) -> tuple[AtomicCommit | OjsError, Write | None]:
        """What to write for one job: its record, and the lock if it begins a new life as a unique one.

        `owners` are the jobs that take a fingerprint in the same request: another one of it would be a duplicate.
        """
        found = await self._records.leader(job_id)
        try:
            if found.job is None:
                raise not_found("job", job_id)
            moment = self._clock.moment()
            transition = decide(found.job, moment)
            key = transition.job.unique_key
            if key is None or not found.job.terminal or transition.job.terminal:
                return AtomicCommit(transition, found.sequence, moment.op), None
            standing = await self._unique.look(transition.job)
            if others := [owners[key]] if key in owners else standing.jobs(but=job_id):
                raise duplicate(others[0].id, others[0].state, key)
            owners[key] = transition.job
        except OjsError as error:
            if error.info.status >= 500:
                raise
            return error, None
        transition = replace(transition, job=replace(transition.job, lock=moment.op))
        return AtomicCommit(transition, found.sequence, moment.op), self._unique.claim(transition.job, standing, moment)

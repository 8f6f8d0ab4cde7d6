"""Changing several existing jobs, all or none: atomic bulk cancel, retry and delete (ojs-bulk-operations §6-§8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.store.locks import LockPlan
from ojs_engine.store.records.atomic import AtomicCommit
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.store import Store

DecideAll = Callable[[Job, Moment], Transition]


class AtomicChanges:
    """Applies one decision to many jobs at once."""

    def __init__(self, store: Store) -> None:
        self._records = store.records
        self._locks = store.locks
        self._atomic = store.atomic
        self._clock = store.clock
        self._tries = store.bucket.tries

    async def change(self, job_ids: Sequence[str], decide: DecideAll) -> list[Job | OjsError]:
        """Change every job, or none: then there is an error for at least one of them, and each other one is as it
        stands.

        Raises OjsError batch_size_exceeded, backend_unavailable.
        """
        async for _ in self._tries():
            locks = None if self._locks is None else await self._locks.plan(())
            decided = [await self._decide(job_id, decide, locks) for job_id in dict.fromkeys(job_ids)]
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
        self, job_id: str, decide: DecideAll, locks: LockPlan | None
    ) -> tuple[AtomicCommit | OjsError, Write | None]:
        """Return what to write for one job: its record, and its lock if it begins a new life and asks for one."""
        found = await self._records.leader(job_id)
        try:
            if found.job is None:
                raise not_found("job", job_id)
            moment = self._clock.moment()
            transition = decide(found.job, moment)
            begins = found.job.terminal and not transition.job.terminal
            if locks is None or self._locks is None or not begins or not self._locks.asks(transition.job):
                return AtomicCommit(transition, found.sequence, moment.op), None
            [commit], lock = await locks.revive(found, transition, moment)
        except OjsError as error:
            if error.info.status >= 500:
                raise
            return error, None
        return commit, lock

"""Changing several existing jobs, all or none: atomic bulk cancel, retry and delete (ojs-bulk-operations §6-§8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ojs_nats.errors import OjsError, duplicate, not_found, unavailable
from ojs_nats.job import Job
from ojs_nats.store.atomic import Atomic, Commit
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.records import Records
from ojs_nats.store.stepback import step_back
from ojs_nats.store.swap import Swap
from ojs_nats.store.unique import Uniqueness
from ojs_nats.transitions import Moment, Transition
from ojs_nats.unique import policy_of

__all__ = ["Together"]

_TRIES: Final = 12

Decide = Callable[[Job, Moment], Transition]


class Together:
    """Applies one decision to many jobs at once."""

    def __init__(self, records: Records, unique: Uniqueness, atomic: Atomic, clock: ServerClock) -> None:
        self._records = records
        self._unique = unique
        self._atomic = atomic
        self._clock = clock

    async def change(self, job_ids: Sequence[str], decide: Decide) -> list[Job | OjsError]:
        """Change every job, or none: then there is an error for at least one of them, and each other one is as it stands.

        Raises OjsError batch_size_exceeded, backend_unavailable.
        """
        for tries in range(1, _TRIES + 1):
            owners: dict[str, Job] = {}
            decided = [await self._decide(job_id, decide, owners) for job_id in dict.fromkeys(job_ids)]
            if any(isinstance(one, OjsError) for one, _ in decided):
                return [one.transition.job if isinstance(one, Commit) else one for one, _ in decided]
            commits = [one for one, _ in decided if isinstance(one, Commit)]
            try:
                await self._atomic.commit(commits, [swap for _, swap in decided if swap is not None])
            except Conflict:
                await step_back(self._clock, tries)
            else:
                return [commit.transition.job for commit in commits]
        raise unavailable(f"the jobs changed {_TRIES} times while this request tried to change them; try again")

    async def _decide(self, job_id: str, decide: Decide, owners: dict[str, Job]) -> tuple[Commit | OjsError, Swap | None]:
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
                return Commit(transition, found.sequence, moment.op), None
            standing = await self._unique.look(key, policy_of(transition.job), job_id)
            if others := [owners[key]] if key in owners else standing.jobs(but=job_id):
                raise duplicate(others[0].id, others[0].state, key)
            owners[key] = transition.job
        except OjsError as error:
            if error.info.status >= 500:
                raise
            return error, None
        transition = replace(transition, job=replace(transition.job, lock=moment.op))
        return Commit(transition, found.sequence, moment.op), self._unique.claim(key, standing, job_id, moment)

"""Creating the jobs that a record of a feature names (docs/adr/008, 011).

The record comes first. A job's id follows from it, and the job is created over nothing. So whoever holds the record
sees to it that its jobs exist, as often as it takes, and each is created once.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.store.enqueue.enqueue import Enqueue, Push
from ojs_engine.store.locks import JobLocks
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.writer import Conflict

log = structlog.get_logger(__name__)


class Spawner:
    """Creates named jobs, any number of times, each once."""

    def __init__(self, bucket: Bucket, enqueue: Enqueue, locks: JobLocks | None) -> None:
        self._records = bucket.records
        self._committer = bucket.committer
        self._enqueue = enqueue
        self._locks = locks
        self._clock = bucket.clock
        self._tries = bucket.tries

    async def missing(self, ids: Sequence[str], *, tend: bool) -> list[str]:
        """Return the ids, in order, under which no job was ever created, as far as the nearest replica knows.

        `tend`: publish the tokens of young available ones again, since their creator may have died before it did.
        """
        found = await self._records.many(ids)
        now = self._clock.now()
        missing: list[str] = []
        for job_id in ids:
            stored = found[job_id]
            if stored.sequence == 0 or (stored.job is None and await self._fenced(job_id)):
                missing.append(job_id)
            elif tend:
                await self._committer.tend(stored, now)
        return missing

    async def _fenced(self, job_id: str) -> bool:
        return self._locks is not None and await self._locks.fenced(job_id)

    async def ensure(self, drafts: Sequence[Job], push: Push | None = None) -> list[tuple[Job, OjsError]]:
        """Create jobs in order, so that one who takes them one by one sees it; those that exist are left alone.

        `push` stores jobs that their queue may refuse; without it they are accepted work, which only a lock
        refuses. Returns those that are refused for good. Raises OjsError if some may be missing: repeat it then.
        """
        refused: list[tuple[Job, OjsError]] = []
        together: list[Job] = []
        for draft in drafts:
            if push is None and (self._locks is None or not self._locks.asks(draft)):
                together.append(draft)
                continue
            await self._enqueue.store_each(together)  # what comes before it
            together = []
            refusal = await _refusal(draft, push or self._enqueue.store)
            if refusal is not None:
                refused.append((draft, refusal))
        await self._enqueue.store_each(together)
        return refused

    async def discard(self, draft: Job, problem: OjsError) -> None:
        """Create a job that was refused as discarded, for a record that waits for its end, unless it exists.

        Raises OjsError backend_unavailable: it may be missing then.
        """
        expected = 0
        async for _ in self._tries():
            moment = self._clock.moment()
            try:
                await self._committer.commit(transitions.push_discarded(draft, problem, moment), expected, moment.op)
            except Conflict:
                if not await self._fenced(draft.id):
                    return  # somebody else has created it
                expected = (await self._records.leader(draft.id)).sequence
                draft = await self._records.continued(draft)
            else:
                log.info("a job of a workflow is not unique", job_id=draft.id, reason=problem.message)
                return
        raise contended(f"job {draft.id}")


async def _refusal(draft: Job, push: Push) -> OjsError | None:
    """Push a job; returns what it is refused for, for good. One that exists is no refusal."""
    try:
        await push(draft)
    except OjsError as error:
        if error.info.retryable:
            raise
        exists = error.code == "duplicate" and error.details.get("existing_job_id") == draft.id
        return None if exists else error
    return None

"""Jobs: read, list, cancel, retry, one by one and many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal
from uuid import uuid4

import msgspec

from ojs_nats import _deprecated
from ojs_nats._durations import Duration, milliseconds, moment
from ojs_nats._operations import CANCEL_JOB, GET_JOB, GET_RESULT, Operation, Request
from ojs_nats.errors import ResultGone, WaitTimeoutError
from ojs_nats.jobs import Checkpoint, Job
from ojs_nats.models.jobs import (
    AttemptTrace,
    ChangedPriority,
    ChangedSelection,
    Explanation,
    HistoryEvent,
    JobDetail,
    JobLineage,
    JobResult,
    JobRetries,
    Progress,
    UniqueJob,
)
from ojs_nats.operations.subject import Subject, body, parameters

_ASK_S: Final = 20.0
"""How long the server keeps a question for a result that isn't there yet."""

_LIST: Final = Operation("listJobs", "GET", "/jobs")
_DETAIL: Final = Operation("adminGetJob", "GET", "/admin/jobs/{job_id}")
_RETRY: Final = Operation("adminRetryJob", "POST", "/admin/jobs/{job_id}/retry")
_RUN: Final = Operation("adminRunJob", "POST", "/admin/jobs/{job_id}/run")
_WHY: Final = Operation("explainJob", "GET", "/admin/jobs/{job_id}/why")
_ACTIVATE: Final = Operation("activateJob", "POST", "/jobs/{job_id}/activate")
_REPRIORITISE: Final = Operation("updateJobPriority", "PATCH", "/jobs/{job_id}")
_PROGRESS: Final = Operation("getJobProgress", "GET", "/jobs/{job_id}/progress")
_CHECKPOINT: Final = Operation("getJobCheckpoint", "GET", "/jobs/{job_id}/checkpoint")
_DELETE_CHECKPOINT: Final = Operation("deleteJobCheckpoint", "DELETE", "/jobs/{job_id}/checkpoint")
_HISTORY: Final = Operation("listJobHistory", "GET", "/jobs/{job_id}/history")
_LINEAGE: Final = Operation("getJobLineage", "GET", "/jobs/{job_id}/lineage")
_ATTEMPTS: Final = Operation("debugGetTraces", "GET", "/debug/jobs/{job_id}/traces")
_ATTEMPT: Final = Operation("debugGetTraceAttempt", "GET", "/debug/jobs/{job_id}/traces/{attempt}")
_RETRIES: Final = Operation("listJobRetries", "GET", "/jobs/{job_id}/retries")
_RESULTS: Final = Operation("getJobResults", "POST", "/jobs/results")
_UNIQUE: Final = Operation("listUniqueJobs", "GET", "/unique-jobs")
_CANCEL_MANY: Final = Operation("bulkCancelJobs", "POST", "/jobs/bulk/cancel")
_RETRY_MANY: Final = Operation("bulkRetryJobs", "POST", "/jobs/bulk/retry")
_REPRIORITISE_MANY: Final = Operation("bulkReprioritiseJobs", "POST", "/jobs/bulk/reprioritise")
_DELETE_MANY: Final = Operation("bulkDeleteJobs", "POST", "/jobs/bulk/delete")

Priority = int | Literal["high", "normal", "low"]


class JobFilter(msgspec.Struct, frozen=True):
    """Which jobs: those that fit all of it. `type` may end in `*`, `meta` names members and what they are."""

    type: str | None = None
    queue: str | None = None
    states: Sequence[str] = ()
    priority: Priority | None = None
    enqueued_before: datetime | None = None
    enqueued_after: datetime | None = None
    older_than: Duration | None = None
    meta: Mapping[str, Any] = {}
    tag: str | None = None
    error_type: str | None = None
    worker: str | None = None

    def wire(self) -> dict[str, Any]:
        before, after = self.enqueued_before, self.enqueued_after
        return body(
            type=self.type,
            queue=self.queue,
            states=[*self.states] or None,
            priority=self.priority,
            enqueued_before=before and moment(before, "enqueued_before"),
            enqueued_after=after and moment(after, "enqueued_after"),
            older_than=None if self.older_than is None else milliseconds(self.older_than) / 1_000,
            meta=dict(self.meta) or None,
            tag=self.tag,
            error_type=self.error_type,
            worker=self.worker,
        )


class Jobs(Subject):
    """`client.jobs`. What is about one job raises NotFoundError, once it has left as well; what changes it raises
    ConflictError if its state forbids that.
    """

    async def get(self, job_id: str, *, queue: str | None = None) -> Job:
        """As it is now. Here and below `queue` is the job's: over NATS, for those who are granted that queue alone."""
        return await self._asked(Job, Request(GET_JOB, {"job_id": job_id}, queue=queue), "job")

    async def detail(self, job_id: str) -> JobDetail:
        """With what happened to it, and what will happen by itself."""
        return await self._asked(JobDetail, Request(_DETAIL, {"job_id": job_id}))

    def list(
        self,
        *,
        state: str | None = None,
        queue: str | None = None,
        type: str | None = None,
        tag: str | None = None,
        error_type: str | None = None,
        worker: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        meta: Mapping[str, str] | None = None,
        sort: Literal["created_at", "scheduled_at", "priority"] = "created_at",
        order: Literal["desc", "asc"] = "desc",
        limit: int | None = None,
    ) -> AsyncIterator[Job]:
        """The newest first, unless told otherwise: `async for job in client.jobs.list(state="discarded", limit=50)`.

        `type` may end in `*`; `since` and `until` are about when they were created; `text` is words of their arguments, which
        the server only knows if it is set to.
        """
        asked = parameters(
            state=state, queue=queue, type=type, tag=tag, error_type=error_type, worker=worker,
            since=since, until=until, text=text, sort=sort, order=order,
        )  # fmt: skip
        asked |= {f"meta.{name}": value for name, value in (meta or {}).items()}
        return self._each(Job, "jobs", _LIST, limit, asked, queue)

    async def cancel(self, job_id: str, *, reason: str | None = None, queue: str | None = None) -> Job:
        """A worker that runs it is told to stop."""
        return await self._asked(Job, Request(CANCEL_JOB, {"job_id": job_id}, body(reason=reason), queue), "job")

    async def retry(self, job_id: str) -> Job:
        """A new life for one that has failed or was cancelled, the next attempt now for one that waits for it."""
        return await self._asked(Job, Request(_RETRY, {"job_id": job_id}, repeatable=False), "job")

    async def run_now(self, job_id: str) -> Job:
        """Make one available that is scheduled, pending, or waits for its next attempt."""
        return await self._asked(Job, Request(_RUN, {"job_id": job_id}, repeatable=False), "job")

    async def why(self, job_id: str) -> Explanation:
        """Why it is where it is, what matters most first."""
        return await self._asked(Explanation, Request(_WHY, {"job_id": job_id}))

    async def activate(self, job_id: str) -> Job:
        """Make a pending one available."""
        return await self._asked(Job, Request(_ACTIVATE, {"job_id": job_id}), "job")

    async def set_priority(self, job_id: str, priority: Priority) -> ChangedPriority:
        """-100 to 100, the highest first; until it is fetched."""
        return await self._asked(ChangedPriority, Request(_REPRIORITISE, {"job_id": job_id}, {"priority": priority}))

    # What is known of it

    async def progress(self, job_id: str) -> Progress:
        """How far its attempt has come, as it has told."""
        return await self._asked(Progress, Request(_PROGRESS, {"job_id": job_id}))

    async def checkpoint(self, job_id: str) -> Checkpoint:
        """What was saved last. Raises NotFoundError if nothing was."""
        return await self._asked(Checkpoint, Request(_CHECKPOINT, {"job_id": job_id}))

    async def delete_checkpoint(self, job_id: str) -> bool:
        """Let the next attempt begin anew. Says whether there was one."""
        return await self._asked(bool, Request(_DELETE_CHECKPOINT, {"job_id": job_id}), "existed")

    def history(self, job_id: str, *, limit: int | None = None) -> AsyncIterator[HistoryEvent]:
        """What happened to it, the oldest first, as far as its log goes back."""
        return self._each(HistoryEvent, "events", _HISTORY, limit, {"job_id": job_id})

    async def lineage(self, job_id: str) -> JobLineage:
        """Where it comes from."""
        return await self._asked(JobLineage, Request(_LINEAGE, {"job_id": job_id}))

    async def attempts(self, job_id: str) -> Sequence[AttemptTrace]:
        """The oldest first, as far as its log goes back."""
        return await self._asked(list[AttemptTrace], Request(_ATTEMPTS, {"job_id": job_id}), "traces")

    async def attempt(self, job_id: str, number: int) -> AttemptTrace:
        """The latest of that number, if the job was retried by hand."""
        return await self._asked(AttemptTrace, Request(_ATTEMPT, {"job_id": job_id, "attempt": str(number)}), "trace")

    async def retries(self, job_id: str) -> JobRetries:
        """Its failed attempts, and the policy that says what follows."""
        return await self._asked(JobRetries, Request(_RETRIES, {"job_id": job_id}))

    def unique(self, *, limit: int | None = None) -> AsyncIterator[UniqueJob]:
        """The fingerprints that jobs hold which haven't ended."""
        return self._each(UniqueJob, "items", _UNIQUE, limit, {})

    # Results

    async def result(self, job_id: str) -> JobResult:
        """As it is now; `result` is None while there is none. Raises ResultGone if it wasn't kept."""
        return await self._asked(JobResult, Request(GET_RESULT, {"job_id": job_id}))

    async def results(self, job_ids: Sequence[str]) -> dict[str, JobResult]:
        """By id; the `state` of one that isn't there is `not_found`."""
        return await self._asked(dict[str, JobResult], Request(_RESULTS, body={"ids": [*job_ids]}), "results")

    async def wait(self, job_id: str, timeout: Duration | None = None, *, queue: str | None = None) -> Job:
        """Return the job once it has ended; the server keeps the question, so nobody polls. Raises WaitTimeoutError."""
        limit = None if timeout is None else milliseconds(timeout) / 1_000
        try:
            async with asyncio.timeout(limit):
                while not (job := await self.get(job_id, queue=queue)).ended:
                    await self._until_heard_of(job_id, queue)
        except TimeoutError:
            raise WaitTimeoutError(f"job {job_id} hadn't ended after {timeout}") from None
        return job

    async def _until_heard_of(self, job_id: str, queue: str | None) -> None:
        """Until the job ends, or the server has been asked for long enough. Raises NotFoundError."""
        said = {"job_id": job_id, "wait": "true", "timeout": f"{_ASK_S:g}"}
        asked = Request(GET_RESULT, said, queue=queue, answer_s=_ASK_S + 10.0)
        try:
            await self._transport.send(asked)
        except (WaitTimeoutError, ResultGone):
            pass

    # Many at once

    async def cancel_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        reason: str | None = None,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Those with these ids, or up to `limit` of those that fit; the answer tells of each job what became of it.

        `next_cursor` of the answer leads to the rest. `atomic` is all or none; `dry_run` changes nothing; `confirm` is needed
        for a filter by states and times alone.
        """
        how = body(reason=reason, dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(_CANCEL_MANY, jobs, how, atomic=atomic)

    async def retry_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """A new life for those; told as `cancel_many` tells."""
        how = body(dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(_RETRY_MANY, jobs, how, atomic=atomic)

    async def delete_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Remove those that have ended; told as `cancel_many` tells."""
        how = body(dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(_DELETE_MANY, jobs, how, atomic=atomic)

    async def set_priority_many(
        self,
        jobs: Sequence[str] | JobFilter,
        priority: Priority,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Give another priority to those that were not fetched yet; told as `cancel_many` tells."""
        how = body(priority=priority, dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(_REPRIORITISE_MANY, jobs, how, atomic=atomic)

    async def _change(
        self, operation: Operation, jobs: Sequence[str] | JobFilter, how: Mapping[str, object], *, atomic: bool
    ) -> ChangedSelection:
        """The key has a repetition answered as the first one was, so that it changes nothing anew."""
        which = {"filter": jobs.wire()} if isinstance(jobs, JobFilter) else {"job_ids": [*jobs]}
        key = {"idempotency_key": str(uuid4()), "atomicity": "atomic" if atomic else "partial"}
        request = Request(operation, body={**which, **how, **key}, answered_as_well=frozenset({422}))
        return await self._asked(ChangedSelection, request)


_deprecated.methods(Jobs, ended="wait", reprioritise="set_priority", reprioritise_many="set_priority_many")

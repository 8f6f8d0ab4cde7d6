"""Operations on jobs: read, list, cancel and retry, one by one or many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack
from uuid import uuid4

import msgspec

from ojs_api import words
from ojs_api.bulk import CANCEL as CANCEL_MANY
from ojs_api.bulk import DELETE as DELETE_MANY
from ojs_api.bulk import REPRIORITISE as REPRIORITISE_MANY
from ojs_api.bulk import RETRY as RETRY_MANY
from ojs_api.bulk import ChangeJobs, WhichJobs
from ojs_api.checkpoints import DELETE as DELETE_CHECKPOINT
from ojs_api.checkpoints import GET as GET_CHECKPOINT
from ojs_api.findings import EXPLAIN, Explanation
from ojs_api.history import HISTORY, LINEAGE, RETRIES, TRACE, TRACES
from ojs_api.jobs import (
    ACTIVATE,
    CANCEL,
    DETAIL,
    GET,
    LIST,
    META,
    REPRIORITISE,
    RESULT,
    RESULTS,
    RETRY,
    RUN,
    ChangedPriority,
    JobDetail,
    JobResult,
    JobsQuery,
)
from ojs_api.progress import GET as GET_PROGRESS
from ojs_api.progress import Progress
from ojs_api.unique import FINGERPRINTS
from ojs_nats import _deprecated
from ojs_nats._durations import Duration, moment
from ojs_nats._loops import limit
from ojs_nats._operations import AnyOperation, Request
from ojs_nats.errors import ResultGone, WaitTimeoutError
from ojs_nats.jobs import Checkpoint, Job
from ojs_nats.models.jobs import (
    AttemptTrace,
    ChangedSelection,
    HistoryEvent,
    JobLineage,
    JobRetries,
    UniqueJob,
)
from ojs_nats.operations._subject import Subject, body, parameters, seconds, sent

__all__ = ["JobFilter", "Jobs", "JobsQuery", "Priority"]


Priority = int | words.PriorityName


class JobFilter(msgspec.Struct, frozen=True):
    """A filter for operations on many jobs. A job has to match all of it; members that aren't given match any job.

    Args:
        type: The job type. It may end in `*`.
        queue: The queue.
        states: The states, such as `["discarded"]`. Empty matches any state.
        priority: The priority.
        enqueued_before: The end of a time, as a `datetime` with a time zone.
        enqueued_after: The beginning of a time, as a `datetime` with a time zone.
        older_than: How long ago the job was enqueued at least, in seconds or as `"1h"`.
        meta: Members of the job's `meta`, and their values.
        tag: One of the job's tags.
        error_type: The class of the last error.
        worker: The id of the worker that ran the job.

    Example:
        >>> JobFilter(queue="email", states=["discarded"], older_than="1h").queue
        'email'
    """

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


class Jobs(Subject):
    """The operations on jobs, as `client.jobs`.

    Operations on one job raise NotFoundError if the job doesn't exist or isn't stored any more. Those that change it
    raise ConflictError if its state forbids that.

    Example:
        ```python
        async with Client() as client:
            async for job in client.jobs.list(state="discarded", limit=50):
                await client.jobs.retry(job.id)
        ```
    """

    async def get(self, job_id: str, *, queue: str | None = None) -> Job:
        """Return a job as it is now.

        Args:
            job_id: The job's id.
            queue: The job's queue. It is needed over NATS by users who may use that queue alone.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(Job, Request(GET, {"job_id": job_id}, queue=queue), "job")

    async def detail(self, job_id: str) -> JobDetail:
        """Return a job with its transitions so far, and those that will happen by themselves.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(JobDetail, Request(DETAIL, {"job_id": job_id}))

    def list(
        self, *, meta: Mapping[str, str] | None = None, limit: int | None = None, **query: Unpack[JobsQuery]
    ) -> AsyncIterator[Job]:
        """List jobs, the newest first: `async for job in client.jobs.list(state="discarded", limit=50)`.

        Args:
            meta: Members of the job's `meta`, and their values.
            limit: How many jobs at most. None means all.
            **query: Any of `ojs_nats.operations.jobs.JobsQuery`. Each narrows the list, or orders it; None doesn't.

        Raises:
            TypeError: There is no such argument.
        """
        if unknown := query.keys() - JobsQuery.__optional_keys__:
            raise TypeError(f"client.jobs.list has no argument {min(unknown)}")
        asked = parameters(**query) | {f"{META}{name}": value for name, value in (meta or {}).items()}
        return self._each(Job, "jobs", LIST, limit, asked, query.get("queue"))

    async def cancel(self, job_id: str, *, reason: str | None = None, queue: str | None = None) -> Job:
        """Cancel a job. A worker that runs it stops its handler.

        Args:
            job_id: The job's id.
            reason: A text for the job's history.
            queue: The job's queue. It is needed over NATS by users who may use that queue alone.

        Returns:
            The job after that.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ConflictError: The job has ended.
        """
        return await self._asked(Job, Request(CANCEL, {"job_id": job_id}, body(reason=reason), queue), "job")

    async def retry(self, job_id: str) -> Job:
        """Retry a job: one that has failed or was cancelled starts anew, one that waits for its next attempt gets it
        now.

        Returns:
            The job after that.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ConflictError: The job's state forbids it.
        """
        return await self._asked(Job, Request(RETRY, {"job_id": job_id}, repeatable=False), "job")

    async def run_now(self, job_id: str) -> Job:
        """Make a job available that is scheduled, pending, or waits for its next attempt.

        Returns:
            The job after that.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ConflictError: The job is in another state.
        """
        return await self._asked(Job, Request(RUN, {"job_id": job_id}, repeatable=False), "job")

    async def why(self, job_id: str) -> Explanation:
        """Explain why a job is in its state, with the most important reason first.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(Explanation, Request(EXPLAIN, {"job_id": job_id}))

    async def activate(self, job_id: str) -> Job:
        """Make a pending job available.

        Returns:
            The job after that.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ConflictError: The job isn't pending.
        """
        return await self._asked(Job, Request(ACTIVATE, {"job_id": job_id}), "job")

    async def set_priority(self, job_id: str, priority: Priority) -> ChangedPriority:
        """Change the priority of a job that wasn't fetched yet.

        Args:
            job_id: The job's id.
            priority: From -100 to 100, or a name. Higher ones run first.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ConflictError: The job was fetched already.
        """
        return await self._asked(ChangedPriority, Request(REPRIORITISE, {"job_id": job_id}, {"priority": priority}))

    # What is known of it

    async def progress(self, job_id: str) -> Progress:
        """Return the progress that the job's handler reported last.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(Progress, Request(GET_PROGRESS, {"job_id": job_id}))

    async def checkpoint(self, job_id: str) -> Checkpoint:
        """Return the state that the job's handler saved last.

        Raises:
            NotFoundError: The job doesn't exist, or nothing was saved.
        """
        return await self._asked(Checkpoint, Request(GET_CHECKPOINT, {"job_id": job_id}))

    async def delete_checkpoint(self, job_id: str) -> bool:
        """Delete what the job's handler saved, so that the next attempt begins anew.

        Returns:
            Whether anything was saved.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(bool, Request(DELETE_CHECKPOINT, {"job_id": job_id}), "existed")

    def history(self, job_id: str, *, limit: int | None = None) -> AsyncIterator[HistoryEvent]:
        """List the events of a job, the oldest first, as far back as its log goes.

        Args:
            job_id: The job's id.
            limit: How many events at most. None means all.
        """
        return self._each(HistoryEvent, "events", HISTORY, limit, {"job_id": job_id})

    async def lineage(self, job_id: str) -> JobLineage:
        """Return where a job comes from: its parent, and its workflow.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(JobLineage, Request(LINEAGE, {"job_id": job_id}))

    async def attempts(self, job_id: str) -> Sequence[AttemptTrace]:
        """Return the attempts of a job, the oldest first, as far back as its log goes.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(list[AttemptTrace], Request(TRACES, {"job_id": job_id}), "traces")

    async def attempt(self, job_id: str, number: int) -> AttemptTrace:
        """Return one attempt of a job.

        Args:
            job_id: The job's id.
            number: The number of the attempt, from 1. If the job was retried by hand, it is the latest of that number.

        Raises:
            NotFoundError: There is no such job or attempt.
        """
        return await self._asked(AttemptTrace, Request(TRACE, {"job_id": job_id, "attempt": str(number)}), "trace")

    async def retries(self, job_id: str) -> JobRetries:
        """Return the failed attempts of a job, and its retry policy.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
        """
        return await self._asked(JobRetries, Request(RETRIES, {"job_id": job_id}))

    def unique(self, *, limit: int | None = None) -> AsyncIterator[UniqueJob]:
        """List the fingerprints of unique jobs that haven't ended.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(UniqueJob, "items", FINGERPRINTS, limit, {})

    # Results

    async def result(self, job_id: str) -> JobResult:
        """Return the result of a job as it is now, without waiting. `result` is None if the job hasn't ended.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            ResultGone: The result isn't kept any more.
        """
        return await self._asked(JobResult, Request(RESULT, {"job_id": job_id}))

    async def results(self, job_ids: Sequence[str]) -> dict[str, JobResult]:
        """Return the results of several jobs as they are now, by their ids.

        Args:
            job_ids: The jobs' ids. A job that doesn't exist has the `state` `not_found`.
        """
        return await self._asked(dict[str, JobResult], Request(RESULTS, body={"ids": [*job_ids]}), "results")

    async def wait(self, job_id: str, timeout: Duration | None = None, *, queue: str | None = None) -> Job:
        """Wait for a job's end, and return the job. The server keeps the request until then, so nothing is polled.

        Args:
            job_id: The job's id.
            timeout: How long to wait, in seconds or as `"1m"`. None waits without a limit.
            queue: The job's queue. It is needed over NATS by users who may use that queue alone.

        Raises:
            NotFoundError: The job doesn't exist, or isn't stored any more.
            WaitTimeoutError: The job hadn't ended after `timeout`.
        """
        try:
            async with limit(timeout):
                while not (job := await self.get(job_id, queue=queue)).ended:
                    await self._until_heard_of(job_id, queue)
        except TimeoutError:
            raise WaitTimeoutError(f"job {job_id} hadn't ended after {timeout}") from None
        return job

    async def _until_heard_of(self, job_id: str, queue: str | None) -> None:
        """Until the job ends, or the server has been asked for long enough. Raises NotFoundError."""
        waits = self._transport.timings
        said = {"job_id": job_id, "wait": "true", "timeout": f"{waits.ask_s:g}"}
        asked = Request(RESULT, said, queue=queue, answer_s=waits.ask_s + waits.beyond_s)
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
        """Cancel many jobs.

        Args:
            jobs: The ids of the jobs, or a filter.
            reason: A text for the jobs' histories.
            atomic: Whether all are cancelled or, if one can't be, none.
            dry_run: Whether nothing is changed, and the answer says what would be.
            confirm: Has to be True for a filter by nothing but states and times.
            limit: With a filter, how many jobs at most. None means as many as the server changes in one request.
            cursor: With a filter, where to go on: `next_cursor` of the answer before.

        Returns:
            The outcome for each job. `next_cursor` leads to the next jobs that match the filter.
        """
        how: dict[str, Any] = body(reason=reason, dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(CANCEL_MANY, jobs, how, atomic=atomic)

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
        """Retry many jobs that have failed or were cancelled.

        Args:
            jobs: The ids of the jobs, or a filter.
            atomic: Whether all are retried or, if one can't be, none.
            dry_run: Whether nothing is changed, and the answer says what would be.
            confirm: Has to be True for a filter by nothing but states and times.
            limit: With a filter, how many jobs at most. None means as many as the server changes in one request.
            cursor: With a filter, where to go on: `next_cursor` of the answer before.

        Returns:
            The outcome for each job. `next_cursor` leads to the next jobs that match the filter.
        """
        how: dict[str, Any] = body(dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(RETRY_MANY, jobs, how, atomic=atomic)

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
        """Delete many jobs that have ended.

        Args:
            jobs: The ids of the jobs, or a filter.
            atomic: Whether all are deleted or, if one can't be, none.
            dry_run: Whether nothing is changed, and the answer says what would be.
            confirm: Has to be True for a filter by nothing but states and times.
            limit: With a filter, how many jobs at most. None means as many as the server changes in one request.
            cursor: With a filter, where to go on: `next_cursor` of the answer before.

        Returns:
            The outcome for each job. `next_cursor` leads to the next jobs that match the filter.
        """
        how: dict[str, Any] = body(dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor)
        return await self._change(DELETE_MANY, jobs, how, atomic=atomic)

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
        """Change the priority of many jobs that weren't fetched yet.

        Args:
            jobs: The ids of the jobs, or a filter.
            priority: From -100 to 100, or a name. Higher ones run first.
            atomic: Whether all are changed or, if one can't be, none.
            dry_run: Whether nothing is changed, and the answer says what would be.
            confirm: Has to be True for a filter by nothing but states and times.
            limit: With a filter, how many jobs at most. None means as many as the server changes in one request.
            cursor: With a filter, where to go on: `next_cursor` of the answer before.

        Returns:
            The outcome for each job. `next_cursor` leads to the next jobs that match the filter.
        """
        how: dict[str, Any] = body(
            priority=priority, dry_run=dry_run or None, confirm=confirm or None, limit=limit, cursor=cursor
        )
        return await self._change(REPRIORITISE_MANY, jobs, how | {"priority": priority}, atomic=atomic)

    async def _change(
        self, operation: AnyOperation, jobs: Sequence[str] | JobFilter, how: dict[str, Any], *, atomic: bool
    ) -> ChangedSelection:
        """Send a change. Its key has a repetition answered as the first one was, so that it changes nothing anew."""
        asked = ChangeJobs(
            **{"filter": _which(jobs)} if isinstance(jobs, JobFilter) else {"job_ids": [*jobs]},
            **how,
            atomicity="atomic" if atomic else "partial",
            idempotency_key=str(uuid4()),
        )
        return await self._asked(ChangedSelection, Request(operation, body=sent(asked), answered_as_well=frozenset({422})))


def _which(which: JobFilter) -> WhichJobs:
    before, after = which.enqueued_before, which.enqueued_after
    states: Any = [*which.states] or None
    return WhichJobs(
        type=which.type,
        queue=which.queue,
        states=states,
        priority=which.priority,
        enqueued_before=None if before is None else moment(before, "enqueued_before"),
        enqueued_after=None if after is None else moment(after, "enqueued_after"),
        older_than=seconds(which.older_than),
        meta=dict(which.meta) or None,
        tag=which.tag,
        error_type=which.error_type,
        worker=which.worker,
    )


_deprecated.methods(Jobs, ended="wait", reprioritise="set_priority", reprioritise_many="set_priority_many")

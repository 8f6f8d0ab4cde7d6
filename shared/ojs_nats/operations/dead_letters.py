"""Operations on dead letters: jobs that have failed for good and are kept (docs/admin.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ojs_api.dead_letters import (
    DELETE,
    GET,
    LIST,
    PURGE,
    RETRY,
    RETRY_ALL,
    STATS,
    ChangeDeadLetters,
    Override,
    RetryDeadLetter,
    RetryDeadLetters,
    WhichDeadLetters,
)
from ojs_api.jobs import JobDetail
from ojs_nats._durations import Duration, moment
from ojs_nats._operations import Request
from ojs_nats._options import policy
from ojs_nats.jobs import Job
from ojs_nats.models.dead_letters import DeadLetterStats, DeletedDeadLetters, RetriedDeadLetters
from ojs_nats.operations._subject import Subject, body, parameters, seconds, sent
from ojs_nats.options import Retry

__all__ = ["DeadLetterFilter", "DeadLetters"]


class DeadLetterFilter(msgspec.Struct, frozen=True):
    """A filter for operations on many dead letters. A dead letter has to match all of it.

    Args:
        queue: The queue. None matches any.
        type: The job type. None matches any.
        error_type: The class of the last error. None matches any.
        since: The earliest time of the failure, with a time zone. None matches any.
        until: The latest time of the failure, with a time zone. None matches any.
        older_than: How long ago the job failed at least, in seconds or as `"1h"`. None matches any.
    """

    queue: str | None = None
    type: str | None = None
    error_type: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    older_than: Duration | None = None


class DeadLetters(Subject):
    """The operations on dead letters, as `client.dead_letters`."""

    def list(
        self,
        *,
        queue: str | None = None,
        type: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Job]:
        """List dead letters, those that failed last first. None doesn't narrow the list.

        Args:
            queue: The queue.
            type: The job type.
            error_type: The class of the last error.
            since: The earliest time of the failure, with a time zone.
            until: The latest time of the failure, with a time zone.
            limit: How many at most. None means all.
        """
        asked = parameters(queue=queue, type=type, error_type=error_type, since=since, until=until)
        return self._each(Job, "jobs", LIST, limit, asked, queue)

    async def get(self, job_id: str) -> JobDetail:
        """Return a dead letter.

        Raises:
            NotFoundError: There is no such dead letter.
        """
        return await self._asked(JobDetail, Request(GET, {"job_id": job_id}), "job")

    async def stats(self, queue: str | None = None) -> DeadLetterStats:
        """Count dead letters by queue, type and error.

        Args:
            queue: The queue. None means all queues.
        """
        return await self._asked(DeadLetterStats, Request(STATS, parameters(queue=queue), queue=queue))

    async def retry(
        self,
        job_id: str,
        *,
        args: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        queue: str | None = None,
        retry: Retry | None = None,
    ) -> Job:
        """Retry a dead letter, which starts anew. Values that aren't given stay as they were.

        Args:
            job_id: The job's id.
            args: Other arguments.
            meta: Other metadata.
            queue: Another queue.
            retry: Another retry policy.

        Returns:
            The job after that.

        Raises:
            NotFoundError: There is no such dead letter.
            ConflictError: The job can't be retried.
            DuplicateError: Another job has the identity of this unique job.
        """
        changes: dict[str, Any] = body(
            args=None if args is None else [*args], meta=meta, queue=queue, retry=retry and policy(retry)
        )
        asked = RetryDeadLetter(override=Override(**changes) if changes else None)
        return await self._asked(Job, Request(RETRY, {"job_id": job_id}, sent(asked), repeatable=False), "job")

    async def retry_all(self, which: DeadLetterFilter) -> RetriedDeadLetters:
        """Retry the dead letters that match a filter.

        Returns:
            The outcome. If `remaining` isn't 0, ask again for the rest.
        """
        asked = RetryDeadLetters(filter=_which(which), confirm=True)
        return await self._asked(RetriedDeadLetters, Request(RETRY_ALL, body=sent(asked), queue=which.queue, repeatable=False))

    async def delete(self, job_id: str) -> None:
        """Delete a dead letter.

        Raises:
            NotFoundError: There is no such dead letter.
        """
        await self._transport.send(Request(DELETE, {"job_id": job_id}))

    async def purge(self, which: DeadLetterFilter) -> DeletedDeadLetters:
        """Delete the dead letters that match a filter.

        Returns:
            The outcome. If `remaining` isn't 0, ask again for the rest.
        """
        asked = ChangeDeadLetters(filter=_which(which), confirm=True)
        return await self._asked(DeletedDeadLetters, Request(PURGE, body=sent(asked), queue=which.queue))


def _which(which: DeadLetterFilter) -> WhichDeadLetters:
    return WhichDeadLetters(
        queue=which.queue,
        type=which.type,
        error_type=which.error_type,
        since=None if which.since is None else moment(which.since, "since"),
        until=None if which.until is None else moment(which.until, "until"),
        older_than=seconds(which.older_than),
    )

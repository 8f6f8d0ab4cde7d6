"""Queues: numbers, settings, pause, removal (docs/queues.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

import msgspec

from ojs_api import words
from ojs_api.queues import (
    CONFIG,
    CONFIGURE,
    CREATE,
    DELETE,
    GET,
    LIMIT,
    LIST,
    PAUSE,
    PRIORITIES,
    PURGE,
    RESUME,
    STATS,
    ConfiguredQueue,
    DeletedQueue,
    PriorityStats,
    PurgedQueue,
    Queue,
    QueueDetail,
    QueueStats,
    SwitchedQueue,
)
from ojs_api.schemas import Mode
from ojs_api.statistics import QUEUE_HISTORY
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._operations import AnyOperation, Request
from ojs_nats._options import policy
from ojs_nats.models.statistics import Statistics
from ojs_nats.operations._subject import Subject, body, parameters, prevention, seconds
from ojs_nats.operations._subject import sent as as_sent
from ojs_nats.options import Rate, Retry

__all__ = ["ALL_QUEUES", "Period", "Prevention", "QueueOptions", "Queues"]

ALL_QUEUES: Final = "_default"
"""The name that settings of all queues go by."""

Period = words.Period


class Prevention(msgspec.Struct, frozen=True):
    """A guarantee for jobs that others would always go ahead of.

    Args:
        enabled: Whether it holds.
        interval: After how long a job that was passed over gets a turn, in seconds or as `"30s"`. None means the
            server's default.
        share: The part of all jobs that each queue of a pool gets, from 0 to 1. None means the server's default.
    """

    enabled: bool = True
    interval: Duration | None = None
    share: float | None = None


class QueueOptions(TypedDict, total=False):
    """Settings of a queue (docs/queues.md). None takes a setting back.

    Durations are seconds, a text such as `"1h"`, or a `timedelta`.

    Attributes:
        max_size: How many jobs may wait.
        overflow_policy: What a full queue does: `"reject"` refuses a push, `"drop_oldest"` discards the oldest job.
        warning_threshold: The part of `max_size`, from 0 to 1, from which the server warns.
        concurrency: How many of its jobs may run at once.
        rate_limit: How many of its jobs may start in a period.
        visibility_timeout: After how long without a heartbeat a job is given to another worker.
        default_timeout: The `timeout` of jobs that have none.
        default_retry: The retry policy of jobs that have none.
        retention: How long ended jobs are kept, by `completed`, `cancelled`, `discarded` and `dead_letter`.
        dead_letter_max_size: How many dead letters are kept.
        dead_letter_ttl: How long dead letters are kept.
        allowed_job_types: The job types that the queue takes.
        starvation_prevention: The guarantee for jobs of low priority.
        strict_pause: Whether a paused queue refuses pushes.
        schema_validation: What happens to arguments that don't fit their schema.
    """

    max_size: int | None
    overflow_policy: words.Overflow | None
    warning_threshold: float | None
    concurrency: int | None
    rate_limit: Rate | None
    visibility_timeout: Duration | None
    default_timeout: Duration | None
    default_retry: Retry | None
    retention: Mapping[str, Duration] | None
    dead_letter_max_size: int | None
    dead_letter_ttl: Duration | None
    allowed_job_types: Sequence[str] | None
    starvation_prevention: Prevention | None
    strict_pause: bool | None
    schema_validation: Mode | None


_DURATIONS: Final = ("visibility_timeout", "default_timeout", "dead_letter_ttl")


def _settings(options: QueueOptions) -> dict[str, Any]:
    sent: dict[str, Any] = {**options}
    for name, value in options.items():
        match value:
            case Rate() | Retry():
                sent[name] = policy(value)
            case Prevention():
                sent[name] = as_sent(prevention(enabled=value.enabled, interval=value.interval, share=value.share))
            case Mapping():
                sent[name] = {ended: seconds(kept) for ended, kept in value.items()}
            case _ if value is not None and name in _DURATIONS:
                sent[name] = seconds(value)  # type: ignore[arg-type]  # its type by its name
    return sent


class Queues(Subject):
    """The operations on queues, as `client.queues`.

    A queue exists as soon as a job is pushed to it. It may be given settings before.
    """

    def list(self, *, limit: int | None = None) -> AsyncIterator[Queue]:
        """List queues by name.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(Queue, "queues", LIST, limit, {})

    async def get(self, queue: str) -> QueueDetail:
        """Return a queue with its settings and numbers.

        Raises:
            NotFoundError: There is no such queue.
        """
        return await self._asked(QueueDetail, self._of(GET, queue))

    async def create(self, queue: str, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Create a queue. This isn't needed to push to it.

        Args:
            queue: The queue's name.
            **options: Its settings, as `QueueOptions` has them.

        Raises:
            ConflictError: The queue exists already.
        """
        return await self._asked(
            ConfiguredQueue, Request(CREATE, body={"name": queue, "config": _settings(options)}, queue=queue, repeatable=False)
        )

    async def delete(
        self, queue: str, *, strategy: words.RemovalStrategy = "reject", target_queue: str | None = None
    ) -> DeletedQueue:
        """Delete a queue.

        Args:
            queue: The queue's name.
            strategy: What happens to its jobs: `"reject"` refuses the call if there are any, `"discard"` discards them,
                `"move"` moves them to `target_queue`.
            target_queue: The other queue, for `"move"`.

        Returns:
            The outcome. If `jobs_remaining` isn't 0, ask again.

        Raises:
            NotFoundError: There is no such queue.
            ConflictError: The queue has jobs.
        """
        return await self._asked(
            DeletedQueue, self._of(DELETE, queue, asked=parameters(strategy=strategy, target_queue=target_queue))
        )

    async def pause(self, queue: str) -> SwitchedQueue:
        """Pause a queue. Once this has returned, no worker gets a job of it."""
        return await self._asked(SwitchedQueue, self._of(PAUSE, queue))

    async def resume(self, queue: str) -> SwitchedQueue:
        """End a queue's pause or drain."""
        return await self._asked(SwitchedQueue, self._of(RESUME, queue))

    async def stats(self, queue: str) -> QueueStats:
        """Return a queue's numbers, now and over the last hour."""
        return await self._asked(QueueStats, self._of(STATS, queue))

    async def priority_stats(self, queue: str) -> PriorityStats:
        """Count the jobs of a queue that wait, by priority."""
        return await self._asked(PriorityStats, self._of(PRIORITIES, queue))

    async def history(
        self, queue: str, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None
    ) -> Statistics:
        """Return what happened in a queue, period by period.

        Args:
            queue: The queue's name.
            period: The length of a period.
            since: The beginning, with a time zone. None means the server's default.
            until: The end, with a time zone. None means now.
        """
        return await self._asked(
            Statistics, self._of(QUEUE_HISTORY, queue, asked=parameters(period=period, since=since, until=until))
        )

    async def config(self, queue: str = ALL_QUEUES) -> ConfiguredQueue:
        """Return the settings of a queue.

        Args:
            queue: The queue's name. By default the settings that all queues share.
        """
        return await self._asked(ConfiguredQueue, self._of(CONFIG, queue))

    async def configure(self, queue: str = ALL_QUEUES, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Change settings of a queue. Settings that aren't named stay, and so do jobs that were pushed before.

        Args:
            queue: The queue's name. By default the settings that all queues share.
            **options: The settings, as `QueueOptions` has them. None takes one back.

        Raises:
            InvalidRequestError: The server refuses a value.
        """
        return await self._asked(ConfiguredQueue, self._of(CONFIGURE, queue, _settings(options)))

    async def limit(
        self, queue: str, *, concurrency: int | None = None, rate: Rate | None = None, throttle: Rate | None = None
    ) -> ConfiguredQueue:
        """Limit the jobs of a queue that run at once, or start in a period. A limit that is None is taken back.

        Args:
            queue: The queue's name.
            concurrency: How many may run at once.
            rate: How many may start in a period.
            throttle: The same, with the starts evenly spaced.
        """
        asked = body(concurrency=concurrency, rate=rate and policy(rate), throttle=throttle and policy(throttle))
        return await self._asked(ConfiguredQueue, self._of(LIMIT, queue, asked))

    async def purge(
        self, queue: str, *, states: Sequence[str] | None = None, older_than: Duration | None = None
    ) -> PurgedQueue:
        """Delete jobs of a queue.

        Args:
            queue: The queue's name.
            states: The states of the jobs. None means those that wait.
            older_than: How old they are at least, in seconds or as `"1h"`. None means any age.
        """
        age = None if older_than is None else milliseconds(older_than) / 1_000
        return await self._asked(
            PurgedQueue, self._of(PURGE, queue, body(states=None if states is None else [*states], older_than=age))
        )

    @staticmethod
    def _of(
        operation: AnyOperation, queue: str, members: Mapping[str, object] | None = None, asked: Mapping[str, str] | None = None
    ) -> Request:
        return Request(operation, {"queue": queue, **(asked or {})}, members, queue=None if queue == ALL_QUEUES else queue)

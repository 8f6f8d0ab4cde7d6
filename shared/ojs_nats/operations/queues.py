"""Queues: numbers, settings, pause, removal (docs/queues.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypedDict, Unpack

import msgspec

from ojs_nats._durations import Duration, milliseconds
from ojs_nats._operations import Operation, Request
from ojs_nats.models.queues import (
    ConfiguredQueue,
    DeletedQueue,
    PriorityStats,
    PurgedQueue,
    Queue,
    QueueDetail,
    QueueStats,
    SwitchedQueue,
)
from ojs_nats.models.statistics import Statistics
from ojs_nats.operations.subject import Subject, body, parameters
from ojs_nats.options import Rate, Retry

ALL_QUEUES: Final = "_default"
"""The name that settings of all queues go by."""

_LIST: Final = Operation("listQueues", "GET", "/queues")
_CREATE: Final = Operation("createQueue", "POST", "/queues")
_GET: Final = Operation("getQueue", "GET", "/queues/{queue}")
_DELETE: Final = Operation("deleteQueue", "DELETE", "/queues/{queue}")
_STATS: Final = Operation("getQueueStats", "GET", "/queues/{queue}/stats")
_PRIORITIES: Final = Operation("getQueuePriorityStats", "GET", "/queues/{queue}/priority-stats")
_HISTORY: Final = Operation("getQueueStatsHistory", "GET", "/queues/{queue}/stats/history")
_PAUSE: Final = Operation("pauseQueue", "POST", "/queues/{queue}/pause")
_RESUME: Final = Operation("resumeQueue", "POST", "/queues/{queue}/resume")
_CONFIG: Final = Operation("getQueueConfig", "GET", "/queues/{queue}/config")
_CONFIGURE: Final = Operation("setQueueConfig", "PUT", "/queues/{queue}/config")
_LIMIT: Final = Operation("setQueueRateLimit", "PUT", "/admin/queues/{queue}/rate-limit")
_PURGE: Final = Operation("purgeQueue", "POST", "/queues/{queue}/purge")

Period = Literal["1m", "5m", "1h", "1d"]


class Prevention(msgspec.Struct, frozen=True):
    """What is guaranteed to jobs while others go first: one of them at each `interval`, and each queue of a pool a `share`
    (0 to 1) of what is given out.
    """

    enabled: bool = True
    interval: Duration | None = None
    share: float | None = None

    def wire(self) -> dict[str, Any]:
        interval = None if self.interval is None else milliseconds(self.interval) / 1_000
        return body(enabled=self.enabled, rotation_interval=interval, min_dispatch_ratio=self.share)


class QueueOptions(TypedDict, total=False):
    """What may be set of a queue (docs/queues.md); None takes it back. `retention` is by how a job ended: completed, cancelled,
    discarded, dead_letter.
    """

    max_size: int | None
    overflow_policy: Literal["reject", "drop_oldest"] | None
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
    schema_validation: Literal["off", "warn", "strict"] | None


_DURATIONS: Final = ("visibility_timeout", "default_timeout", "dead_letter_ttl")


def _settings(options: QueueOptions) -> dict[str, Any]:
    sent: dict[str, Any] = {**options}
    for name, value in options.items():
        match value:
            case Rate() | Prevention() | Retry():
                sent[name] = value.wire()
            case Mapping():
                sent[name] = {ended: milliseconds(kept) / 1_000 for ended, kept in value.items()}
            case _ if value is not None and name in _DURATIONS:
                sent[name] = milliseconds(value) / 1_000  # type: ignore[arg-type]  # its type by its name
    return sent


class Queues(Subject):
    """`client.queues`. A queue exists once a job is pushed to it; settings may be given to it before."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[Queue]:
        """By name."""
        return self._each(Queue, "queues", _LIST, limit, {})

    async def get(self, queue: str) -> QueueDetail:
        """Its settings and numbers. Raises NotFoundError."""
        return await self._asked(QueueDetail, self._of(_GET, queue))

    async def create(self, queue: str, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Not needed to push to it. Raises ConflictError if it is there."""
        return await self._asked(
            ConfiguredQueue, Request(_CREATE, body={"name": queue, "config": _settings(options)}, queue=queue, repeatable=False)
        )

    async def delete(
        self, queue: str, *, strategy: Literal["reject", "discard", "move"] = "reject", target_queue: str | None = None
    ) -> DeletedQueue:
        """`strategy` is what becomes of jobs that wait in it: with `reject` it is refused, `move` takes them to `target_queue`.

        `jobs_remaining` tells of those that are left: ask again. Raises NotFoundError, ConflictError.
        """
        return await self._asked(
            DeletedQueue, self._of(_DELETE, queue, asked=parameters(strategy=strategy, target_queue=target_queue))
        )

    async def pause(self, queue: str) -> SwitchedQueue:
        """Once this is answered, nothing is fetched from it."""
        return await self._asked(SwitchedQueue, self._of(_PAUSE, queue))

    async def resume(self, queue: str) -> SwitchedQueue:
        """Ends a pause, and a drain."""
        return await self._asked(SwitchedQueue, self._of(_RESUME, queue))

    async def stats(self, queue: str) -> QueueStats:
        """Its numbers, now and lately."""
        return await self._asked(QueueStats, self._of(_STATS, queue))

    async def priority_stats(self, queue: str) -> PriorityStats:
        """How many jobs wait, by priority."""
        return await self._asked(PriorityStats, self._of(_PRIORITIES, queue))

    async def history(
        self, queue: str, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None
    ) -> Statistics:
        """What happened in each `period` of that time."""
        return await self._asked(
            Statistics, self._of(_HISTORY, queue, asked=parameters(period=period, since=since, until=until))
        )

    async def config(self, queue: str = ALL_QUEUES) -> ConfiguredQueue:
        """Its settings; without a name, those of all queues."""
        return await self._asked(ConfiguredQueue, self._of(_CONFIG, queue))

    async def configure(self, queue: str = ALL_QUEUES, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Set what is named; what isn't stays. Jobs that are there keep what they have."""
        return await self._asked(ConfiguredQueue, self._of(_CONFIGURE, queue, _settings(options)))

    async def limit(
        self, queue: str, *, concurrency: int | None = None, rate: Rate | None = None, throttle: Rate | None = None
    ) -> ConfiguredQueue:
        """How many of its jobs may run at once, and start within a time. What isn't named is taken back."""
        asked = body(concurrency=concurrency, rate=rate and rate.wire(), throttle=throttle and throttle.wire())
        return await self._asked(ConfiguredQueue, self._of(_LIMIT, queue, asked))

    async def purge(
        self, queue: str, *, states: Sequence[str] | None = None, older_than: Duration | None = None
    ) -> PurgedQueue:
        """Remove jobs that wait, or those in these states."""
        age = None if older_than is None else milliseconds(older_than) / 1_000
        return await self._asked(
            PurgedQueue, self._of(_PURGE, queue, body(states=None if states is None else [*states], older_than=age))
        )

    @staticmethod
    def _of(
        operation: Operation, queue: str, members: Mapping[str, object] | None = None, asked: Mapping[str, str] | None = None
    ) -> Request:
        return Request(operation, {"queue": queue, **(asked or {})}, members, queue=None if queue == ALL_QUEUES else queue)

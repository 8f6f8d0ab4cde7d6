"""Queues as clients read them (ojs-http-binding §11, ojs-queue-config §9, ojs-admin-api §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_api.jobs import RetryPolicy
from ojs_api.limits import MAX_CONCURRENCY
from ojs_api.queues import StarvationPrevention
from ojs_api.schemas import Mode
from ojs_api.statistics import Milliseconds
from ojs_engine.base.times import format_age, format_duration, format_ms
from ojs_engine.domain.job import Retention, State
from ojs_engine.domain.queues.config import NOT_SET, Overflow, QueueConfig, layered
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.operations.queue_removal import Deletion, Emptied, Purge, RemovalStrategy
from ojs_engine.read.numbers import BACKLOG_STEP_MS, BACKLOG_STEPS, Counts, Levels, Queue, QueuePage
from ojs_engine.wire.jobs.retry import retry_policy
from ojs_engine.wire.members import (
    Count,
    Duration,
    Extended,
    OpenStruct,
    Seconds,
    Timestamp,
    extended,
    given,
    members,
    seconds,
    timestamp,
)
from ojs_engine.wire.pages import Indexed, Page, Pagination, PartialFlag, ProgressShare, pagination, with_progress
from ojs_engine.wire.queues.starvation import prevention_view
from ojs_engine.wire.statistics.answers import Lately, Windows, lately, windows

Status = Literal["active", "paused", "draining"]
_BACKLOG: Final = (
    f"How many jobs had not ended: over the last {BACKLOG_STEPS * BACKLOG_STEP_MS // 60_000} minutes, every "
    f"{BACKLOG_STEP_MS // 60_000}, now at last."
)


class QueueStatus(Struct):
    """Whether a queue hands out jobs, and takes any."""

    name: str
    status: Status
    paused: bool


class SwitchedQueue(Struct, kw_only=True, omit_defaults=True):
    """A queue that was paused or resumed. `paused` stands beside it, too (ojs-admin-api §6.3)."""

    queue: QueueStatus
    paused: bool
    paused_at: Timestamp | UnsetType = UNSET
    resumed_at: Timestamp | UnsetType = UNSET


def status_of(name: str, record: QueueRecord | None) -> QueueStatus:
    """A queue without a record, or one that was deleted, is there all the same."""
    status: Status = "active" if record is None or record.state == "deleted" else record.state
    return QueueStatus(name, status, status == "paused")


def switched_queue(name: str, record: QueueRecord | None) -> SwitchedQueue:
    """The answer to pause and resume."""
    status = status_of(name, record)
    answer = SwitchedQueue(queue=status, paused=status.paused)
    if record is not None and record.state == "paused":
        answer.paused_at = timestamp(record.paused_at)
    elif record is not None:
        answer.resumed_at = timestamp(record.resumed_at)
    return answer


# Numbers


class ListedQueue(Lately, kw_only=True, omit_defaults=True):
    """A queue in a list."""

    name: str
    status: Status
    paused: bool
    counts: Counts
    pending: Annotated[int, Meta(ge=0, description="Jobs that are available, for OJS' Kubernetes operator.")]
    active: Annotated[int, Meta(ge=0, description="Jobs that are active, likewise.")]
    created_at: Timestamp | UnsetType = UNSET


class QueuePageAnswer(Indexed, kw_only=True):
    """A page of the list of queues."""

    queues: list[ListedQueue]
    pagination: Pagination


class AdminListedQueue(ListedQueue, kw_only=True):
    """A queue in a list of the admin API, which calls its status `state` (ojs-admin-api §6.1)."""

    state: Status
    backlog: Annotated[list[Count], Meta(description=_BACKLOG)]


class AdminQueuePage(Indexed, kw_only=True):
    """A page of the list of queues, as the admin API calls it."""

    items: list[AdminListedQueue]
    pagination: Pagination


class CountedQueue(Counts, frozen=True, kw_only=True):
    """A queue, and how many of its jobs are in each state."""

    name: str
    status: Status
    paused: bool
    total: Annotated[int, Meta(ge=0, description="Jobs in all states.")]


class QueueNumbers(Lately, kw_only=True, omit_defaults=True):
    """What is measured of a queue; `avg_duration_ms` and `avg_wait_ms` over the last hour."""

    queue: str
    depth: Annotated[int, Meta(ge=0, description="Jobs that are available.")]
    load: Annotated[int, Meta(ge=0, description="Jobs that are available or active: what workers are needed for.")]
    dead: Annotated[int, Meta(ge=0, description="Dead letters.")]
    completed_last_hour: Count
    failed_last_hour: Count
    avg_duration_ms: Milliseconds
    avg_wait_ms: Milliseconds
    throughput_per_second: Annotated[float, Meta(ge=0, description="Completed jobs, over the last five minutes.")]
    windows: Windows
    max_depth: Annotated[int, Meta(ge=1, description="Where the queue is bounded.")] | UnsetType = UNSET
    pressure: Annotated[float, Meta(ge=0, description="`depth` as a share of `max_depth`.")] | UnsetType = UNSET


class QueueStatsAnswer(Indexed, kw_only=True):
    """A queue's numbers, now and lately."""

    queue: CountedQueue
    stats: QueueNumbers
    computed_at: Timestamp


class PriorityStats(Indexed, kw_only=True):
    """How many jobs wait to be fetched, by priority, the highest first (ojs-priority)."""

    queue: str
    counts_by_priority: dict[int, Count]
    total: Count


def queue_page(page: QueuePage, asked: Page, records: Mapping[str, QueueRecord], now: int) -> QueuePageAnswer:
    """A list of queues; `page` is what the index said."""
    queues = [listed_queue(queue, records.get(queue.name), now) for queue in page.queues]
    return with_progress(QueuePageAnswer(queues=queues, pagination=pagination(asked, page.total, page.next_cursor)), page)


def admin_queue_page(page: QueuePageAnswer, found: QueuePage) -> AdminQueuePage:
    """The same in the admin API, with what the index says of the last hour."""
    return AdminQueuePage(
        items=[
            AdminListedQueue(**members(queue), state=queue.status, backlog=list(numbers.backlog))
            for queue, numbers in zip(page.queues, found.queues, strict=True)
        ],
        pagination=page.pagination,
        partial=page.partial,
        index_progress=page.index_progress,
    )


def listed_queue(queue: Queue, record: QueueRecord | None, now: int) -> ListedQueue:
    """A queue with what it has and does."""
    return ListedQueue(
        **members(status_of(queue.name, record)),
        **members(lately(queue, now)),
        counts=queue.counts,
        pending=queue.counts.available,
        active=queue.counts.active,
        created_at=_created_at(queue.created_at, record),
    )


def queue_stats(queue: Queue, record: QueueRecord | None, bound: int, now: int) -> QueueStatsAnswer:
    """The answer about a queue of which at most `bound` jobs may be available, 0 for any number."""
    depth = queue.counts.available
    numbers = QueueNumbers(
        **members(lately(queue, now)),
        queue=queue.name,
        depth=depth,
        load=depth + queue.counts.active,
        dead=queue.dead_letter,
        completed_last_hour=queue.completed_last_hour,
        failed_last_hour=queue.failed_last_hour,
        avg_duration_ms=round(queue.avg_duration_ms or 0.0, 3),
        avg_wait_ms=round(queue.avg_wait_ms or 0.0, 3),
        throughput_per_second=round(queue.throughput_per_second, 3),
        windows=windows(queue),
    )
    if bound:
        numbers.max_depth = bound
        numbers.pressure = round(depth / bound, 3)
    counts = queue.counts
    status = members(status_of(queue.name, record))
    counted = CountedQueue(**status, total=counts.total, **msgspec.structs.asdict(counts))
    return with_progress(QueueStatsAnswer(queue=counted, stats=numbers, computed_at=format_ms(now)), queue)


def priority_stats(queue: str, levels: Levels) -> PriorityStats:
    """The answer about a queue's priorities."""
    counts = levels.counts
    return with_progress(PriorityStats(queue=queue, counts_by_priority=counts, total=sum(counts.values())), levels)


def _created_at(first_job_at: int | None, record: QueueRecord | None) -> Timestamp | UnsetType:
    at = [at for at in (first_job_at, record.created_at if record is not None else None) if at is not None]
    return format_ms(min(at)) if at else UNSET


# Settings


class QueueRate(OpenStruct):
    """At most `limit` jobs start within any `period`."""

    limit: Annotated[int, Meta(ge=1)]
    period: Duration


class JobRetention(OpenStruct, kw_only=True, omit_defaults=True):
    """How long a finished job's record stays, by how it ended."""

    completed: Duration | UnsetType = UNSET
    cancelled: Duration | UnsetType = UNSET
    discarded: Duration | UnsetType = UNSET
    dead_letter: Duration | UnsetType = UNSET


class DeadLetterLimits(OpenStruct, kw_only=True, omit_defaults=True):
    """How long dead letters stay, and how many."""

    max_age: Duration | UnsetType = UNSET
    max_count: Annotated[int, Meta(ge=0, description="0 keeps any number.")] | UnsetType = UNSET


class DeadLetterSettings(OpenStruct):
    """What is set for dead letters (ojs-dead-letter §5.1)."""

    retention: DeadLetterLimits


class QueueSettings(OpenStruct, kw_only=True, omit_defaults=True):
    """Settings under the names that ojs-queue-config gives them. What is set nowhere is left out."""

    max_size: Count | UnsetType = UNSET
    overflow_policy: Overflow | UnsetType = UNSET
    warning_threshold: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    concurrency: (
        Annotated[int, Meta(ge=0, le=MAX_CONCURRENCY, description="How many at once; 0 for any number.")] | UnsetType
    ) = UNSET
    rate_limit: QueueRate | UnsetType = UNSET
    starvation_prevention: StarvationPrevention | UnsetType = UNSET
    visibility_timeout: Seconds | UnsetType = UNSET
    default_timeout: Seconds | UnsetType = UNSET
    default_retry: RetryPolicy | UnsetType = UNSET
    retention: JobRetention | UnsetType = UNSET
    dead_letter: DeadLetterSettings | UnsetType = UNSET
    allowed_job_types: tuple[str, ...] | UnsetType = UNSET
    strict_pause: bool | UnsetType = UNSET
    schema_validation: Mode | UnsetType = UNSET


_SettingsView = QueueSettings | Extended[QueueSettings]
_Effective = Annotated[_SettingsView, Meta(description="As the settings of all queues and its own work together.")]
_Own = Annotated[_SettingsView, Meta(description="What is set for this queue alone.")]


class ConfiguredQueue(Struct, kw_only=True, omit_defaults=True):
    """A queue with its settings."""

    name: str
    status: Status
    paused: bool
    config: _Effective
    own_config: _Own
    created_at: Timestamp | UnsetType = UNSET
    updated_at: Timestamp | UnsetType = UNSET
    paused_at: Timestamp | UnsetType = UNSET


class QueueDetail(ListedQueue, kw_only=True, omit_defaults=True):
    """A queue with its settings and numbers. `queue` is as in the answers to pause, resume and statistics."""

    queue: QueueStatus
    depth: Annotated[int, Meta(ge=0, description="Jobs that are available.")]
    config: _Effective
    own_config: _Own
    updated_at: Timestamp | UnsetType = UNSET
    paused_at: Timestamp | UnsetType = UNSET
    partial: PartialFlag = UNSET
    index_progress: ProgressShare = UNSET


def configured_queue(name: str, record: QueueRecord | None, common: QueueConfig) -> ConfiguredQueue:
    """A queue with its settings over those of all queues."""
    own = NOT_SET if record is None else record.config
    answer = ConfiguredQueue(
        **members(status_of(name, record)),
        config=queue_settings(layered(common, own)),
        own_config=queue_settings(own),
        created_at=_created_at(None, record),
    )
    if record is not None:
        answer.updated_at = format_ms(record.updated_at)
        if record.state == "paused":
            answer.paused_at = timestamp(record.paused_at)
    return answer


def queue_detail(queue: Queue, record: QueueRecord | None, common: QueueConfig, now: int) -> QueueDetail:
    """The same with what it has and does."""
    configured = members(configured_queue(queue.name, record, common))
    status = status_of(queue.name, record)
    listed = members(listed_queue(queue, record, now))
    detail = QueueDetail(**(configured | listed), queue=status, depth=queue.counts.available)
    return with_progress(detail, queue)


def queue_settings(config: QueueConfig) -> _SettingsView:
    """A layer of settings, or all of them together."""
    rate, kept = config.rate_limit, config.retention
    settings = QueueSettings(
        max_size=given(config.max_size),
        overflow_policy=given(config.overflow_policy),
        warning_threshold=given(config.warning_threshold),
        concurrency=given(config.concurrency),
        rate_limit=UNSET if rate is None else QueueRate(rate.limit, format_duration(rate.period_ms)),
        starvation_prevention=UNSET if config.rotation_ms is None else prevention_view(config.rotation_ms),
        visibility_timeout=_timeout(config.visibility_timeout_ms),
        default_timeout=_timeout(config.default_timeout_ms),
        default_retry=UNSET if config.default_retry is None else retry_policy(config.default_retry),
        retention=UNSET if kept is None else _retention(kept),
        dead_letter=_dead_letter(config),
        allowed_job_types=given(config.allowed_job_types),
        strict_pause=given(config.strict_pause),
        schema_validation=given(config.schema_validation),
    )
    return extended(settings, config.extensions)


def _timeout(ms: int | None) -> float | UnsetType:
    return UNSET if ms is None else seconds(ms)


def _retention(kept: Retention) -> JobRetention:
    return JobRetention(
        completed=_duration(kept.completed_s),
        cancelled=_duration(kept.cancelled_s),
        discarded=_duration(kept.discarded_s),
        dead_letter=_duration(kept.dead_letter_s),
    )


def _duration(seconds: int | None) -> str | UnsetType:
    return UNSET if seconds is None else format_duration(seconds * 1_000)


def _dead_letter(config: QueueConfig) -> DeadLetterSettings | UnsetType:
    age_s = None if config.retention is None else config.retention.dead_letter_s
    if age_s is None and config.dead_letter_max is None:
        return UNSET
    max_age = UNSET if age_s is None else format_age(age_s)
    return DeadLetterSettings(DeadLetterLimits(max_age=max_age, max_count=given(config.dead_letter_max)))


# Removal


class PurgedQueue(Struct):
    """How many jobs were removed."""

    queue: str
    purged_count: Count
    remaining: Annotated[int, Meta(ge=0, description="How many more a repeated request would find.")]
    states: Sequence[State]


class DeletedQueue(Struct, kw_only=True, omit_defaults=True):
    """What has become of a queue and its jobs."""

    queue: str
    strategy: RemovalStrategy
    jobs_affected: Count
    jobs_remaining: Count
    state: Literal["draining", "deleted"]
    target_queue: str | UnsetType = UNSET


def purged_queue(name: str, asked: Purge, emptied: Emptied) -> PurgedQueue:
    """The answer to a purge."""
    return PurgedQueue(name, emptied.done, emptied.remaining, asked.states)


def deleted_queue(name: str, asked: Deletion, emptied: Emptied) -> DeletedQueue:
    """The answer to a deletion, which goes on while there are jobs."""
    return DeletedQueue(
        queue=name,
        strategy=asked.strategy,
        jobs_affected=emptied.done,
        jobs_remaining=emptied.remaining,
        state="draining" if emptied.remaining else "deleted",
        target_queue=given(asked.target_queue),
    )

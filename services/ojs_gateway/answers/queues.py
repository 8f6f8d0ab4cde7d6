"""Queues as clients read them (ojs-http-binding §11, ojs-queue-config §9, ojs-admin-api §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from ojs_api import queues as contract
from ojs_api.queues import (
    AdminQueue,
    AdminQueuePage,
    ConfiguredQueue,
    CountedQueue,
    DeadLetterLimits,
    DeadLetterSettings,
    DeletedQueue,
    JobRetention,
    PriorityStats,
    PurgedQueue,
    QueueDetail,
    QueueNumbers,
    QueueRate,
    QueueSettings,
    QueueStats,
    QueueStatus,
    SwitchedQueue,
)
from ojs_engine.base.times import format_age, format_duration
from ojs_engine.domain.job import Retention
from ojs_engine.domain.queues.config import NOT_SET, QueueConfig, layered
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.wire.jobs.retry import retry_policy
from ojs_engine.wire.members import extended, moment, seconds, written
from ojs_engine.wire.pages import Page, pagination
from ojs_engine.wire.queues.requests import Deletion, Purge
from ojs_engine.wire.queues.starvation import prevention_view
from ojs_gateway.queue_removal import Emptied
from ojs_index.asking.numbers import Levels, Queue, QueuePage
from ojs_index.lists.lately import lately, windows
from ojs_index.lists.progress import progress


def status_of(name: str, record: QueueRecord | None) -> QueueStatus:
    """A queue without a record, or one that was deleted, is there all the same."""
    status = "active" if record is None or record.state == "deleted" else record.state
    return QueueStatus(name=name, status=status, paused=status == "paused")


def switched_queue(name: str, record: QueueRecord | None) -> SwitchedQueue:
    """The answer to pause and resume."""
    status = status_of(name, record)
    return SwitchedQueue(
        queue=status,
        paused=status.paused,
        paused_at=moment(record.paused_at) if record is not None and record.state == "paused" else None,
        resumed_at=moment(record.resumed_at) if record is not None and record.state != "paused" else None,
    )


# Numbers


def queue_page(page: QueuePage, asked: Page, records: Mapping[str, QueueRecord], now: int) -> contract.QueuePage:
    """A list of queues; `page` is what the index said."""
    queues = [contract.Queue(**_listed(queue, records.get(queue.name), now)) for queue in page.queues]
    return contract.QueuePage(queues=queues, pagination=pagination(asked, page.total, page.next_cursor), **progress(page))


def admin_queue_page(page: contract.QueuePage, found: QueuePage) -> AdminQueuePage:
    """The same in the admin API, with what the index says of the last hour."""
    return AdminQueuePage(
        items=[
            AdminQueue(**asdict(queue), state=queue.status, backlog=list(numbers.backlog))
            for queue, numbers in zip(page.queues, found.queues, strict=True)
        ],
        pagination=page.pagination,
        partial=page.partial,
        index_progress=page.index_progress,
    )


def _listed(queue: Queue, record: QueueRecord | None, now: int) -> dict[str, Any]:
    """Return the members of a queue with what it has and does."""
    return {
        **asdict(status_of(queue.name, record)),
        **asdict(lately(queue, now)),
        "counts": queue.counts,
        "pending": queue.counts.available,
        "active": queue.counts.active,
        "created_at": _created_at(queue.created_at, record),
    }


def queue_stats(queue: Queue, record: QueueRecord | None, bound: int, now: int) -> QueueStats:
    """The answer about a queue of which at most `bound` jobs may be available, 0 for any number."""
    depth = queue.counts.available
    numbers = QueueNumbers(
        **asdict(lately(queue, now)),
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
        max_depth=bound or None,
        pressure=round(depth / bound, 3) if bound else None,
    )
    counts = queue.counts
    counted = CountedQueue(**asdict(status_of(queue.name, record)), total=counts.total, **asdict(counts))
    return QueueStats(queue=counted, stats=numbers, computed_at=moment(now), **progress(queue))


def priority_stats(queue: str, levels: Levels) -> PriorityStats:
    """The answer about a queue's priorities."""
    counts = levels.counts
    return PriorityStats(queue=queue, counts_by_priority=written(counts), total=sum(counts.values()), **progress(levels))


def _created_at(first_job_at: int | None, record: QueueRecord | None) -> Any:
    at = [at for at in (first_job_at, record.created_at if record is not None else None) if at is not None]
    return moment(min(at, default=None))


# Settings


def configured_queue(name: str, record: QueueRecord | None, common: QueueConfig) -> ConfiguredQueue:
    """A queue with its settings over those of all queues."""
    return ConfiguredQueue(**asdict(status_of(name, record)), **_set(record, common), created_at=_created_at(None, record))


def _set(record: QueueRecord | None, common: QueueConfig) -> dict[str, Any]:
    """Return the members of an answer with what is set for a queue, and when."""
    own = NOT_SET if record is None else record.config
    return {
        "config": queue_settings(layered(common, own)),
        "own_config": queue_settings(own),
        "updated_at": None if record is None else moment(record.updated_at),
        "paused_at": moment(record.paused_at) if record is not None and record.state == "paused" else None,
    }


def queue_detail(queue: Queue, record: QueueRecord | None, common: QueueConfig, now: int) -> QueueDetail:
    """The same with what it has and does."""
    return QueueDetail(
        **_listed(queue, record, now),
        **_set(record, common),
        queue=status_of(queue.name, record),
        depth=queue.counts.available,
        **progress(queue),
    )


def queue_settings(config: QueueConfig) -> QueueSettings:
    """A layer of settings, or all of them together."""
    rate, kept, types = config.rate_limit, config.retention, config.allowed_job_types
    settings = QueueSettings(
        max_size=config.max_size,
        overflow_policy=config.overflow_policy,
        warning_threshold=config.warning_threshold,
        concurrency=config.concurrency,
        rate_limit=None if rate is None else QueueRate(limit=rate.limit, period=format_duration(rate.period_ms)),
        starvation_prevention=None if config.rotation_ms is None else prevention_view(config.rotation_ms),
        visibility_timeout=_timeout(config.visibility_timeout_ms),
        default_timeout=_timeout(config.default_timeout_ms),
        default_retry=None if config.default_retry is None else retry_policy(config.default_retry),
        retention=None if kept is None else _retention(kept),
        dead_letter=_dead_letter(config),
        allowed_job_types=None if types is None else [*types],
        strict_pause=config.strict_pause,
        schema_validation=config.schema_validation,
    )
    whole: QueueSettings = written(extended(settings, config.extensions))
    return whole


def _timeout(ms: int | None) -> float | None:
    return None if ms is None else seconds(ms)


def _retention(kept: Retention) -> JobRetention:
    return JobRetention(
        completed=_duration(kept.completed_s),
        cancelled=_duration(kept.cancelled_s),
        discarded=_duration(kept.discarded_s),
        dead_letter=_duration(kept.dead_letter_s),
    )


def _duration(seconds: int | None) -> str | None:
    return None if seconds is None else format_duration(seconds * 1_000)


def _dead_letter(config: QueueConfig) -> DeadLetterSettings | None:
    age_s = None if config.retention is None else config.retention.dead_letter_s
    if age_s is None and config.dead_letter_max is None:
        return None
    max_age = None if age_s is None else format_age(age_s)
    return DeadLetterSettings(retention=DeadLetterLimits(max_age=max_age, max_count=config.dead_letter_max))


# Removal


def purged_queue(name: str, asked: Purge, emptied: Emptied) -> PurgedQueue:
    """The answer to a purge."""
    return PurgedQueue(queue=name, purged_count=emptied.done, remaining=emptied.remaining, states=written(asked.states))


def deleted_queue(name: str, asked: Deletion, emptied: Emptied) -> DeletedQueue:
    """The answer to a deletion, which goes on while there are jobs."""
    return DeletedQueue(
        queue=name,
        strategy=asked.strategy,
        jobs_affected=emptied.done,
        jobs_remaining=emptied.remaining,
        state="draining" if emptied.remaining else "deleted",
        target_queue=asked.target_queue,
    )

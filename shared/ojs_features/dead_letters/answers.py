"""Answers about dead letters."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_api.jobs import SkippedJob
from ojs_engine.base.times import format_age
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.transitions.retention import DEAD_LETTER_S
from ojs_engine.read.messages import DeadLetterStats
from ojs_engine.wire.members import Count, Duration, Timestamp, Uuid, timestamp
from ojs_engine.wire.pages import Indexed, with_progress
from ojs_features.dead_letters.changes import DeadLettersChanged


class DeadLetterRetention(Struct, kw_only=True, omit_defaults=True):
    """How long dead letters are kept, and how many; `max_count` is left out where any number is."""

    max_age: Duration
    max_count: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    next_prune_at: Timestamp | UnsetType = UNSET


class DeadLetterStatsAnswer(Indexed, kw_only=True, omit_defaults=True):
    """How many dead letters there are."""

    total: Count
    by_queue: dict[str, Count]
    by_type: dict[str, Count]
    by_error_type: dict[str, Count]
    retention: DeadLetterRetention
    oldest_at: Timestamp | UnsetType = UNSET
    newest_at: Timestamp | UnsetType = UNSET


class DeletedDeadLetter(Struct):
    """One that is gone."""

    job_id: Uuid
    deleted: bool = True


class ChangedDeadLetters(Struct, kw_only=True):
    """What became of those that matched; `remaining` are left to the next request."""

    total_matched: Count
    skipped: Count
    remaining: Count
    errors: Annotated[list[SkippedJob], Meta(description="Some of the skipped.")]


class RetriedDeadLetters(ChangedDeadLetters, kw_only=True):
    """What became of those that were to be retried; `remaining` are left to the next request."""

    retried: Count


class DeletedDeadLetters(ChangedDeadLetters, kw_only=True):
    """What became of those that were to be deleted; `remaining` are left to the next request."""

    deleted: Count


def dead_letter_stats(stats: DeadLetterStats, config: QueueConfig) -> DeadLetterStatsAnswer:
    """`config` is that of the queue that was asked for, or of those that nobody configured."""
    max_age_s = config.retention.dead_letter_s if config.retention is not None else None
    answer = DeadLetterStatsAnswer(
        total=stats.total,
        by_queue=stats.by_queue,
        by_type=stats.by_type,
        by_error_type=stats.by_error_type,
        retention=DeadLetterRetention(
            max_age=format_age(DEAD_LETTER_S if max_age_s is None else max_age_s),
            max_count=(stats.max_count if config.dead_letter_max is None else config.dead_letter_max) or UNSET,
            next_prune_at=timestamp(stats.next_prune_at),
        ),
        oldest_at=timestamp(stats.oldest_at),
        newest_at=timestamp(stats.newest_at),
    )
    return with_progress(answer, stats)


def retried_dead_letters(outcome: DeadLettersChanged) -> RetriedDeadLetters:
    """The answer to a retry of all that match."""
    return RetriedDeadLetters(retried=outcome.done, **_changed(outcome))


def deleted_dead_letters(outcome: DeadLettersChanged) -> DeletedDeadLetters:
    """The answer to a deletion of all that match."""
    return DeletedDeadLetters(deleted=outcome.done, **_changed(outcome))


def _changed(outcome: DeadLettersChanged) -> dict[str, Any]:
    return {
        "total_matched": outcome.matched,
        "skipped": outcome.skipped,
        "remaining": max(outcome.matched - outcome.done - outcome.skipped, 0),
        "errors": [SkippedJob(job_id, reason) for job_id, reason in outcome.errors],
    }

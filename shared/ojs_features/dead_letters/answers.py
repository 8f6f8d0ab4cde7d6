"""Answers about dead letters."""

from __future__ import annotations

from typing import Any

from ojs_api import dead_letters as contract
from ojs_api.jobs import SkippedJob
from ojs_engine.base.times import format_age
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.transitions.retention import DEAD_LETTER_S
from ojs_engine.wire.members import moment
from ojs_features.dead_letters.changes import DeadLettersChanged
from ojs_index.asking.messages import DeadLetterStats
from ojs_index.lists.progress import progress


def dead_letter_stats(stats: DeadLetterStats, config: QueueConfig) -> contract.DeadLetterStats:
    """Return the counts; `config` is that of the queue that was asked for, or of those that have none of their own."""
    max_age_s = config.retention.dead_letter_s if config.retention is not None else None
    return contract.DeadLetterStats(
        total=stats.total,
        by_queue=stats.by_queue,
        by_type=stats.by_type,
        by_error_type=stats.by_error_type,
        retention=contract.DeadLetterRetention(
            max_age=format_age(DEAD_LETTER_S if max_age_s is None else max_age_s),
            max_count=(stats.max_count if config.dead_letter_max is None else config.dead_letter_max) or None,
            next_prune_at=moment(stats.next_prune_at),
        ),
        oldest_at=moment(stats.oldest_at),
        newest_at=moment(stats.newest_at),
        **progress(stats),
    )


def retried_dead_letters(outcome: DeadLettersChanged) -> contract.RetriedDeadLetters:
    """Return the answer to a retry of all that match."""
    return contract.RetriedDeadLetters(retried=outcome.done, **_changed(outcome))


def deleted_dead_letters(outcome: DeadLettersChanged) -> contract.DeletedDeadLetters:
    """Return the answer to a deletion of all that match."""
    return contract.DeletedDeadLetters(deleted=outcome.done, **_changed(outcome))


def _changed(outcome: DeadLettersChanged) -> dict[str, Any]:
    return {
        "total_matched": outcome.matched,
        "skipped": outcome.skipped,
        "remaining": max(outcome.matched - outcome.done - outcome.skipped, 0),
        "errors": [SkippedJob(job_id=job_id, error=reason) for job_id, reason in outcome.errors],
    }

"""Dead letters: jobs that have failed for good and are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.jobs import SkippedJob


class DeadLetterRetention(msgspec.Struct, frozen=True, kw_only=True):
    """How long dead letters are kept, and how many; `max_count` is left out where any number is."""

    max_age: str
    max_count: int | None = None
    next_prune_at: datetime | None = None


class DeadLetterStats(msgspec.Struct, frozen=True, kw_only=True):
    """How many dead letters there are."""

    total: int
    by_queue: dict[str, int]
    by_type: dict[str, int]
    by_error_type: dict[str, int]
    retention: DeadLetterRetention
    oldest_at: datetime | None = None
    newest_at: datetime | None = None


class RetriedDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """What became of those that were to be retried; `remaining` are left to the next request."""

    total_matched: int
    skipped: int
    remaining: int
    errors: list[SkippedJob]
    retried: int


class DeletedDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """What became of those that were to be deleted; `remaining` are left to the next request."""

    total_matched: int
    skipped: int
    remaining: int
    errors: list[SkippedJob]
    deleted: int

"""Dead letters: jobs that have failed for good and are kept."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.jobs import SkippedJob

__all__ = ["DeadLetterRetention", "DeadLetterStats", "DeletedDeadLetters", "RetriedDeadLetters"]


class DeadLetterRetention(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of dead letters: how long they are kept, and how many.

    Attributes:
        max_age: An ISO 8601 duration.
        max_count: None means any number.
    """

    max_age: str
    max_count: int | None = None
    next_prune_at: datetime | None = None


class DeadLetterStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of dead letters."""

    total: int
    by_queue: dict[str, int]
    by_type: dict[str, int]
    by_error_type: dict[str, int]
    retention: DeadLetterRetention
    oldest_at: datetime | None = None
    newest_at: datetime | None = None


class RetriedDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a retry of many dead letters.

    Attributes:
        remaining: How many are left for the next request.
    """

    total_matched: int
    skipped: int
    remaining: int
    errors: list[SkippedJob]
    retried: int


class DeletedDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a purge of dead letters.

    Attributes:
        remaining: How many are left for the next request.
    """

    total_matched: int
    skipped: int
    remaining: int
    errors: list[SkippedJob]
    deleted: int

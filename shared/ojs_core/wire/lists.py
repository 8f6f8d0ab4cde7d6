"""Lists and statistics as clients read them: unique jobs, unreadable records, dead letters."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_core.base.times import format_age, format_ms
from ojs_core.domain.queues.config import QueueConfig
from ojs_core.domain.transitions.retention import DEAD_LETTER_S
from ojs_core.read.messages import Answer, DeadLetterStats, UniquePage, UnreadablePage
from ojs_core.wire.pages import Page, pagination


def with_progress(view: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """`view`, marked as partial while the index behind it is being rebuilt."""
    if answer.partial:
        view |= {"partial": True, "index_progress": round(answer.progress, 3)}
    return view


def unique_jobs_view(page: UniquePage, asked: Page) -> dict[str, Any]:
    """GET /unique-jobs."""
    items = [msgspec.structs.asdict(lock) for lock in page.locks]
    view = {"items": items, "unique_jobs": items, "pagination": pagination(asked, page.total, page.next_cursor)}
    return with_progress(view, page)


def unreadable_view(page: UnreadablePage, asked: Page) -> dict[str, Any]:
    """GET /admin/unreadable."""
    items = [msgspec.structs.asdict(row) | {"stored_at": format_ms(row.stored_at)} for row in page.records]
    view = {"items": items, "records": items, "pagination": pagination(asked, page.total, page.next_cursor)}
    return with_progress(view, page)


def dead_letter_stats_view(stats: DeadLetterStats, config: QueueConfig) -> dict[str, Any]:
    """GET /dead-letter/stats. `max_count` is left out where any number is kept."""
    max_age_s = config.retention.dead_letter_s if config.retention is not None else None
    retention: dict[str, Any] = {"max_age": format_age(DEAD_LETTER_S if max_age_s is None else max_age_s)}
    max_count = stats.max_count if config.dead_letter_max is None else config.dead_letter_max
    if max_count:
        retention["max_count"] = max_count
    if stats.next_prune_at is not None:
        retention["next_prune_at"] = format_ms(stats.next_prune_at)
    view: dict[str, Any] = {
        "total": stats.total,
        "by_queue": stats.by_queue,
        "by_type": stats.by_type,
        "by_error_type": stats.by_error_type,
        "retention": retention,
    }
    for name, at in (("oldest_at", stats.oldest_at), ("newest_at", stats.newest_at)):
        if at is not None:
            view[name] = format_ms(at)
    return with_progress(view, stats)

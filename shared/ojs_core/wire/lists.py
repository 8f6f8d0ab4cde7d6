"""Lists and statistics as clients read them: queues, jobs, dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ojs_core.base.times import format_age, format_ms
from ojs_core.domain.queues.config import QueueConfig
from ojs_core.domain.queues.record import QueueRecord
from ojs_core.domain.transitions.retention import DEAD_LETTER_S
from ojs_core.read.messages import Answer, DeadLetterStats
from ojs_core.read.numbers import Counts, Queue, QueuePage
from ojs_core.wire.pages import Page, pagination
from ojs_core.wire.queues import status_of
from ojs_core.wire.statistics import lately_view, windows_view


def with_progress(view: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """`view`, marked as partial while the index behind it is being rebuilt."""
    if answer.partial:
        view |= {"partial": True, "index_progress": round(answer.progress, 3)}
    return view


def queues_view(page: QueuePage, asked: Page, records: Mapping[str, QueueRecord], now: int) -> dict[str, Any]:
    """GET /queues. `items` is the same list under the admin API's name."""
    queues = [_queue_view(queue, records.get(queue.name), now) for queue in page.queues]
    view = {"queues": queues, "items": queues, "pagination": pagination(asked, page.total, page.next_cursor)}
    return with_progress(view, page)


def _queue_view(queue: Queue, record: QueueRecord | None, now: int) -> dict[str, Any]:
    view: dict[str, Any] = {"name": queue.name, **status_of(record), "counts": _counts(queue.counts)}
    created = [at for at in (queue.created_at, record.created_at if record is not None else None) if at is not None]
    if created:
        view["created_at"] = format_ms(min(created))
    return view | lately_view(queue, now)


def queue_stats_view(queue: Queue, record: QueueRecord | None, *, bound: int = 0, now: int, as_text: bool) -> dict[str, Any]:
    """GET /queues/{name}/stats. `queue` is an object, or its name for clients that read it as text."""
    counts = _counts(queue.counts)
    depth = queue.counts.available
    stats: dict[str, Any] = {
        "queue": queue.name,
        **counts,
        "dead": queue.dead_letter,
        "depth": depth,
        "completed_last_hour": queue.completed_last_hour,
        "failed_last_hour": queue.failed_last_hour,
        "avg_duration_ms": round(queue.avg_duration_ms or 0.0, 3),
        "avg_wait_ms": round(queue.avg_wait_ms or 0.0, 3),
        "throughput_per_second": round(queue.throughput_per_second, 3),
        **lately_view(queue, now),
        "windows": windows_view(queue),
    }
    if bound:
        stats |= {"max_depth": bound, "max_size": bound, "pressure": round(depth / bound, 3)}
    named: dict[str, Any] = {"name": queue.name, **status_of(record)}
    view = {
        "queue": queue.name if as_text else {**named, **counts},
        **named,
        **counts,
        "stats": stats,
        "computed_at": format_ms(now),
    }
    return with_progress(view, queue)


def _counts(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in counts.__struct_fields__}


def priority_stats_view(queue: str, counts: Mapping[int, int]) -> dict[str, Any]:
    """GET /queues/{name}/priority-stats (ojs-priority); `distribution` is the admin UI's form."""
    return {
        "queue": queue,
        "counts_by_priority": {str(priority): number for priority, number in counts.items()},
        "distribution": [{"priority": priority, "count": number} for priority, number in counts.items()],
        "total": sum(counts.values()),
    }


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

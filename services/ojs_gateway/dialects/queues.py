"""Queues for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from ojs_api.queues import (
    ConfiguredQueue,
    PriorityStats,
    PurgedQueue,
    QueueDetail,
    QueueStats,
    SwitchedQueue,
)
from ojs_api.statistics import Counts
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members


def _counts(answer: QueueStats) -> dict[str, int]:
    return {name: getattr(answer.queue, name) for name in (*Counts.__struct_fields__, "total")}


def _stats_for_cli(answer: QueueStats) -> dict[str, Any]:
    """`queue` is the name."""
    stats = members(answer.stats) | _counts(answer)
    return members(answer) | {"queue": answer.queue.name, "status": answer.queue.status, "stats": stats}


def _stats_for_sdks(answer: QueueStats) -> dict[str, Any]:
    """`queue` is the name (ojs-http-binding §11.2); Python and Go read the counts in `stats`, JS beside it."""
    stats = members(answer.stats) | _counts(answer)
    return asdict(answer.queue) | members(answer) | {"queue": answer.queue.name, "stats": stats}


def _switched_beside(answer: SwitchedQueue) -> dict[str, Any]:
    return members(answer.queue) | members(answer)


def _switched_for_sdks(answer: SwitchedQueue) -> dict[str, Any]:
    """`queue` is the name (ojs-http-binding §11.3)."""
    return _switched_beside(answer) | {"queue": answer.queue.name}


def _with_configuration(answer: ConfiguredQueue | QueueDetail) -> dict[str, Any]:
    return members(answer) | {"configuration": answer.config}


def _with_running(answer: QueueDetail) -> dict[str, Any]:
    return members(answer) | {"running": answer.counts.active}


def _with_distribution(answer: PriorityStats) -> dict[str, Any]:
    levels = [{"priority": priority, "count": count} for priority, count in answer.counts_by_priority.items()]
    return members(answer) | {"distribution": levels}


def _with_deleted(answer: PurgedQueue) -> dict[str, Any]:
    return members(answer) | {"deleted": answer.purged_count}


QUEUES: Final[Shapes] = {
    QueueStats: {"sdk": _stats_for_sdks, "cli": _stats_for_cli},
    SwitchedQueue: {"sdk": _switched_for_sdks, "cli": _switched_beside, "ui": _switched_beside},
    ConfiguredQueue: {"ui": _with_configuration},
    QueueDetail: {"cli": _with_running, "ui": _with_configuration},
    PriorityStats: {"ui": _with_distribution},
    PurgedQueue: {"cli": _with_deleted},
}

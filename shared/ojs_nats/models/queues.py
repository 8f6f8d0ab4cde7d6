"""Queues: their state, numbers and settings."""

from __future__ import annotations

from ojs_api.jobs import RetryPolicy
from ojs_api.queues import (
    ConfiguredQueue,
    CountedQueue,
    DeadLetterLimits,
    DeadLetterSettings,
    DeletedQueue,
    JobRetention,
    PriorityStats,
    PurgedQueue,
    Queue,
    QueueDetail,
    QueueNumbers,
    QueueRate,
    QueueSettings,
    QueueStats,
    QueueStatus,
    StarvationPrevention,
    SwitchedQueue,
)

__all__ = [
    "ConfiguredQueue",
    "CountedQueue",
    "DeadLetterLimits",
    "DeadLetterSettings",
    "DeletedQueue",
    "JobRetention",
    "PriorityStats",
    "PurgedQueue",
    "Queue",
    "QueueDetail",
    "QueueNumbers",
    "QueueRate",
    "QueueSettings",
    "QueueStats",
    "QueueStatus",
    "RetryPolicy",
    "StarvationPrevention",
    "SwitchedQueue",
]

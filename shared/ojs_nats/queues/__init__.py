"""Queues as pure functions and structs: configuration in layers, the record, what a push must heed (requirements §12)."""

from __future__ import annotations

from ojs_nats.queues.admission import Settings, admitted
from ojs_nats.queues.config import DEFAULT_QUEUE, MAINTENANCE, NOT_SET, Overflow, Patch, QueueConfig, Rate, layered, patched
from ojs_nats.queues.record import (
    Maintenance,
    QueueRecord,
    QueueState,
    configured,
    created,
    deleted,
    draining,
    maintained,
    paused,
    resumed,
)

__all__ = [
    "DEFAULT_QUEUE",
    "MAINTENANCE",
    "NOT_SET",
    "Maintenance",
    "Overflow",
    "Patch",
    "QueueConfig",
    "QueueRecord",
    "QueueState",
    "Rate",
    "Settings",
    "admitted",
    "configured",
    "created",
    "deleted",
    "draining",
    "layered",
    "maintained",
    "patched",
    "paused",
    "resumed",
]

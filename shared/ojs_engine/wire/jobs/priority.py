"""PATCH /jobs/{id}: another priority (ojs-priority §8.1)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import priority_of, struct_of
from ojs_engine.base.numbers import Priority
from ojs_engine.wire.members import Uuid


class PriorityBody(Struct):
    priority: Any = None


def parse_priority(body: bytes) -> int:
    """PATCH /jobs/{id}: the new priority, -100 to 100."""
    sent = struct_of(body, PriorityBody).priority
    if sent is None:
        raise invalid("priority", "priority is required: an integer from -100 to 100")
    return priority_of(sent, "priority")


class ChangedPriority(Struct):
    """The job's priority now, and what it was (ojs-priority §8.1)."""

    id: Uuid
    priority: Priority
    previous_priority: Priority

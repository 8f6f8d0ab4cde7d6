"""PATCH /jobs/{id}: another priority (ojs-priority §8.1)."""

from __future__ import annotations

from ojs_api.jobs import ChangePriority
from ojs_engine.base.fields import priority_of
from ojs_engine.wire.requests import request_of


def parse_priority(body: bytes) -> int:
    """PATCH /jobs/{id}: the new priority, -100 to 100."""
    return priority_of(request_of(body, ChangePriority).priority, "priority")

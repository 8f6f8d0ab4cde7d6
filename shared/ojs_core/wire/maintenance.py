"""Maintenance as clients ask for it and read it (ojs-admin-api §12.1)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ojs_core.base.errors import invalid
from ojs_core.base.fields import duration_ms, short_text, struct_of
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.times import format_ms
from ojs_core.domain.queues.record import Maintenance, QueueRecord


class MaintenanceBody(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    reason: str | None = None
    duration: str | int | float | None = None
    estimated_duration: str | int | float | None = None


def parse_maintenance(body: bytes, now: int, limits: PayloadLimits) -> Maintenance | None:
    """The plan; None to end it. `duration` ends it by itself, `estimated_duration` is only shown. Raises invalid_request."""
    sent = struct_of(body, MaintenanceBody)
    if sent.enabled is None:
        raise invalid("enabled", "enabled is required: true begins maintenance, false ends it")
    if not sent.enabled:
        return None
    return Maintenance(
        reason=short_text(sent.reason, "reason", limits) if sent.reason else None,
        ends_at=_end(sent.duration, "duration", now, limits),
        expected_at=_end(sent.estimated_duration, "estimated_duration", now, limits),
    )


def _end(duration: str | float | None, path: str, now: int, limits: PayloadLimits) -> int | None:
    return None if duration is None else now + duration_ms(duration, path, 1_000, limits)


def maintenance_view(record: QueueRecord | None, now: int) -> dict[str, Any]:
    """In the specification's words and in those of the CLI and the admin UI."""
    if record is None or not record.holds_at(now):
        return {"enabled": False, "maintenance": False}
    plan = record.maintenance or Maintenance()
    began = format_ms(record.paused_at or record.updated_at)
    view: dict[str, Any] = {"enabled": True, "maintenance": True, "started_at": began, "enabled_at": began}
    if plan.reason is not None:
        view["reason"] = plan.reason
    if plan.ends_at is not None:
        view["ends_at"] = format_ms(plan.ends_at)
    expected = plan.ends_at if plan.expected_at is None else plan.expected_at
    if expected is not None:
        view["estimated_end"] = format_ms(expected)
    return view

"""Maintenance as clients ask for it and read it (ojs-admin-api §12.1)."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.base.errors import invalid
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import duration_ms, short_text, struct_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_ms
from ojs_engine.domain.queues.record import Maintenance, QueueRecord
from ojs_engine.wire.members import Extended, OpenStruct, Timestamp, extended, given, timestamp


class MaintenanceBody(Struct, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    reason: str | None = None
    duration: str | int | float | None = None
    estimated_duration: str | int | float | None = None


class RestoredAnswer(Struct, kw_only=True):
    """The backup's namespace and time, and the time of the restore, of a system that waits for its release."""

    namespace: str
    taken_at: Timestamp
    restored_at: Timestamp


class MaintenanceAnswer(OpenStruct, kw_only=True, omit_defaults=True):
    """Whether there is maintenance. It ends by itself at `ends_at`; `estimated_end` is what operators expect.

    A system that was restored and waits for its release (`restored`) is under maintenance until it is released.
    """

    maintenance: bool
    reason: str | UnsetType = UNSET
    enabled_at: Timestamp | UnsetType = UNSET
    ends_at: Timestamp | UnsetType = UNSET
    estimated_end: Timestamp | UnsetType = UNSET
    restored: RestoredAnswer | UnsetType = UNSET


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
        extensions=extensions_in(body, limits),
    )


def _end(duration: str | float | None, path: str, now: int, limits: PayloadLimits) -> int | None:
    return None if duration is None else now + duration_ms(duration, path, 1_000, limits)


def maintenance_answer(record: QueueRecord | None, now: int) -> MaintenanceAnswer | Extended[MaintenanceAnswer]:
    """Whether there is maintenance at `now` (Unix ms), since when and until when."""
    if record is None or not record.holds_at(now):
        return MaintenanceAnswer(maintenance=False)
    if record.restored is not None:
        return MaintenanceAnswer(
            maintenance=True,
            reason=record.restored.said,
            enabled_at=format_ms(record.restored.at),
            restored=RestoredAnswer(
                namespace=record.restored.namespace,
                taken_at=format_ms(record.restored.taken_at),
                restored_at=format_ms(record.restored.at),
            ),
        )
    plan = record.maintenance or Maintenance()
    answer = MaintenanceAnswer(
        maintenance=True,
        reason=given(plan.reason),
        enabled_at=format_ms(record.paused_at or record.updated_at),
        ends_at=timestamp(plan.ends_at),
        estimated_end=timestamp(plan.ends_at if plan.expected_at is None else plan.expected_at),
    )
    return extended(answer, plan.extensions)

"""Maintenance and records that can't be read, as clients ask for them and read them (ojs-admin-api §12.1)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ojs_api.maintenance import (
    Maintenance,
    RestoredSystem,
    SetMaintenance,
    UnreadableRecord,
    UnreadableRecordPage,
)
from ojs_engine.base.errors import invalid
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import duration_ms, short_text
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.queues import record as stored
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import Extended, bare, extended, members, moment
from ojs_engine.wire.pages import Page, pagination
from ojs_engine.wire.requests import request_of
from ojs_index.asking.messages import UnreadablePage
from ojs_index.lists.progress import progress


def parse_maintenance(body: bytes, now: int, limits: PayloadLimits) -> stored.Maintenance | None:
    """Return the plan; None to end it. Raises OjsError invalid_payload, invalid_request."""
    sent = request_of(body, SetMaintenance)
    if sent.enabled is None:
        raise invalid("enabled", "enabled is required: true begins maintenance, false ends it")
    if not sent.enabled:
        return None
    return stored.Maintenance(
        reason=short_text(sent.reason, "reason", limits) if sent.reason else None,
        ends_at=_end(sent.duration, "duration", now, limits),
        expected_at=_end(sent.estimated_duration, "estimated_duration", now, limits),
        extensions=extensions_in(body, limits),
    )


def _end(duration: str | float | None, path: str, now: int, limits: PayloadLimits) -> int | None:
    return None if duration is None else now + duration_ms(duration, path, 1_000, limits)


def maintenance_answer(record: stored.QueueRecord | None, now: int) -> Maintenance | Extended[Maintenance]:
    """Return whether there is maintenance at `now` (Unix ms), since when and until when."""
    if record is None or not record.holds_at(now):
        return Maintenance(maintenance=False)
    if record.restored is not None:
        return Maintenance(
            maintenance=True,
            reason=record.restored.said,
            enabled_at=moment(record.restored.at),
            restored=RestoredSystem(
                namespace=record.restored.namespace,
                taken_at=moment(record.restored.taken_at),
                restored_at=moment(record.restored.at),
            ),
        )
    plan = record.maintenance or stored.Maintenance()
    answer = Maintenance(
        maintenance=True,
        reason=plan.reason,
        enabled_at=moment(record.paused_at or record.updated_at),
        ends_at=moment(plan.ends_at),
        estimated_end=moment(plan.ends_at if plan.expected_at is None else plan.expected_at),
    )
    return extended(answer, plan.extensions)


def unreadable_page(page: UnreadablePage, asked: Page) -> UnreadableRecordPage:
    """Return a page of records that can't be read."""
    items = [UnreadableRecord(**asdict(row) | {"stored_at": moment(row.stored_at)}) for row in page.records]
    return UnreadableRecordPage(items=items, pagination=pagination(asked, page.total, page.next_cursor), **progress(page))


def _for_tools(answer: Maintenance | Extended[Maintenance]) -> dict[str, Any]:
    own = bare(answer)
    view = members(answer) | {"enabled": own.maintenance}
    return view if own.enabled_at is None else view | {"started_at": own.enabled_at}


SHAPES: Shapes = {Maintenance: {"cli": _for_tools, "ui": _for_tools}}
"""Answers as official clients read them."""

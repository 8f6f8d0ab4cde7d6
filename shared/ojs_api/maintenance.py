"""Maintenance of a system as a whole, and removal of records that can't be read (docs/admin.md)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from ojs_api.members import REQUIRED, Count, Duration, Moment, OpenAnswer, wanted
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import DEFAULT_PAGE, MAX_NUMBERED, Indexed, Pagination, paged

_Reason = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 255}), wanted("a text of at most 255 characters")]
_Name = Annotated[str, Meta(min_length=1, max_length=255)]


class SetMaintenance(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Whether there shall be maintenance. `duration` ends it by itself, `estimated_duration` is only shown."""

    enabled: Annotated[bool, REQUIRED] | None = None
    reason: _Reason | None = None
    duration: Duration | None = None
    estimated_duration: Duration | None = None


class RestoredSystem(Struct, frozen=True, kw_only=True):
    """The backup that a system was restored from, which waits for its release.

    Attributes:
        namespace: The namespace of the backup.
        taken_at: When the backup was taken.
        restored_at: When it was restored.
    """

    namespace: str
    taken_at: Moment
    restored_at: Moment


class Maintenance(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """The state of maintenance.

    Attributes:
        maintenance: Whether the system is under maintenance.
        reason: What its operators say of it.
        enabled_at: When it began.
        ends_at: When it ends by itself. None if it doesn't.
        estimated_end: When operators expect it to end.
        restored: The backup, of a restored system that waits for its release.
    """

    maintenance: bool
    reason: str | None = None
    enabled_at: Moment | None = None
    ends_at: Moment | None = None
    estimated_end: Moment | None = None
    restored: RestoredSystem | None = None


class UnreadableRecord(Struct, frozen=True, kw_only=True):
    """A stored record that can't be read.

    Attributes:
        kind: The kind of record, by its key.
        key: The rest of its key.
        sequence: Its place in the stream.
        stored_at: When it was stored.
        size: In bytes.
        problem: Why it can't be read.
    """

    kind: str
    key: str
    sequence: Count
    stored_at: Moment
    size: Count
    problem: str


class UnreadableRecordPage(Indexed, frozen=True, kw_only=True):
    """A page of records that can't be read, by kind and key."""

    items: list[UnreadableRecord]
    pagination: Pagination


class RemovedRecord(Struct, frozen=True, kw_only=True):
    """The record is gone."""

    removed: bool
    kind: str
    key: str


# fmt: off
GET: Final = Operation(
    "getMaintenance", "GET /admin/system/maintenance", "read", "Read whether there is maintenance", {200: Maintenance},
    also=("GET /admin/maintenance",),
)
SET: Final = Operation(
    "setMaintenance", "POST /admin/system/maintenance", "admin", "Begin or end maintenance", {200: Maintenance},
    "During maintenance nothing is fetched from any queue, and nothing that was delayed becomes available. "
    "A restored system that waits for its release is under maintenance until `ojs-nats release`.",
    also=("POST /admin/maintenance",), body=SetMaintenance, errors=("conflict",),
)
LIST_UNREADABLE: Final = Operation(
    "listUnreadableRecords", "GET /admin/unreadable", "read", "List records that can't be read", {200: UnreadableRecordPage},
    "Written by hand, or by another version. Each is passed over by itself. Jobs, workflows, workers, cron entries, "
    "unique locks, queues, pools and statistics are listed; who meets another kind is told its name.",
    query=(Parameter("kind", str, "Of this kind alone."), *paged(DEFAULT_PAGE, MAX_NUMBERED)),
)
REMOVE_UNREADABLE: Final = Operation(
    "removeUnreadableRecord", "DELETE /admin/unreadable/{kind}/{record}", "destroy", "Remove a record that can't be read",
    {200: RemovedRecord}, "With its timers and results; its name is free again. 409 if it can be read.",
    errors=("not_found", "conflict"),
)
MAINTENANCE: Final = Subject(
    "Maintenance", "Holding everything, and removing what can't be read",
    (GET, SET, LIST_UNREADABLE, REMOVE_UNREADABLE),
    (
        Parameter("kind", _Name, "What kind of record it is, the first word of its key in the bucket."),
        Parameter("record", _Name, "The rest of its key."),
    ),
)

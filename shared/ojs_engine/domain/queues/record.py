"""The record of a queue that somebody configured, paused or is deleting; a queue that only holds jobs has none."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At
from ojs_engine.base.times import format_ms
from ojs_engine.domain.queues.config import MAINTENANCE, NOT_SET, QueueConfig
from ojs_engine.domain.transitions.result import Moment

QueueState = Literal["active", "paused", "draining", "deleted"]


class Maintenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why all queues are held, and when that ends by itself or is expected to (Unix ms)."""

    reason: str | None = None
    ends_at: At | None = None
    expected_at: At | None = None
    extensions: Extensions = {}


class RestoreMark(Struct, frozen=True, kw_only=True):
    """The mark of a restored system that waits for its release (times in Unix ms).

    It has the namespace and the time of the backup, and the time of the restore.
    """

    namespace: str
    taken_at: At
    at: At

    @property
    def said(self) -> str:
        """The mark in words."""
        backup = f"a backup of namespace {self.namespace} of {format_ms(self.taken_at)}"
        return f"the system was restored from {backup}, and waits for its release"


class QueueRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `queue.<name>`, with the name's dots as underscores. `op` is the last change's (Unix ms times)."""

    name: str
    state: QueueState = "active"
    config: QueueConfig = NOT_SET
    explicit: bool = False
    """Somebody created or configured it."""
    created_at: At = 0
    updated_at: At = 0
    paused_at: At | None = None
    resumed_at: At | None = None
    maintenance: Maintenance | None = None
    restored: RestoreMark | None = None
    """Both only of the record that stands for all queues."""
    op: str = ""

    @property
    def held(self) -> bool:
        """Whether nothing may be fetched from the queue."""
        return self.state == "paused"

    def holds_at(self, now: int) -> bool:
        """Return whether it holds its queues: by a pause, or since a restored system waits for its release."""
        return self.restored is not None or self.paused_as_of(now)

    def paused_as_of(self, now: int) -> bool:
        """Return whether it is paused, and that hasn't ended by itself."""
        ends_at = None if self.maintenance is None else self.maintenance.ends_at
        return self.held and (ends_at is None or now < ends_at)


def created(old: QueueRecord | None, name: str, config: QueueConfig, moment: Moment) -> QueueRecord:
    """Create a queue explicitly; one that was merely paused stays so. Raises `conflict` if it was created before."""
    found = _standing(old, name, moment)
    if found.explicit:
        message = f"queue {name!r} exists; change it with PUT /ojs/v1/queues/{name}/config"
        raise OjsError(
            "conflict",
            message,
            hint="Change the queue that is there, or create one of another name.",
            details={"queue": name, "state": found.state},
            canonical="QUEUE_EXISTS",
        )
    return _changed(found, moment, config=config, explicit=True)


def configured(old: QueueRecord | None, name: str, config: QueueConfig, moment: Moment) -> QueueRecord:
    """Replace a queue's own configuration; creates the queue if need be."""
    return _changed(_standing(old, name, moment), moment, config=config, explicit=True)


def paused(old: QueueRecord | None, name: str, moment: Moment) -> QueueRecord | None:
    """Pause a queue, known or not; None if it is paused already."""
    found = _standing(old, name, moment)
    if found.state == "paused":
        return None
    return _changed(found, moment, state="paused", paused_at=moment.now)


def resumed(old: QueueRecord | None, name: str, moment: Moment) -> QueueRecord | None:
    """Let a queue go on, whether it was paused or draining; None if nothing holds it."""
    found = _standing(old, name, moment)
    if found.state == "active":
        return None
    return _changed(found, moment, state="active", resumed_at=moment.now)


def maintained(old: QueueRecord | None, moment: Moment, plan: Maintenance) -> QueueRecord:
    """Hold all queues; while they are, only the plan changes."""
    found = _standing(old, MAINTENANCE, moment)
    began = found.paused_at if found.paused_as_of(moment.now) else moment.now
    return _changed(found, moment, state="paused", paused_at=began, maintenance=plan)


def maintenance_ended(old: QueueRecord | None, moment: Moment) -> QueueRecord | None:
    """Let all queues go on; None if nothing holds them.

    Raises `conflict` for a restored system that waits for its release.
    """
    if old is not None and old.restored is not None and not old.paused_as_of(moment.now):
        raise OjsError(
            "conflict",
            f"there is no maintenance to end: {old.restored.said}",
            hint="Release it with 'ojs-nats release --nats URL', once it may act (docs/backup.md).",
        )
    return resumed(old, MAINTENANCE, moment)


def waiting_for_release(old: QueueRecord | None, moment: Moment, restored: RestoreMark) -> QueueRecord:
    """Hold all that acts in a restored system; maintenance stays as it was."""
    return _changed(_standing(old, MAINTENANCE, moment), moment, restored=restored)


def released(old: QueueRecord | None, moment: Moment) -> QueueRecord | None:
    """Let a restored system act; None if it doesn't wait for that."""
    return None if old is None or old.restored is None else _changed(old, moment, restored=None)


def draining(old: QueueRecord | None, name: str, moment: Moment) -> QueueRecord | None:
    """Take no more jobs; those that are there are still worked on. None if it is draining already."""
    found = _standing(old, name, moment)
    return None if found.state == "draining" else _changed(found, moment, state="draining")


def deleted(old: QueueRecord, moment: Moment) -> QueueRecord:
    """What stays of a queue for a while, so that everybody hears of it; with it goes its configuration."""
    return QueueRecord(name=old.name, state="deleted", created_at=old.created_at, updated_at=moment.now, op=moment.op)


def _standing(old: QueueRecord | None, name: str, moment: Moment) -> QueueRecord:
    if old is None or old.state == "deleted":
        return QueueRecord(name=name, created_at=moment.now, updated_at=moment.now, op=moment.op)
    return old


def _changed(old: QueueRecord, moment: Moment, **members: object) -> QueueRecord:
    return replace(old, updated_at=moment.now, op=moment.op, **members)

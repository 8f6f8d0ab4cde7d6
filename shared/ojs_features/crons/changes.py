"""Changes that clients make to an entry (ojs-cron §8): pure functions of the record and the moment.

They raise OjsError for a change that is refused.
"""

from __future__ import annotations

from typing import Final, assert_never

from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api.words import Overlap
from ojs_engine.base.errors import conflict
from ojs_engine.base.extensions import Extensions
from ojs_engine.domain.job import EMPTY_OBJECT, Job
from ojs_engine.domain.transitions import Moment
from ojs_engine.domain.transitions.retention import TOMBSTONE_S
from ojs_features.crons.record import Cron, CronTimer, Occurrence
from ojs_features.crons.step import Step, cleared, logged, scheduled, timed, triggered
from ojs_features.crons.ticks import MAX_WAITING

INSURANCE_MS: Final = 1_000
"""A run by hand whose gateway dies before the job exists is finished by a scheduler after this time."""


class Registration(Struct, frozen=True, kw_only=True):
    """A client's registration. `enabled` is None where it says nothing."""

    name: str
    expression: str
    timezone: str = "UTC"
    draft: Job
    options: Raw = EMPTY_OBJECT
    overlap: Overlap = "skip"
    enabled: bool | None = None
    description: str | None = None
    extensions: Extensions = {}
    key: str | None = None
    """The id of the key that registers it; None where none is needed."""


def register(old: Cron | None, wanted: Registration, moment: Moment) -> Step:
    """Create an entry or replace what it asks for; its history stays.

    Applications register their entries whenever they start. So an unchanged schedule keeps its next tick, which
    `@every` would otherwise put off, and an entry that somebody paused stays paused unless the registration says
    `enabled`.
    """
    now = moment.now
    if old is None or old.deleted:
        fresh = Cron(
            name=wanted.name,
            expression=wanted.expression,
            timezone=wanted.timezone,
            draft=wanted.draft,
            options=wanted.options,
            overlap=wanted.overlap,
            enabled=wanted.enabled is not False,
            description=wanted.description,
            extensions=wanted.extensions,
            key=wanted.key,
            created_at=now,
            updated_at=now,
            anchor=now,
            op=moment.op,
            n=old.n if old is not None else 0,
        )
        return timed(old, scheduled(fresh, now), moment)
    same = (old.expression, old.timezone) == (wanted.expression, wanted.timezone)
    new = replace(
        old,
        expression=wanted.expression,
        timezone=wanted.timezone,
        draft=wanted.draft,
        options=wanted.options,
        overlap=wanted.overlap,
        description=wanted.description,
        extensions=wanted.extensions,
        key=wanted.key,
        anchor=old.anchor if same else now,
        op=moment.op,
        updated_at=now,
    )
    if not same:
        new = scheduled(new, now)
    enabled = old.enabled if wanted.enabled is None else wanted.enabled
    return timed(old, _switched(new, enabled, moment), moment)


def switch(old: Cron, enabled: bool, moment: Moment) -> Step | None:
    """Pause or resume; None if there is nothing to do. A paused entry has no next tick, and nothing waits."""
    if old.enabled == enabled:
        return None
    new = replace(old, op=moment.op, updated_at=moment.now)
    return timed(old, _switched(new, enabled, moment), moment)


def _switched(record: Cron, enabled: bool, moment: Moment) -> Cron:
    if record.enabled == enabled:
        return record
    if enabled:
        return scheduled(replace(record, enabled=True), moment.now)
    dropped = list(record.waiting)
    if record.next_at is not None and record.next_at <= moment.now:  # due, and nobody has come to it yet
        dropped.append(Occurrence(record.next_at))
    for occurrence in dropped:
        record = logged(record, moment, "skipped", occurrence, reason="disabled")
    return scheduled(replace(record, enabled=False, waiting=()), moment.now)


def pass_over(old: Cron, moment: Moment) -> Step | None:
    """Leave out the ticks that are due by now, without making up for one; None if none is due.

    Of an entry that comes from a backup: the system that was backed up may have run them.
    """
    if old.next_at is None or old.next_at > moment.now:
        return None
    return timed(old, scheduled(replace(old, op=moment.op), moment.now), moment)


def delete(old: Cron, moment: Moment) -> Step:
    """Leave a tombstone. Jobs of earlier runs stay, also those still to be created."""
    new = replace(old, op=moment.op, updated_at=moment.now, deleted=True, next_at=None, gap=None, waiting=())
    return timed(old, new, moment, ttl_s=TOMBSTONE_S)


def run_now(old: Cron, moment: Moment, previous: Job | None) -> Step:
    """Run once outside the schedule, paused or not. The overlap policy holds: `skip` refuses with `conflict` while
    the job before is not finished, `enqueue` waits for its end.
    """
    occurrence = Occurrence(moment.now, moment.op)
    record = replace(old, op=moment.op)
    free = cleared(previous)
    cancels: str | None = None
    match old.overlap:
        case "allow":
            pass
        case "cancel_previous":
            cancels = None if free else old.last_job
        case "enqueue":
            if len(old.waiting) >= MAX_WAITING:
                raise _occupied(old, previous, f"{MAX_WAITING} of its runs are waiting")
            if not free or old.waiting:
                return timed(old, replace(record, waiting=(*old.waiting, occurrence)), moment)
        case "skip":
            if previous is not None and not previous.terminal:
                raise _occupied(old, previous, f"its job {old.last_job} is {previous.state}")
        case unknown:
            assert_never(unknown)
    new = triggered(record, moment, occurrence, moment.op, cancels)
    return Step(new, arm=CronTimer(moment.op, moment.now + INSURANCE_MS), run=new.log[-1])


def _occupied(record: Cron, previous: Job | None, why: str) -> Exception:
    message = f"cron {record.name!r} can't run now: {why}, and its overlap policy is {record.overlap}"
    return conflict(message, record.last_job or "", str(previous and previous.state), "terminal")

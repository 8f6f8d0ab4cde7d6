"""The due ticks of an entry (ojs-cron §6, §7.3): a pure function of the record, the moment, and the job before."""

from __future__ import annotations

from typing import Final, assert_never

from msgspec.structs import replace

from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment
from ojs_features.crons.record import Cron, CronTimer, Occurrence
from ojs_features.crons.schedule import following
from ojs_features.crons.step import Step, cleared, logged, scheduled, timed, triggered, wanted_at

GRACE_MS: Final = 5_000
"""A tick this late is late, not missed; of those that are missed, one is made up for (CRON-25)."""
LATE_MS: Final = 30_000
"""An entry that has not run is late so long after its time, and an operator is told."""
MAX_WAITING: Final = 100
"""Occurrences that may wait for the job before them; what comes on top is skipped."""


def tick(record: Cron, moment: Moment, previous: Job | None, fired: str) -> Step | CronTimer | None:
    """Return the answer to a due message: a step, its timer once more (it came early, or something still waits), or nothing.

    `previous` is the job `record.last_job`, None if there is none any more; `fired` the op of the message's timer.
    """
    new = record
    if record.gap is not None and record.gap.at <= moment.now:
        gap = record.gap
        new = replace(logged(new, moment, "skipped", Occurrence(gap.tick), reason="dst_skip", count=gap.count), gap=None)
    ran = False
    if record.next_at is not None and record.next_at <= moment.now:
        decided = _decide(new, moment, previous, Occurrence(record.next_at), fired)
        ran = decided.run_count > new.run_count
        new = _moved_on(decided, record.next_at, moment.now)
    if new.waiting and not ran and cleared(previous):
        first, *rest = new.waiting
        new = triggered(replace(new, waiting=tuple(rest)), moment, first, fired)
        ran = True
    if new is record:
        return _later(record, moment, fired)
    step = timed(record, replace(new, op=moment.op, updated_at=record.updated_at), moment, fired=fired)
    return replace(step, run=next(run for run in reversed(new.log) if run.outcome == "triggered")) if ran else step


def _decide(record: Cron, moment: Moment, previous: Job | None, due: Occurrence, hint: str) -> Cron:
    """One occurrence under the entry's overlap policy: run, wait or skip."""
    free = cleared(previous)
    match record.overlap:
        case "allow":
            return triggered(record, moment, due, hint)
        case "cancel_previous":
            return triggered(record, moment, due, hint, cancels=None if free else record.last_job)
        case "enqueue":
            if len(record.waiting) < MAX_WAITING:
                return replace(record, waiting=(*record.waiting, due))
        case "skip":
            if free and not record.waiting:
                return triggered(record, moment, due, hint)
        case unknown:
            assert_never(unknown)
    return logged(record, moment, "skipped", due, reason="overlap_skip", job_id=record.last_job)


def _moved_on(record: Cron, due: int, now: int) -> Cron:
    """The tick after `due`; those that are more than `GRACE_MS` late by now are missed."""
    if following(record.expression, record.timezone, record.anchor, due).at > now - GRACE_MS:
        return scheduled(record, due)
    return scheduled(record, now)


def _later(record: Cron, moment: Moment, fired: str) -> CronTimer | None:
    """The timer again where the message is the record's own; a message of an earlier revision's has nothing to say."""
    at = wanted_at(record, moment.now)
    if at is None or record.timer is None or record.timer.op != fired:
        return None
    return CronTimer(fired, at)

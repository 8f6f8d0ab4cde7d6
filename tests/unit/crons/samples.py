"""Cron entries made by the changes themselves, and a small world in which their timers fire."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

from msgspec import Raw

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment
from ojs_features.crons.changes import Registration, register
from ojs_features.crons.record import Cron, CronTimer
from ojs_features.crons.step import Step
from ojs_features.crons.ticks import tick

T0: Final = 1_800_000_000_000
"""A full minute and hour, in UTC: 2027-01-15T08:00:00Z."""
SECOND: Final = 1_000
MINUTE: Final = 60_000

_ops = count(1)


def at(after_ms: int = 0) -> Moment:
    return Moment(T0 + after_ms, f"op{next(_ops)}")


def draft(**members: Any) -> Job:
    return Job(**({"id": "", "type": "test.job", "args": Raw(b"[1]"), "state": State.AVAILABLE} | members))


def before(state: State | None) -> Job | None:
    """Return the job of the last run in a state; None stands for none."""
    return None if state is None else draft(state=state)


def wanted(**members: Any) -> Registration:
    asked: dict[str, Any] = {"name": "nightly", "expression": "* * * * *", "draft": draft()}
    return Registration(**(asked | members))


def entry(moment: Moment | None = None, **members: Any) -> Cron:
    """A new entry, registered at T0 - 30 s unless told; with `* * * * *` its first tick is T0."""
    return register(None, wanted(**members), moment or at(-30 * SECOND)).record


def fired(record: Cron, after_ms: int, previous: State | None = None) -> Step:
    """The step when the entry's own timer fires at T0 + `after_ms`."""
    assert record.timer is not None
    step = tick(record, at(after_ms), before(previous), record.timer.op)
    assert isinstance(step, Step), step
    return step


def early(record: Cron, after_ms: int, previous: State | None = None) -> CronTimer | None:
    """What is asked for when the entry's own timer fires and nothing is due."""
    assert record.timer is not None
    step = tick(record, at(after_ms), before(previous), record.timer.op)
    assert not isinstance(step, Step), step
    return step

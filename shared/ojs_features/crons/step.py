"""The step that a change of an entry is, and the parts that all changes are made of."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ojs_api.crons import RunOutcome
from ojs_engine.base.ids import derived_job_id
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment
from ojs_features.crons.record import KEPT, Cron, CronRun, CronTimer, Occurrence
from ojs_features.crons.schedule import following

_RECHECK_MS: Final = 500
_RECHECK_MOST_MS: Final = 15_000


class Step(Struct, frozen=True):
    """One commit: the record to store, the timers around it, and the run whose job is created after it."""

    record: Cron
    arm: CronTimer | None = None
    """The timer to publish ahead of the record."""
    cancel: str | None = None
    """The op of the timer that the record's message purges."""
    run: CronRun | None = None
    ttl_s: int | None = None
    """Seconds until the record leaves by itself: a tombstone's."""


def cleared(previous: Job | None) -> bool:
    """Whether the job before, if there is one, is out of the way (not when it is merely waiting, either)."""
    return previous is None or previous.terminal


def logged(record: Cron, moment: Moment, outcome: RunOutcome, occurrence: Occurrence, **members: Any) -> Cron:
    """`record` with one more entry in its log."""
    run = CronRun(n=record.n + 1, outcome=outcome, tick=occurrence.at, at=moment.now, key=occurrence.key, **members)
    return replace(record, n=run.n, log=(*record.log, run)[-KEPT:])


def job_id_of(name: str, occurrence: Occurrence) -> str:
    """The id of the job that an occurrence of an entry creates."""
    return derived_job_id(occurrence.at, "cron", name, occurrence.key)


def triggered(record: Cron, moment: Moment, occurrence: Occurrence, hint: str, cancels: str | None = None) -> Cron:
    """`record` after a run was decided; its last entry is the run. The job's id follows from entry and occurrence."""
    job_id = job_id_of(record.name, occurrence)
    number = record.run_count + 1
    logs = logged(record, moment, "triggered", occurrence, hint=hint, job_id=job_id, cancels=cancels, number=number)
    return replace(logs, last_job=job_id, last_run_at=moment.now, run_count=number)


def scheduled(record: Cron, after: int) -> Cron:
    """`record` with its next tick, the first one later than `after`; none while it is disabled."""
    if not record.enabled:
        return replace(record, next_at=None, gap=None)
    found = following(record.expression, record.timezone, record.anchor, after)
    return replace(record, next_at=found.at, gap=found.gap)


def wanted_at(record: Cron, now: int) -> int | None:
    """When the entry has to be looked at again.

    A waiting occurrence is looked after at once at first, then at an eighth of the time that it has waited.
    """
    times = [at for at in (record.next_at, record.gap.at if record.gap is not None else None) if at is not None]
    if record.waiting:
        waited = now - record.waiting[0].at
        times.append(now + min(max(waited // 8, _RECHECK_MS), _RECHECK_MOST_MS))
    return min(times, default=None)


def timed(old: Cron | None, new: Cron, moment: Moment, *, fired: str | None = None, ttl_s: int | None = None) -> Step:
    """The commit of `new`: keeps the live timer if it is set for the right time, else replaces it.

    `fired` is the op of the due message in hand: that timer is spent.
    """
    live = old.timer if old is not None and old.timer is not None and old.timer.op != fired else None
    at = wanted_at(new, moment.now)
    if live is not None and live.at == at:
        return Step(new, ttl_s=ttl_s)
    arm = None if at is None else CronTimer(moment.op, at)
    return Step(replace(new, timer=arm), arm, live.op if live is not None else None, ttl_s=ttl_s)

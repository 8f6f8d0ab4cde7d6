"""How long a finished job's record and its result stay."""

from __future__ import annotations

from typing import Final

from ojs_engine.domain.job import Job, Retention, State
from ojs_engine.domain.unique import kept_s

_DAY_S: Final = 86_400

RETENTION_S: Final = {
    State.COMPLETED: 7 * _DAY_S,
    State.CANCELLED: 7 * _DAY_S,
    State.DISCARDED: 30 * _DAY_S,
}
DEAD_LETTER_S: Final = 180 * _DAY_S
_DEFAULT: Final = Retention()
TOMBSTONE_S: Final = 3_600
"""Also the least that any record may have: a hint that is still on its way must find the record it speaks of."""


def _asked_s(job: Job) -> int:
    """What the configuration of its queue said when the job was pushed, else the default."""
    kept = job.retention or _DEFAULT
    match job.state:
        case State.DISCARDED if job.dead_letter:
            asked, default = kept.dead_letter_s, DEAD_LETTER_S
        case State.DISCARDED:
            asked, default = kept.discarded_s, RETENTION_S[job.state]
        case State.CANCELLED:
            asked, default = kept.cancelled_s, RETENTION_S[job.state]
        case _:
            asked, default = kept.completed_s, RETENTION_S[job.state]
    return default if asked is None else asked


def retention_s(job: Job) -> int | None:
    """Seconds until the record of a terminal job or tombstone leaves by itself; None keeps it for ever."""
    if job.deleted:
        return TOMBSTONE_S
    if job.result_ttl_s == -1:
        return None
    return max(_asked_s(job), TOMBSTONE_S, job.result_ttl_s or 0, kept_s(job))


def left_s(job: Job, now: int) -> int | None:
    """Return the seconds for which the record of a job that is over still has to stay; None for ever."""
    whole = retention_s(job)
    if whole is None:
        return None
    ended_at = job.completed_at or job.cancelled_at or job.discarded_at or now
    return max(whole - max(now - ended_at, 0) // 1_000, TOMBSTONE_S)


def result_kept_s(job: Job) -> int | None:
    """Seconds for which a completed job's result can be read: its own `result_ttl`, else as long as the job. None: for ever."""
    if job.result_ttl_s is None:
        return retention_s(job)
    return None if job.result_ttl_s < 0 else job.result_ttl_s


def result_expires_at(job: Job) -> int | None:
    """When the result leaves (Unix ms); None if there is none or it stays."""
    if job.result_stored_at is None:
        return None
    kept_s = result_kept_s(job)
    return None if kept_s is None else job.result_stored_at + kept_s * 1_000

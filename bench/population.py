"""What the bucket of a busy system holds: many queues, types, tags, workers and errors, and what makes lists slow.

Half of the jobs are alike (one queue, one type, one tag, one tenant), with a few rare ones among the oldest; the others are
spread as in real life, a few of each kind being used most. They are finished or wait for a time that is far away, and have no
log, so that nothing but the index has work with them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw

from ojs_core.base.ids import new_job_id
from ojs_core.domain.job import Job, JobError, State, Timer

ALIKE: Final = "everything"
"""Queue, type, tag and tenant of half of the jobs."""
RARE: Final = 7
QUEUES: Final = tuple(f"shop.{number}" for number in range(1_000))
TYPES: Final = tuple(f"{area}.{number}" for area in ("mail", "report", "image", "bill", "sync") for number in range(10))
TAGS: Final = ("night", "eu", "us", "vip", "bulk", "import", "export", "trial")
ERRORS: Final = ("Timeout", "Refused", "NotFound", "Crashed", "OutOfMemory")
_WORKERS: Final = 200
_TENANTS: Final = 100
_NAMES: Final = 5_000
_SPAN_MS: Final = 7 * 86_400_000
_LATER_MS: Final = 30 * 86_400_000
_FATES: Final = (
    (State.COMPLETED, 74),
    (State.DISCARDED, 12),
    (State.CANCELLED, 5),
    (State.SCHEDULED, 7),
    (State.PENDING, 2),
)
_STATES: Final = tuple(state for state, share in _FATES for _ in range(share))
_PRIORITIES: Final = (0, 0, 0, 0, 0, 0, 5, -5)


def words(number: int) -> str:
    """The name that stands in the arguments of one job in 5,000, about."""
    return f"name{number % _NAMES:04d}"


def population(number: int, now: int, seed: int = 1) -> Iterator[Job]:
    """`number` jobs of the week before `now` (Unix ms), the oldest first. Equal seeds give equal jobs, but for ids."""
    chance = random.Random(seed)
    for place in range(number):
        created_at = now - _SPAN_MS + place * _SPAN_MS // number
        yield _job(place, created_at, now, chance)


def _job(place: int, created_at: int, now: int, chance: random.Random) -> Job:
    # Few calls: a million jobs have to be made.
    roll, skewed, bits = chance.random(), chance.random() ** 3, chance.getrandbits(30)
    state = _STATES[int(roll * len(_STATES))]
    alike = bits & 1 == 0
    tags: tuple[str, ...] = (ALIKE,) if alike else (TAGS[bits >> 1 & 7],) if bits & 16 else ()
    if place < RARE:
        tags = (*tags, "rare")
    tenant = ALIKE if alike else f"tenant-{int(skewed * _TENANTS)}"
    members: dict[str, Any] = {}
    if state in (State.COMPLETED, State.DISCARDED):
        worker = "worker-0" if alike else f"worker-{bits % _WORKERS}"
        members |= {"attempt": 1, "worker": worker, "started_at": created_at + 20}
    if state is State.COMPLETED:
        members["completed_at"] = created_at + 50
    elif state is State.CANCELLED:
        members["cancelled_at"] = created_at + 50
    elif state is State.DISCARDED:
        error_type = ERRORS[0] if alike else ERRORS[bits % len(ERRORS)]
        error = JobError(code="handler_error", type=error_type, message="no", attempt=1, at=created_at + 50)
        # A million jobs have nearly as many as a queue keeps by default.
        members |= {"discarded_at": created_at + 50, "error": error, "dead_letter": bits % 14 == 0}
    elif state is State.SCHEDULED:
        later = now + _LATER_MS + bits % _LATER_MS
        members |= {"scheduled_at": later, "timer": Timer("bench", later, "scheduler")}
    if state is State.COMPLETED and bits % 20 == 0:
        members["scheduled_at"] = created_at + 10
    return Job(
        id=new_job_id(created_at),
        type=ALIKE if alike else TYPES[int(skewed * len(TYPES) + bits) % len(TYPES)],
        args=Raw(f'[{{"to":"user{bits % 90_000}@example.org","template":"welcome","name":"{words(bits >> 7)}"}}]'.encode()),
        state=state,
        queue=ALIKE if alike else QUEUES[int(skewed * len(QUEUES))],
        priority=_PRIORITIES[bits >> 5 & 7],
        meta=Raw(f'{{"tenant":"{tenant}","order":"{bits:x}"}}'.encode()),
        tags=tags,
        created_at=created_at,
        enqueued_at=created_at,
        **members,
    )

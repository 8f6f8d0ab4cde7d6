"""Job records without their jobs' lives: what a bucket holds after a while, stored directly and fast."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import cycle
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.ids import new_job_id
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment
from ojs_engine.jetstream.api import parse_ack
from ojs_engine.jetstream.connection import Failed, ReplyOrFailure
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.store import Store

QUEUES: Final = tuple(f"records-{number}" for number in range(10))
TYPES: Final = ("mail.send", "report.make", "image.scale")
_IN_FLIGHT: Final = 500
_TIMEOUT_S: Final = 10.0
_ANYONE: Final = JobHolder()
_FATES: Final = ("completed",) * 5 + ("cancelled", "discarded", "dead", "scheduled", "pending")


def draft(job_id: str, queue: str, *, state: State = State.AVAILABLE, job_type: str = TYPES[0]) -> Job:
    return Job(id=job_id, type=job_type, args=Raw(b"[1]"), state=state, queue=queue)


def records(number: int, now: int) -> Iterator[Job]:
    """`number` jobs in ten queues: half of them completed, a tenth dead letters, none of them ready to be fetched.

    `now` is Unix ms; the jobs were created in the seconds before.
    """
    kinds = cycle([_life(fate, queue, job_type, now) for queue in QUEUES for job_type in TYPES for fate in _FATES])
    for place, job in zip(range(number), kinds, strict=False):
        created_at = now - 60_000 + place * 60_000 // number
        yield replace(job, id=new_job_id(created_at), created_at=created_at)


def _life(fate: str, queue: str, job_type: str, now: int) -> Job:
    """A job at the end of its life, or waiting for a time that is far away."""
    job_id = new_job_id(now)
    if fate == "scheduled":
        later = replace(draft(job_id, queue, job_type=job_type), scheduled_at=now + 86_400_000)
        return transitions.push(later, _moment(now)).job
    if fate == "pending":
        return transitions.push(draft(job_id, queue, state=State.PENDING, job_type=job_type), _moment(now)).job
    pushed = transitions.push(draft(job_id, queue, job_type=job_type), _moment(now)).job
    if fate == "cancelled":
        return transitions.cancel(pushed, _moment(now)).job
    active = transitions.claim(pushed, "bench", None, _moment(now)).job
    if fate == "completed":
        return transitions.ack(active, NOTHING, _ANYONE, _moment(now)).job
    failure = Failure(message="no", action="DEAD_LETTER" if fate == "dead" else "DISCARD")
    return transitions.nack(active, failure, _ANYONE, _moment(now)).job


def _moment(now: int) -> Moment:
    return Moment(now, new_job_id(now))


async def store_records(store: Store, jobs: Iterable[Job]) -> None:
    """Store them in a bucket. Raises OSError when one of them is not taken."""
    waiting: list[asyncio.Future[ReplyOrFailure]] = []
    for job in jobs:
        waiting.append(store.nats.request(store.config.job(job.id), encode_job(job), timeout_s=_TIMEOUT_S))
        if len(waiting) == _IN_FLIGHT:
            await _acknowledged(waiting)
            waiting.clear()
    await _acknowledged(waiting)


async def _acknowledged(waiting: Iterable[asyncio.Future[ReplyOrFailure]]) -> None:
    for answer in waiting:
        outcome = await answer
        if isinstance(outcome, Failed):
            raise OSError(f"a record was not stored: {outcome.reason}")
        if (error := parse_ack(outcome.data).error) is not None:
            raise OSError(f"a record was refused: {error}")

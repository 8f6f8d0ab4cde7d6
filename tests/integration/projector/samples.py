"""What the tests of the projector share: whole lives of jobs, and the plain way to find out what there is."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import pytest
from msgspec import Raw

from integration.samples import ANYONE, acked, draft, failed, fetch, requeued
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Failure, Moment, Transition, nack
from ojs_engine.jetstream.event_reader import StoredEvent
from ojs_engine.store.store import Store
from ojs_features.statistics.keeper import StatisticsWriter
from ojs_index.asking.client import Queries, QueryTimings
from ojs_projector.projector import Projector, ProjectorTimings
from support.events import all_events_of
from support.truth import all_events, all_jobs, counts_of
from support.waiting import PATIENCE_S


def dead(job: Job, moment: Moment) -> Transition:
    return nack(job, Failure(message="no", action="DEAD_LETTER"), ANYONE, moment)


def completed(job: Job, moment: Moment) -> Transition:
    return transitions.ack(job, Raw(b'{"ok":true}'), ANYONE, moment)


ENDS = (acked, completed, failed, requeued, dead, transitions.cancel, None)


async def live(store: Store, queue: str, number: int) -> list[str]:
    """Push jobs, fetch them, and end each in another way; returns their ids."""
    ids = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(number)]
    taken: list[Job] = []
    while len(taken) < number:
        taken += await fetch(store, queue, count=50, worker="w1")
    ends = [(job, ENDS[n % len(ENDS)]) for n, job in enumerate(taken)]
    await asyncio.gather(*(store.jobs.change(job.id, end) for job, end in ends if end is not None))
    return ids


async def lives(store: Store, number: int, queues: Sequence[str] = ("a", "b.c")) -> list[str]:
    """`number` lives in each queue, side by side."""
    found = await asyncio.gather(*(live(store, queue, number) for queue in queues))
    return [job_id for ids in found for job_id in ids]


async def counted(store: Store) -> dict[str, dict[str, int]]:
    """Numbers by queue and state, counted over every record."""
    return counts_of(await all_jobs(store))


async def assert_events_complete(store: Store, ids: Sequence[str], *, ignoring: str | None = None) -> None:
    """Each job's events are those of its log, all of them, in order, once each."""
    by_job: defaultdict[str, list[StoredEvent]] = defaultdict(list)
    for event in await all_events(store):
        if event.type != ignoring:
            by_job[event.subject_id].append(event)
    for job_id in ids:
        job = await store.jobs.get(job_id)
        expected = [event.type for entry in job.transitions for event in all_events_of(job, entry)]
        assert [event.type for event in by_job[job_id]] == expected, job_id


async def crash(projector: Projector) -> None:
    """End a projector as SIGKILL would: nothing is finished, given up or said."""
    relay, answers = projector._relay, projector._answers
    keepers = [keeper for keeper in projector._keepers if isinstance(keeper, StatisticsWriter)]
    assert relay is not None
    assert answers is not None
    for task in [
        *projector._tasks,
        relay._task,
        *(keeper._task for keeper in keepers),
        *([relay._term._task] if relay._term else []),
    ]:
        if task is not None:
            task.cancel()
    await answers.stop()
    for nats in projector._connections:
        await nats.close()
    relay._term = None


def patient(store: Store) -> Queries:
    """Ask projectors, and wait for their answers as long as a busy machine may take."""
    return Queries(store, QueryTimings(wait_s=PATIENCE_S))


def projecting(*timings: ProjectorTimings) -> pytest.MarkDecorator:
    """Give a test's projectors other times."""
    return pytest.mark.parametrize("projector_timings", timings, ids=[f"timed-{number}" for number, _ in enumerate(timings)])

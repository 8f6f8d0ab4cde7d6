from __future__ import annotations

import asyncio

import pytest

from integration.samples import acked, draft, fetch, refusal
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.store.store import Store
from ojs_features.progress.rules import ProgressRecord, Report
from ojs_features.progress.store import JobProgress
from support.waiting import eventually


class Heard:
    """What was told, in order."""

    def __init__(self) -> None:
        self.fractions: list[float | None] = []

    def __call__(self, _job: Job, progress: ProgressRecord) -> None:
        self.fractions.append(progress.fraction)


async def active(store: Store, queue: str, **members: object) -> Job:
    await store.enqueue.push(draft(queue=queue, **members))
    [job] = await fetch(store, queue, worker="w")
    return job


async def fraction(store: Store, job_id: str) -> float | None:
    _, progress = await store.of(JobProgress).get(job_id)
    return None if progress is None else progress.fraction


async def test_a_report_is_there_at_once_through_every_gateway(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    assert await fraction(other, job.id) is None
    heard = Heard()
    _, progress, accepted = await store.of(JobProgress).report(job.id, Report(fraction=0.25), JobHolder(), heard)
    assert accepted
    assert progress is not None
    assert await fraction(other, job.id) == progress.fraction == 0.25
    assert heard.fractions == [0.25]


async def test_of_what_comes_within_a_second_the_latest_is_stored(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    heard = Heard()
    for percent in range(1, 51):
        _, progress, accepted = await store.of(JobProgress).report(job.id, Report(fraction=percent / 100), JobHolder(), heard)
        assert accepted
        assert progress is not None
        assert progress.fraction == percent / 100

    async def latest() -> bool:
        return await fraction(other, job.id) == 0.5

    await eventually(latest)
    assert heard.fractions[0] == 0.01
    assert heard.fractions[-1] == 0.5
    assert len(heard.fractions) <= 5


async def test_who_reports_reads_its_own_report_at_once(store: Store, queue: str) -> None:
    job = await active(store, queue)
    for number in (0.1, 0.2, 0.3):
        await store.of(JobProgress).report(job.id, Report(fraction=number), JobHolder(), Heard())
        assert await fraction(store, job.id) == number


@pytest.mark.usefixtures("own_stores")
async def test_what_is_still_to_be_stored_is_stored_when_the_process_stops(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    for number in (0.1, 0.2, 0.3):
        await store.of(JobProgress).report(job.id, Report(fraction=number), JobHolder(), Heard())
    await store.of(JobProgress).close()
    assert await fraction(other, job.id) == 0.3


async def test_a_report_renews_the_lease_as_a_heartbeat_does(store: Store, queue: str) -> None:
    job = await active(store, queue, visibility_timeout_ms=2_000)
    before = job.visible_until
    assert before is not None

    async def renewed() -> bool:
        found, _, _ = await store.of(JobProgress).report(job.id, Report(fraction=0.5), JobHolder(), Heard())
        return (found.visible_until or 0) > before

    await eventually(renewed)


@pytest.mark.parametrize("holder", [JobHolder("another"), JobHolder(None, 7)])
async def test_who_does_not_hold_the_job_changes_nothing(store: Store, queue: str, holder: JobHolder) -> None:
    job = await active(store, queue)
    await store.of(JobProgress).report(job.id, Report(fraction=0.5), JobHolder(job.worker, 1), Heard())
    heard = Heard()
    _, progress, accepted = await store.of(JobProgress).report(job.id, Report(fraction=0.9), holder, heard)
    assert not accepted
    assert progress is not None
    assert progress.fraction == 0.5
    assert heard.fractions == []


async def test_progress_ends_with_its_attempt_and_is_whole_once_the_job_is_done(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    await store.of(JobProgress).report(job.id, Report(fraction=0.4), JobHolder(), Heard())
    await store.jobs.change(job.id, acked)
    assert await fraction(store, job.id) == 1.0
    _, progress, accepted = await store.of(JobProgress).report(job.id, Report(fraction=0.5), JobHolder("late"), Heard())
    assert not accepted
    assert progress is not None
    assert progress.fraction == 1.0
    untold = await active(store, queue)
    await store.jobs.change(untold.id, acked)
    assert await fraction(other, untold.id) is None


async def test_a_job_that_is_not_there_has_none(store: Store) -> None:
    nobody = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    with refusal("not_found"):
        await store.of(JobProgress).get(nobody)
    with refusal("not_found"):
        await store.of(JobProgress).report(nobody, Report(fraction=0.5), JobHolder(), Heard())


async def test_two_gateways_that_report_at_once_keep_the_highest(store: Store, other: Store, queue: str) -> None:
    job = await active(store, queue)
    numbers = [number / 20 for number in range(1, 21)]
    await asyncio.gather(
        *(
            one.of(JobProgress).report(job.id, Report(fraction=number), JobHolder(), Heard())
            for number, one in zip(numbers, [store, other] * 10, strict=True)
        )
    )

    async def whole() -> bool:
        return await fraction(store, job.id) == 1.0

    await eventually(whole)

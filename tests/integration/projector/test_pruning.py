"""Dead letters beyond the number that a queue keeps: the oldest go, never one too many, whoever else is at work."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from integration.projector.conftest import StartProjector
from integration.projector.samples import assert_events_complete, dead, patient, projecting
from integration.samples import configure, draft, fetch
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import RestoreMark, released, waiting_for_release
from ojs_engine.store.store import Store
from ojs_index.asking.client import Barrier
from ojs_index.asking.messages import DeadLettersAsk
from ojs_index.safety_net.pruning import Pruner, PruningTimings
from ojs_projector.projector import Projector, ProjectorTimings
from support.truth import all_events
from support.waiting import PATIENCE_S, eventually


@pytest.fixture
def projector_timings() -> ProjectorTimings:
    """Rounds begin when a test says so."""
    return ProjectorTimings(wait_s=PATIENCE_S, pruning=PruningTimings(round_ms=86_400_000))


def pruner(
    projector: Projector, max_count: int, *, leading: bool | None = True, timings: PruningTimings | None = None
) -> Pruner:
    """One that takes itself for the leader, or leaves it to the relay."""
    assert projector._model is not None
    relay = projector._relay
    assert relay is not None
    return Pruner(
        projector._store,
        projector._model,
        projector.reached,
        lambda: relay.leading if leading is None else leading,
        max_count,
        timings or PruningTimings(),
    )


async def dead_letters(store: Store, queue: str, number: int) -> list[Job]:
    """The oldest first."""
    for _ in range(number):
        await store.enqueue.push(draft(queue=queue))
    taken: list[Job] = []
    while len(taken) < number:
        taken += await fetch(store, queue, count=number - len(taken))
    return [(await store.jobs.change(job.id, dead)).after for job in taken]


async def kept(store: Store, queue: str) -> list[str]:
    """Ids of the dead letters that are left, the oldest first."""
    page = await patient(store).dead_letters(DeadLettersAsk(queue=queue, limit=1_000))
    return [row.id for row in reversed(page.jobs)]


async def indexed(*projectors: Projector) -> None:
    """Each of them knows of everything that was stored."""
    sequence = await Barrier(projectors[0]._store).sequence()
    for projector in projectors:
        assert await projector.reached.until(sequence, 60.0)


def in_order(jobs: list[Job]) -> list[str]:
    return [job.id for job in sorted(jobs, key=lambda job: (job.discarded_at or 0, job.id))]


async def test_the_oldest_beyond_the_number_are_deleted_and_told_of(store: Store, projector: Projector) -> None:
    jobs = await dead_letters(store, "q", 7)
    beside = await dead_letters(store, "beside", 3)
    await indexed(projector)
    assert await pruner(projector, 3).look() is False
    assert await kept(store, "q") == in_order(jobs)[-3:]
    assert await kept(store, "beside") == in_order(beside)
    gone = in_order(jobs)[:4]
    assert {(await store.records.leader(job_id)).job for job_id in gone} == {None}
    await patient(store).until_relayed()
    events = [event for event in await all_events(store) if event.type == "dead_letter.pruned"]
    assert sorted(event.subject_id for event in events) == sorted(gone)
    await assert_events_complete(store, [job.id for job in jobs if job.id not in gone])


async def test_each_queue_keeps_what_it_is_told_to(store: Store, projector: Projector) -> None:
    for queue, number in (("two", 2), ("all", 0)):
        await configure(store, queue, dead_letter_max=number)
    for queue in ("two", "all", "other"):
        await dead_letters(store, queue, 5)
    one = pruner(projector, 3)

    async def known() -> bool:
        await one._store.queues.settings("two")
        return one._store.queues.config("two").dead_letter_max == 2

    await eventually(known)
    await indexed(projector)
    await one.look()
    assert [len(await kept(store, queue)) for queue in ("two", "all", "other")] == [2, 5, 3]


async def test_in_a_restored_system_all_stay_until_its_release(store: Store, projector: Projector) -> None:
    """The number that a queue keeps is a setting of the projector's, and may be another one than in the original."""
    jobs = await dead_letters(store, "q", 3)
    mark = RestoreMark(namespace="older", taken_at=1, at=2)
    await store.queues.change(MAINTENANCE, lambda old, moment: waiting_for_release(old, moment, mark))
    await indexed(projector)
    assert await pruner(projector, 1).look() is False
    assert await kept(store, "q") == in_order(jobs)
    await store.queues.change(MAINTENANCE, released)
    assert await pruner(projector, 1).look() is False
    assert await kept(store, "q") == in_order(jobs)[-1:]


async def test_one_that_was_retried_meanwhile_stays(store: Store, projector: Projector) -> None:
    jobs = await dead_letters(store, "q", 4)
    one = pruner(projector, 1)
    await indexed(projector)
    surplus = one._surplus()
    assert surplus is not None
    oldest, second, _, _ = in_order(jobs)
    await store.jobs.revive(oldest, transitions.retry_by_hand)
    await store.jobs.revive(second, transitions.retry_by_hand)
    for job in await fetch(store, "q", count=2):
        if job.id == second:
            await eventually(lambda: store.clock.now() > (jobs[-1].discarded_at or 0))
            await store.jobs.change(job.id, dead)  # the newest of all now
    until = asyncio.get_running_loop().time() + 5
    assert await one._delete(*surplus, until) is True
    assert await kept(store, "q") == [in_order(jobs)[-1], second]
    assert (await store.jobs.get(oldest)).state is State.ACTIVE


async def test_two_at_once_and_people_between_never_take_one_too_many(store: Store, other_projectors: list[Projector]) -> None:
    jobs = in_order(await dead_letters(store, "q", 170))
    await indexed(*other_projectors)
    pruners = [pruner(projector, 50) for projector in other_projectors]

    async def people() -> None:
        for job_id in jobs[40:50]:
            with contextlib.suppress(OjsError):  # it is gone already
                await store.jobs.revive(job_id, transitions.retry_by_hand)

    async def nothing_is_left_over() -> bool:  # on a slow machine a look ends before its work does
        return not any(await asyncio.gather(*(one.look() for one in pruners for _ in range(2))))

    await asyncio.gather(eventually(nothing_is_left_over), people())
    assert await kept(store, "q") == jobs[-50:]


@pytest.fixture
async def other_projectors(start_projector: StartProjector) -> list[Projector]:
    return [await start_projector(), await start_projector(in_memory=True)]


async def test_what_was_seen_too_long_ago_is_not_acted_on(store: Store, projector: Projector) -> None:
    jobs = await dead_letters(store, "q", 4)
    await indexed(projector)
    assert await pruner(projector, 1, timings=PruningTimings(fresh_s=-1.0)).look() is True
    assert len(await kept(store, "q")) == len(jobs)


async def test_only_the_leader_prunes_and_not_by_half_an_index(store: Store, projector: Projector) -> None:
    jobs = await dead_letters(store, "q", 4)
    await indexed(projector)
    await pruner(projector, 1, leading=False).look()
    assert projector._model is not None
    target, projector._model.target = projector._model.target, 1 << 60
    await pruner(projector, 1).look()
    projector._model.target = target
    assert len(await kept(store, "q")) == len(jobs)


@projecting(ProjectorTimings(wait_s=PATIENCE_S, pruning=PruningTimings(round_ms=200)))
async def test_a_projector_prunes_by_itself(store: Store, start_projector: StartProjector) -> None:
    projectors = [await start_projector(dead_letters=2) for _ in range(2)]
    jobs = await dead_letters(store, "q", 5)

    async def pruned() -> bool:
        return len(await kept(store, "q")) == 2

    await eventually(pruned)
    assert await kept(store, "q") == in_order(jobs)[-2:]
    stats = await patient(store).dead_letter_stats("q")
    assert stats.max_count == 2
    assert stats.next_prune_at is not None
    assert sorted(projector.status().relaying for projector in projectors) == [False, True]

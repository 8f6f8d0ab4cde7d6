"""What the store promises of jobs, kept by the real one on nats-server and by the fake that unit tests stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, cast

import msgspec
import pytest
from msgspec import Raw

import ojs_reaper
import ojs_scheduler
from integration.samples import ANYONE, acked, draft, fetch, refusal, requeued
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, Retry, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment, RetryOverride, Transition
from ojs_engine.domain.unique import keyed
from ojs_engine.store.store import Store
from ojs_runtime.settings import Settings
from support.fake_store import FakeStore
from support.outside import standing
from support.waiting import eventually

SOON_MS = 400
"""A time that is waited for."""
Decide = Callable[[Job, Moment], Transition]


class World(Protocol):
    """A store, and what happens in it by itself."""

    store: Store

    async def becomes(self, job: Job, state: State) -> Job:
        """Let time pass until the job is in a state."""
        ...

    def standing(self) -> AbstractContextManager[None]:
        """No time passes for the store while the block runs."""
        ...


class Real:
    def __init__(self, store: Store) -> None:
        self.store = store

    async def becomes(self, job: Job, state: State) -> Job:
        async def reached() -> bool:
            return (await self.store.jobs.get(job.id)).state is state

        await eventually(reached, 60.0)
        return await self.store.jobs.get(job.id)

    def standing(self) -> AbstractContextManager[None]:
        return standing(self.store)


class Fake:
    def __init__(self) -> None:
        self._fake = FakeStore()
        self.store = cast("Store", self._fake)

    async def becomes(self, job: Job, state: State) -> Job:
        self._fake.run_due(self._fake.clock.now() + SOON_MS)
        found = await self.store.jobs.get(job.id)
        assert found.state is state
        return found

    def standing(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> World:
    return Fake() if request.param == "fake" else Real(request.getfixturevalue("store"))


@pytest.fixture
async def services(world: World) -> AsyncIterator[None]:
    """Somebody who does what is due; the fake does it itself."""
    if isinstance(world, Fake):
        yield
        return
    running = [build(world.store, Settings()) for build in (ojs_scheduler.build, ojs_reaper.build)]
    for service in running:
        await service.start()
    yield
    for service in running:
        await service.stop()


def ids(jobs: list[Job]) -> list[str]:
    return [job.id for job in jobs]


def failing(**failure: Any) -> Decide:
    return lambda job, moment: transitions.nack(job, Failure(message="no", **failure), ANYONE, moment)


def held_by(worker: str | None, attempt: int | None = None) -> Decide:
    return lambda job, moment: transitions.ack(job, NOTHING, JobHolder(worker, attempt), moment)


async def pushed(world: World, queue: str, **members: Any) -> Job:
    return await world.store.enqueue.push(draft(queue=queue, **members))


async def claimed(world: World, queue: str, worker: str | None = "w", **members: Any) -> Job:
    await pushed(world, queue, **members)
    [job] = await fetch(world.store, queue, worker=worker)
    return job


# Pushing and fetching


async def test_a_pushed_job_reads_back_as_it_was_answered(world: World, queue: str) -> None:
    job = await pushed(world, queue)
    assert (job.state, job.attempt) == (State.AVAILABLE, 0)
    assert await world.store.jobs.get(job.id) == job


async def test_what_nobody_has_pushed_is_not_found(world: World) -> None:
    with refusal("not_found"):
        await world.store.jobs.get(draft().id)


async def test_an_id_that_is_taken_is_a_duplicate_and_changes_nothing(world: World, queue: str) -> None:
    job = await pushed(world, queue)
    with refusal("duplicate"):
        await pushed(world, f"{queue}.other", id=job.id)
    assert await world.store.jobs.get(job.id) == job


async def test_the_id_of_a_removed_job_is_free_and_its_log_goes_on(world: World, queue: str) -> None:
    job = await pushed(world, queue)
    await world.store.jobs.change(job.id, transitions.cancel)
    await world.store.jobs.change(job.id, transitions.remove)
    with refusal("not_found"):
        await world.store.jobs.get(job.id)
    again = await pushed(world, queue, id=job.id)
    assert [(entry.n, entry.event) for entry in again.transitions] == [
        (1, "pushed"),
        (2, "cancelled"),
        (3, "removed"),
        (4, "pushed"),
    ]


async def test_queues_come_from_left_to_right_priorities_from_high_to_low_and_equals_in_order(world: World, queue: str) -> None:
    left, right = f"{queue}.left", f"{queue}.right"
    high, first, low, second = [
        await pushed(world, name, priority=priority) for name, priority in ((right, 9), (left, 0), (left, -1), (left, 0))
    ]
    taken = await fetch(world.store, left, right, count=3)
    assert ids(taken) == ids([first, second, low])
    assert ids(await fetch(world.store, left, right, count=3)) == [high.id]
    assert await fetch(world.store, left, right) == []


async def test_a_claim_counts_an_attempt_and_ends_with_its_lease(world: World, queue: str) -> None:
    await pushed(world, queue)
    [job] = await fetch(world.store, queue, worker="w", lease_ms=5_000)
    assert (job.state, job.attempt, job.worker) == (State.ACTIVE, 1, "w")
    assert (job.visible_until or 0) - (job.started_at or 0) == 5_000
    assert await fetch(world.store, queue) == []


async def test_a_job_whose_time_is_over_is_not_handed_out(world: World, queue: str) -> None:
    late = await pushed(world, queue, expires_at=world.store.clock.now() - 1)
    good = await pushed(world, queue)
    assert ids(await fetch(world.store, queue, count=2)) == [good.id]
    found = await world.store.jobs.get(late.id)
    assert (found.state, found.error and found.error.type) == (State.DISCARDED, "expired")


async def test_a_pending_job_waits_for_its_activation(world: World, queue: str) -> None:
    job = await pushed(world, queue, state=State.PENDING)
    assert await fetch(world.store, queue) == []
    await world.store.jobs.change(job.id, transitions.activate)
    assert ids(await fetch(world.store, queue)) == [job.id]


# Acks and nacks


async def test_an_ack_completes_a_job_once(world: World, queue: str) -> None:
    job = await claimed(world, queue)
    change = await world.store.jobs.change(job.id, acked)
    assert (change.before, change.after.state) == (job, State.COMPLETED)
    with refusal("conflict"):
        await world.store.jobs.change(job.id, acked)
    assert await world.store.jobs.get(job.id) == change.after


@pytest.mark.parametrize(("worker", "attempt"), [("thief", None), ("w", 2), (None, 7)])
async def test_who_does_not_hold_a_job_ends_nothing(world: World, queue: str, worker: str | None, attempt: int | None) -> None:
    job = await claimed(world, queue)
    with refusal("conflict"):
        await world.store.jobs.change(job.id, held_by(worker, attempt))
    assert await world.store.jobs.get(job.id) == job


@pytest.mark.usefixtures("services")
async def test_a_failed_job_is_tried_again_after_its_back_off(world: World, queue: str) -> None:
    job = await claimed(world, queue, retry=Retry(max_attempts=2, initial_interval_ms=SOON_MS, jitter=False))
    with world.standing():
        failed = (await world.store.jobs.change(job.id, failing())).after
        assert (failed.state, failed.next_attempt_at) == (State.RETRYABLE, world.store.clock.now() + SOON_MS)
        assert await fetch(world.store, queue) == []
    await world.becomes(job, State.AVAILABLE)
    [again] = await fetch(world.store, queue)
    assert (again.id, again.attempt) == (job.id, 2)
    assert (await world.store.jobs.change(job.id, failing())).after.state is State.DISCARDED


async def test_a_requeued_job_joins_the_end_of_its_queue_and_has_used_nothing_up(world: World, queue: str) -> None:
    job = await claimed(world, queue)
    other = await pushed(world, queue)
    await world.store.jobs.change(job.id, requeued)
    taken = await fetch(world.store, queue, count=2)
    assert [(one.id, one.attempt - one.uncharged) for one in taken] == [(other.id, 1), (job.id, 1)]


async def test_a_dead_letter_begins_a_new_life_by_hand(world: World, queue: str) -> None:
    job = await claimed(world, queue)
    dead = (await world.store.jobs.change(job.id, failing(action="DEAD_LETTER"))).after
    assert (dead.state, dead.dead_letter) == (State.DISCARDED, True)
    again = await world.store.jobs.revive(job.id, lambda job, moment: transitions.retry_discarded(job, RetryOverride(), moment))
    assert (again.after.state, again.after.attempt, again.after.generation) == (State.AVAILABLE, 0, 1)
    assert ids(await fetch(world.store, queue)) == [job.id]


async def test_a_cancelled_job_is_not_handed_out_and_stays_cancelled(world: World, queue: str) -> None:
    job = await pushed(world, queue)
    await world.store.jobs.change(job.id, transitions.cancel)
    assert await fetch(world.store, queue) == []
    with refusal("conflict"):
        await world.store.jobs.change(job.id, transitions.cancel)


# Heartbeats


async def test_a_heartbeat_renews_what_its_worker_holds_and_tells_what_was_cancelled(world: World, queue: str) -> None:
    held, gone, done, others = [await claimed(world, queue) for _ in range(3)] + [await claimed(world, queue, worker="other")]
    await world.store.jobs.change(gone.id, transitions.cancel)
    await world.store.jobs.change(done.id, acked)
    asked = [held.id, gone.id, done.id, others.id, draft().id]
    said = await world.store.jobs.extend(asked, "w", 7_200_000)
    assert (said.extended, said.cancelled) == ([held.id], [gone.id])
    renewed = await world.store.jobs.get(held.id)
    assert said.jobs == [renewed]
    assert (renewed.visible_until or 0) > (held.visible_until or 0)
    assert await world.store.jobs.get(others.id) == others


async def test_a_heartbeat_in_time_writes_nothing(world: World, queue: str) -> None:
    job = await claimed(world, queue)
    assert (await world.store.jobs.extend([job.id], "w", None)).extended == [job.id]
    assert await world.store.jobs.get(job.id) == job


# By itself


@pytest.mark.usefixtures("services")
async def test_a_delayed_job_is_available_when_its_time_has_come(world: World, queue: str) -> None:
    with world.standing():
        job = await pushed(world, queue, scheduled_at=world.store.clock.now() + SOON_MS)
    found = await world.becomes(job, State.AVAILABLE)
    assert (found.enqueued_at or 0) >= (job.scheduled_at or 0)
    assert ids(await fetch(world.store, queue)) == [job.id]


@pytest.mark.usefixtures("services")
async def test_a_job_whose_lease_runs_out_is_somebody_elses(world: World, queue: str) -> None:
    await pushed(world, queue)
    with world.standing():
        [job] = await fetch(world.store, queue, lease_ms=SOON_MS)
    back = await world.becomes(job, State.AVAILABLE)
    assert [error.type for error in back.errors] == ["visibility_timeout"]
    [again] = await fetch(world.store, queue, worker="heir")
    assert (again.id, again.attempt) == (job.id, 2)
    with refusal("conflict"):
        await world.store.jobs.change(job.id, held_by(None, 1))


@pytest.mark.usefixtures("services")
async def test_a_waiting_job_that_expires_is_discarded(world: World, queue: str) -> None:
    job = await pushed(world, queue, expires_at=world.store.clock.now() + SOON_MS)
    found = await world.becomes(job, State.DISCARDED)
    assert (found.error and found.error.type, found.attempt) == ("expired", 0)


async def test_the_end_of_a_job_is_waited_for(world: World, queue: str) -> None:
    job = await claimed(world, queue)
    assert (await world.store.jobs.wait_terminal(job.id, 0.05)).state is State.ACTIVE
    await world.store.jobs.change(job.id, acked)
    assert (await world.store.jobs.wait_terminal(job.id, 60.0)).state is State.COMPLETED


# Unique jobs


def unique(queue: str, on_conflict: str = "reject", **members: Any) -> Job:
    policy = {"keys": ["type", "args"], "on_conflict": on_conflict}
    args = Raw(msgspec.json.encode([queue]))
    return keyed(draft(queue=queue, args=args, unique=Raw(msgspec.json.encode(policy)), **members))


async def test_a_second_one_is_refused_while_the_first_lives(world: World, queue: str) -> None:
    first = await world.store.enqueue.push(unique(queue))
    with refusal("duplicate"):
        await world.store.enqueue.push(unique(queue))
    await fetch(world.store, queue)
    await world.store.jobs.change(first.id, acked)
    second = await world.store.enqueue.push(unique(queue))
    assert second.id != first.id


async def test_a_duplicate_that_is_ignored_is_answered_with_the_first(world: World, queue: str) -> None:
    first = await world.store.enqueue.push(unique(queue))
    assert await world.store.enqueue.push(unique(queue, "ignore")) == first
    assert ids(await fetch(world.store, queue, count=2)) == [first.id]


async def test_a_duplicate_takes_the_place_of_the_first(world: World, queue: str) -> None:
    first = await world.store.enqueue.push(unique(queue))
    second = await world.store.enqueue.push(unique(queue, "replace"))
    assert (await world.store.jobs.get(first.id)).state is State.CANCELLED
    assert ids(await fetch(world.store, queue, count=2)) == [second.id]


async def test_a_dead_letter_whose_fingerprint_is_taken_stays_dead(world: World, queue: str) -> None:
    first = await world.store.enqueue.push(unique(queue))
    await fetch(world.store, queue)
    await world.store.jobs.change(first.id, failing(action="DEAD_LETTER"))
    await world.store.enqueue.push(unique(queue))
    with refusal("duplicate"):
        await world.store.jobs.revive(first.id, lambda job, moment: transitions.retry_discarded(job, RetryOverride(), moment))
    assert (await world.store.jobs.get(first.id)).state is State.DISCARDED

"""Scheduler and reaper at work: what is due happens once, whoever and however many they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

import ojs_reaper
import ojs_scheduler
from integration.samples import acked, delayed, draft, due_subjects, failed, fetch, in_state, put_raw, timed, timers, tokens
from ojs_engine.base.errors import unavailable
from ojs_engine.base.service import Service
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.transitions import Liveness
from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.due.timekeeping import Timekeeper
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Reply, ReplyOrFailure
from ojs_engine.jetstream.due_messages import DueTimings
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.store import Store
from ojs_runtime.settings import Settings
from support.outside import Send, ahead, standing, tapped
from support.waiting import eventually

HOUR = 3_600_000
SECOND = 1_000
SOON = 300
QUICK = Retry(max_attempts=3, initial_interval_ms=200, jitter=False)
Start = Callable[..., Awaitable[Service]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(build, store)`; everything is stopped at the end."""
    services: list[Service] = []

    async def start_one(build: Callable[[Store, Settings], Service], store: Store) -> Service:
        service = build(store, Settings())
        await service.start()
        services.append(service)
        return service

    yield start_one
    await asyncio.gather(*(service.stop() for service in services))


@pytest.fixture
async def crew(start: Start, store: Store, other: Store) -> None:
    """Two schedulers and two reapers, in two processes."""
    for one in (store, other):
        await start(ojs_scheduler.build, one)
        await start(ojs_reaper.build, one)


async def becomes(store: Store, job_id: str, *states: State) -> Job:
    job = await eventually(lambda: in_state(store, job_id, *states))
    assert job is not None
    return job


def events(job: Job) -> list[str]:
    return [entry.event for entry in job.transitions]


async def nothing_due(store: Store, *ids: str) -> bool:
    return not [subject for job_id in ids for subject in await due_subjects(store, job_id)]


# What happens


@pytest.mark.usefixtures("crew")
async def test_delayed_jobs_become_available_once_each(store: Store, queue: str) -> None:
    ids = [(await delayed(store, SECOND + n % 7, queue=queue)).id for n in range(60)]
    jobs = [await becomes(store, job_id, State.AVAILABLE) for job_id in ids]
    assert {tuple(events(job)) for job in jobs} == {("pushed", "promoted")}
    assert all((job.enqueued_at or 0) >= (job.scheduled_at or 0) for job in jobs), "never early"
    assert await tokens(store, queue) == 60
    await eventually(lambda: nothing_due(store, *ids))
    assert [await timers(store, job_id) for job_id in ids] == [[]] * 60


@pytest.mark.usefixtures("crew")
async def test_a_failed_attempt_comes_again_after_its_back_off(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, retry=QUICK))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, failed)
    [again] = await fetch(store, queue, wait_ms=60_000)
    assert (again.id, again.attempt) == (pushed.id, 2)
    assert (again.started_at or 0) >= (again.errors[0].at + 200)


@pytest.mark.usefixtures("crew")
async def test_a_lease_that_runs_out_returns_the_job_once(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, lease_ms=SOON)
    job = await becomes(store, pushed.id, State.AVAILABLE)
    assert [error.type for error in job.errors] == ["visibility_timeout"]
    assert events(job) == ["pushed", "claimed", "lease_expired"]
    assert [found.attempt for found in await fetch(store, queue, count=5)] == [2]


@pytest.mark.usefixtures("crew")
async def test_a_late_ack_after_the_lease_is_refused_or_wins_but_never_both(store: Store, other: Store, queue: str) -> None:
    ids = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(30)]
    with standing(store):
        claimed = await fetch(store, queue, count=30, lease_ms=SOON)
    until = max(job.visible_until or 0 for job in claimed)
    await eventually(lambda: store.clock.now() >= until - 5)
    outcomes = await asyncio.gather(*(store.jobs.change(job_id, acked) for job_id in ids), return_exceptions=True)
    for job_id, outcome in zip(ids, outcomes, strict=True):
        job = await other.jobs.get(job_id)
        if isinstance(outcome, Exception):
            assert events(job) == ["pushed", "claimed", "lease_expired"]
        else:
            assert events(job) == ["pushed", "claimed", "acked"]


@pytest.mark.usefixtures("crew")
async def test_an_attempt_beyond_its_timeout_is_ended(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, timeout_ms=SOON, retry=Retry(max_attempts=1)))
    await fetch(store, queue)
    job = await becomes(store, pushed.id, State.DISCARDED)
    assert events(job) == ["pushed", "claimed", "timed_out"]


@pytest.mark.usefixtures("crew")
async def test_a_job_that_expires_while_it_waits_is_discarded(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, expires_at=store.clock.now() + SOON))
    job = await becomes(store, pushed.id, State.DISCARDED)
    assert events(job) == ["pushed", "expired"]
    assert await fetch(store, queue) == []


async def test_a_job_that_expires_while_it_runs_goes_on(store: Store, queue: str, start: Start) -> None:
    with standing(store):
        pushed = await store.enqueue.push(draft(queue=queue, expires_at=store.clock.now() + SOON))
        near = await store.enqueue.push(draft(queue=f"{queue}.near", expires_at=store.clock.now() + 2 * SOON))
        await fetch(store, queue)
    await start(ojs_reaper.build, store)
    await becomes(store, near.id, State.DISCARDED)
    assert await in_state(store, pushed.id, State.ACTIVE)


async def test_a_stalled_attempt_is_ended_and_a_heartbeat_prevents_it(store: Store, queue: str, start: Start) -> None:
    silent, beating = [await store.enqueue.push(draft(queue=queue, heartbeat_timeout_ms=500, retry=QUICK)) for _ in range(2)]
    await fetch(store, queue, count=2, worker="w")
    with ahead(store, HOUR // 4):  # it has beaten again and again until then
        assert (await store.jobs.extend([beating.id], "w", None)).extended == [beating.id]
    await start(ojs_reaper.build, store)

    async def silent_ended() -> bool:
        return await in_state(store, silent.id, State.ACTIVE) is None

    await eventually(silent_ended)
    assert "stalled" in events(await store.jobs.get(silent.id))
    assert await in_state(store, beating.id, State.ACTIVE)


async def test_a_heartbeat_moves_the_lease_and_the_old_timer_does_nothing(store: Store, queue: str, start: Start) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    near = await store.enqueue.push(draft(queue=f"{queue}.near"))
    await fetch(store, queue, worker="w", lease_ms=SOON)
    await fetch(store, f"{queue}.near", lease_ms=2 * SOON)
    assert (await store.jobs.extend([pushed.id], "w", HOUR)).extended == [pushed.id]
    await start(ojs_reaper.build, store)
    await becomes(store, near.id, State.AVAILABLE)
    assert events(await store.jobs.get(pushed.id)) == ["pushed", "claimed"]


# Messages


async def test_an_early_message_leaves_the_live_timer_and_goes(store: Store, queue: str, start: Start) -> None:
    await start(ojs_scheduler.build, store)
    pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + HOUR))
    await put_raw(store, store.config.due("scheduler", pushed.id), b"")
    await eventually(lambda: nothing_due(store, pushed.id))
    assert pushed.timer is not None
    assert await timers(store, pushed.id) == [pushed.timer.op]
    assert (await store.jobs.get(pushed.id)) == pushed


async def test_a_timer_that_fired_early_is_set_again(store: Store, queue: str, start: Start) -> None:
    pushed = await delayed(store, 1_500, queue=queue)
    assert pushed.timer is not None
    subject = store.config.timer(pushed.id, pushed.timer.op)
    await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": subject})
    assert await timers(store, pushed.id) == []
    await start(ojs_scheduler.build, store)
    await put_raw(store, store.config.due("scheduler", pushed.id), b"")

    async def set_again() -> bool:
        return await timers(store, pushed.id) == [pushed.timer.op if pushed.timer else ""]

    await eventually(set_again)
    job = await becomes(store, pushed.id, State.AVAILABLE)
    assert (job.enqueued_at or 0) >= (pushed.scheduled_at or 0)


async def test_a_message_for_nobody_goes(store: Store, start: Start) -> None:
    await start(ojs_reaper.build, store)
    nobody = draft().id
    await put_raw(store, store.config.due("reaper", nobody), b"")
    await eventually(lambda: nothing_due(store, nobody))


async def test_a_message_for_a_corrupt_record_keeps_nothing_up(store: Store, queue: str, start: Start) -> None:
    broken = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + HOUR))
    await put_raw(store, store.config.job(broken.id), b"{")
    await put_raw(store, store.config.due("scheduler", broken.id), b"")
    pushed = await delayed(store, SOON, queue=queue)
    await start(ojs_scheduler.build, store)
    await becomes(store, pushed.id, State.AVAILABLE)


@timed(workers=WorkerTimes(dead_ms=SOON))
async def test_a_job_that_cannot_be_judged_keeps_no_other_waiting(store: Store, queue: str, start: Start) -> None:
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(6)]
    await fetch(store, queue, worker="broken")
    await fetch(store, queue, count=5, worker="silent")
    bad, *good = [job.id for job in jobs]

    async def stumbles(worker: str, _now: int) -> Liveness:
        if worker == "broken":
            raise ValueError("a bug")
        return Liveness(seen_at=0, covered=True)

    await eventually(lambda: due_subjects(store, good[-1]))  # all are in one batch
    await start(lambda store, _settings: Timekeeper(store, "reaper", stumbles), store)
    for job in good:
        await becomes(store, job, State.AVAILABLE)
    assert await in_state(store, bad, State.ACTIVE)
    assert await due_subjects(store, bad), "it comes back"


async def test_what_was_due_while_nobody_was_there_is_done(store: Store, queue: str, start: Start) -> None:
    pushed = await delayed(store, SOON, queue=queue)
    await eventually(lambda: due_subjects(store, pushed.id))
    await start(ojs_scheduler.build, store)
    assert [job.id for job in await fetch(store, queue, wait_ms=60_000)] == [pushed.id]


@timed(due=DueTimings(ack_wait_s=1))
async def test_a_message_whose_handler_died_after_the_record_gets_its_token_repeated(
    store: Store, other: Store, queue: str, start: Start
) -> None:
    pushed = await delayed(store, SOON, queue=queue)
    handler = other.due_messages("scheduler")

    async def taken() -> bool:
        return pushed.id in {due.job_id for due in await handler.next()}

    await eventually(taken)
    # It stores the record, and dies before the token.
    assert pushed.timer is not None
    moment = other.clock.moment(pushed.timer.at)
    stored = await other.records.leader(pushed.id)
    transition = transitions.due(pushed, moment)
    assert isinstance(transition, transitions.Transition)
    await put_raw(
        other,
        other.config.job(pushed.id),
        encode_job(transition.job),
        f"Nats-Expected-Last-Subject-Sequence: {stored.sequence}\r\n",
    )
    assert await fetch(store, queue) == []
    await start(ojs_scheduler.build, store)
    assert [job.id for job in await fetch(store, queue, wait_ms=60_000)] == [pushed.id]
    await eventually(lambda: nothing_due(store, pushed.id))


@pytest.mark.usefixtures("own_stores")
async def test_a_message_is_kept_until_its_writes_are_stored(store: Store, queue: str, start: Start) -> None:
    pushed = await delayed(store, SOON, queue=queue)
    commit_all = store.committer.commit_all
    refusals = 0

    async def unavailable_once(commits: object) -> object:
        nonlocal refusals
        if commits and not refusals:
            refusals += 1
            return [unavailable("NATS is away") for _ in commits]  # type: ignore[attr-defined]
        return await commit_all(commits)  # type: ignore[arg-type]

    store.committer.commit_all = unavailable_once  # type: ignore[method-assign,assignment]
    await start(ojs_scheduler.build, store)
    await eventually(lambda: refusals)
    assert await due_subjects(store, pushed.id)
    assert [job.id for job in await fetch(store, queue, wait_ms=60_000)] == [pushed.id]


@timed(due=DueTimings(ack_wait_s=1))
async def test_a_message_that_could_not_be_deleted_comes_back_until_it_is(store: Store, queue: str, start: Start) -> None:
    refused = 0
    refusal = b'{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}'

    async def without_leader() -> Reply:
        return Reply(b"", b"", refusal, None)

    def once(_send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        nonlocal refused
        if not subject.startswith("$JS.API.STREAM.MSG.DELETE.") or refused:
            return None
        refused += 1
        return without_leader()

    with tapped(store.nats, once):
        await start(ojs_scheduler.build, store)
        pushed = await delayed(store, SOON, queue=queue)
        await becomes(store, pushed.id, State.AVAILABLE)
        await eventually(lambda: nothing_due(store, pushed.id), 60.0)
    assert refused == 1


async def test_services_may_start_and_stop_at_any_time(store: Store, other: Store, queue: str) -> None:
    now = store.clock.now()
    ids = [(await store.enqueue.push(draft(queue=queue, scheduled_at=now + 10 * n))).id for n in range(100)]
    for turn in range(12):
        service = ojs_scheduler.build((store, other)[turn % 2], Settings())
        await service.start()
        await asyncio.sleep(0.03 * (turn % 3))  # any time
        await service.stop()
    last = ojs_scheduler.build(store, Settings())
    await last.start()
    jobs = [await becomes(store, job_id, State.AVAILABLE) for job_id in ids]
    await last.stop()
    assert {tuple(events(job)) for job in jobs} <= {("pushed", "promoted"), ("pushed",)}
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "scheduler"]

"""What the design rests on in nats-server itself: each rule failed, or would fail, when it was done the other way."""

from __future__ import annotations

import asyncio
import random

import pytest

import ojs_scheduler
from integration.conftest import OpenStore
from integration.samples import draft, due_subjects, fetch, message, new_id, put_raw, subjects, timed, timers
from ojs_engine.domain.job import Job, State, Timer
from ojs_engine.jetstream.api import purge
from ojs_engine.jetstream.due_messages import DueTimings
from ojs_engine.jetstream.headers import ringing
from ojs_engine.store.store import Store
from ojs_runtime.settings import Settings
from support.nats import NatsServer
from support.outside import standing
from support.waiting import eventually

HOUR = 3_600_000


@pytest.fixture
async def own(nats_server: NatsServer, open_store: OpenStore) -> Store:
    return await open_store(nats_server.url)


async def fired(store: Store, job_id: str) -> str | None:
    """The op of the timer whose message is the last that is due for the job."""
    found = await message(store, store.config.due("reaper", job_id))
    return found[1]["Nats-Scheduler"].rpartition(".")[2] if found is not None else None


async def test_a_timer_renewed_around_its_due_time_is_never_lost(own: Store, queue: str) -> None:
    """A subject per arming: firing purges by subject, and would take a replacement on the same one with it."""
    chance = random.Random(10)
    count = 300
    for _ in range(count):
        await own.enqueue.push(draft(queue=queue))
    with standing(own):
        jobs = await fetch(own, queue, count=count, worker="w", lease_ms=2_000)
    assert len(jobs) == count

    async def renew(job: Job) -> None:
        until = (job.visible_until or 0) + chance.uniform(-270, 270)
        await asyncio.sleep(max(0.0, (until - own.clock.now()) / 1000))  # nats-server's own time: nothing else moves it
        assert (await own.jobs.extend([job.id], "w", 600)).extended == [job.id]

    await asyncio.gather(*(renew(job) for job in jobs))
    renewed = {job_id: stored.job for job_id, stored in (await own.records.many([job.id for job in jobs])).items()}

    async def all_fired() -> bool:
        for job_id, job in list(renewed.items()):
            assert job is not None
            assert job.timer is not None
            if await fired(own, job_id) == job.timer.op:
                del renewed[job_id]
        return not renewed

    await eventually(all_fired, every=0.1)
    live = await subjects(own, own.config.records_stream, "ojs.timer.>")
    assert live == {}, "and those that were replaced are gone"


async def test_a_fired_timers_subject_can_be_set_again(own: Store) -> None:
    ids = [new_id() for _ in range(100)]
    now = own.clock.now()
    for job_id in ids:
        await own.committer.rearm(job_id, Timer("op", now + 100, "reaper"))

    async def all_fired() -> bool:
        due = await subjects(own, own.config.records_stream, "ojs.due.>")
        return len(due) == len(ids) and not await timers(own, ids[-1])

    await eventually(all_fired)
    sequences = {job_id: await own.records.leader_raw(own.config.due("reaper", job_id)) for job_id in ids}
    for job_id in ids:
        await own.committer.rearm(job_id, Timer("op", own.clock.now() + 100, "reaper"))

    async def fired_again() -> bool:
        found = [await own.records.leader_raw(own.config.due("reaper", job_id)) for job_id in ids]
        return all(new != sequences[job_id] for new, job_id in zip(found, ids, strict=True))

    await eventually(fired_again)


async def test_setting_a_live_timer_again_changes_nothing(own: Store) -> None:
    job_id = new_id()
    await own.committer.rearm(job_id, Timer("op", own.clock.now() + HOUR, "reaper"))
    before = await message(own, own.config.timer(job_id, "op"))
    await own.committer.rearm(job_id, Timer("op", own.clock.now() + 2 * HOUR, "reaper"))
    assert await message(own, own.config.timer(job_id, "op")) == before


@timed(due=DueTimings(park_s=1))
async def test_handled_messages_do_not_come_back_after_a_kill(own: Store, nats_server: NatsServer, queue: str) -> None:
    scheduler = ojs_scheduler.build(own, Settings())
    await scheduler.start()
    at = own.clock.now() + 200
    ids = [(await own.enqueue.push(draft(queue=queue, scheduled_at=at))).id for _ in range(50)]

    async def all_handled() -> bool:
        jobs = [stored.job for stored in (await own.records.many(ids)).values()]
        due = await subjects(own, own.config.records_stream, "ojs.due.>")
        return not due and all(job is not None and job.state is State.AVAILABLE for job in jobs)

    await eventually(all_handled)
    await scheduler.stop()
    await put_raw(own, own.config.job(new_id()), b"{}")
    before = await own.records.many(ids)
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    assert [await due_subjects(own, job_id) for job_id in ids] == [[]] * len(ids)
    assert await own.due_messages("scheduler").next() == []
    assert await own.records.many(ids) == before


async def test_a_retention_taken_back_holds_over_expiry_and_kill(own: Store, nats_server: NatsServer) -> None:
    """A manual retry writes a record without the TTL that its last revision had."""
    ids = [new_id() for _ in range(30)]
    for job_id in ids:
        await put_raw(own, own.config.job(job_id), b'{"s":"discarded"}', "Nats-TTL: 1s\r\n")
        await put_raw(own, own.config.job(job_id), b'{"s":"available"}')
    control = new_id()
    await put_raw(own, own.config.job(control), b"{}", "Nats-TTL: 1s\r\n")

    async def control_gone() -> bool:
        found = await message(own, own.config.job(control))
        return found is None or not found[0]

    async def all_there() -> bool:
        found = [await message(own, own.config.job(job_id)) for job_id in ids]
        return all(one is not None and one[0] == b'{"s":"available"}' for one in found)

    await eventually(control_gone)
    assert await all_there()
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    assert await all_there()


async def test_a_timer_and_its_cancellation_in_one_message_survive_a_kill(
    own: Store, nats_server: NatsServer, queue: str
) -> None:
    expires_at = own.clock.now() + HOUR
    jobs = [await own.enqueue.push(draft(queue=queue, expires_at=expires_at)) for _ in range(20)]
    running = {job.id for job in await fetch(own, queue, count=10, lease_ms=HOUR)}
    wanted = {own.config.timer(job.id, job.timer.op) for job in jobs if job.timer is not None and job.id not in running}
    assert len(wanted) == 10
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    assert set(await subjects(own, own.config.records_stream, "ojs.timer.>")) == wanted


async def test_a_record_rings_until_it_is_written_again_also_after_a_kill(own: Store, nats_server: NatsServer) -> None:
    running, ended = new_id(), new_id()

    def rings(job_id: str) -> str:
        return ringing(1, own.config.due("reaper", job_id), own.config.ring)

    async def rang(*job_ids: str) -> bool:
        return all([await due_subjects(own, job_id) for job_id in job_ids])

    async def answered() -> None:
        for job_id in (running, ended):
            await purge(own.nats, own.config.records_stream, own.config.due("reaper", job_id))

    for job_id in (running, ended):
        await put_raw(own, own.config.job(job_id), b"x" * 100_000, rings(job_id))
    await eventually(lambda: rang(running, ended))
    found = await message(own, own.config.due("reaper", running))
    assert found is not None
    assert found[0] == b"ring", "not the record, which may be large"
    await put_raw(own, own.config.job(ended), b"{}")
    for _ in range(2):
        await answered()
        await eventually(lambda: rang(running))
        assert not await rang(ended)
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    await answered()
    await eventually(lambda: rang(running))
    assert not await rang(ended)

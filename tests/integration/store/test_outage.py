"""nats-server killed, stopped, frozen and started again under a running store."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sized
from typing import Any

import pytest

import ojs_scheduler
from integration.conftest import OpenStore
from integration.samples import acked, draft, fetch, frozen, message, new_id, refusal, subjects, timed, timers
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_features.all import STORE_FEATURES
from ojs_runtime.settings import Settings
from support.examples import examples
from support.nats import NatsServer
from support.network import PARTITION, Network
from support.outside import Send, tapped, tapped_connection
from support.waiting import eventually

HOUR = 3_600_000

REQUESTS: dict[str, Callable[[Store], Awaitable[Any]]] = {
    "push": lambda store: store.enqueue.push(draft()),
    "get": lambda store: store.jobs.get(new_id()),
    "change": lambda store: store.jobs.change(new_id(), transitions.cancel),
    "extend": lambda store: store.jobs.extend([new_id(), new_id()], "w", None),
    "wait": lambda store: store.jobs.wait_terminal(new_id(), 600.0),
    "fetch": lambda store: fetch(store, "some-queue"),
    "long poll": lambda store: fetch(store, "another-queue", wait_ms=600_000),
    "beat": lambda store: store.workers.beat(WorkerRecord(id="w")),
    "ping": lambda store: store.ping(),
    "due": lambda store: store.due_messages("reaper").next(),
}


async def refused(request: Awaitable[Any]) -> None:
    """It is refused long before the time that it could wait."""
    async with asyncio.timeout(60):
        with refusal("backend_unavailable"):
            await request


@contextlib.contextmanager
def counting(store: Store) -> Iterator[list[str]]:
    """Yield the subjects of what is asked of NATS meanwhile."""
    asked: list[str] = []

    def passes(_send: Send, subject: str, *_rest: object) -> None:
        asked.append(subject)

    with tapped(store.nats, passes), tapped(store.bulk, passes):
        yield asked


async def works(store: Store, queue: str) -> bool:
    """Whether a whole job gets through."""
    try:
        pushed = await store.enqueue.push(draft(queue=queue))
        [claimed] = await fetch(store, queue, wait_ms=60_000)
        await store.jobs.change(claimed.id, acked)
    except OjsError:
        return False
    assert claimed.id == pushed.id
    return True


@pytest.fixture
async def own(nats_server: NatsServer, open_store: OpenStore) -> Store:
    return await open_store(nats_server.url)


@pytest.mark.parametrize("name", REQUESTS)
async def test_requests_are_refused_at_once_while_the_server_is_away(own: Store, nats_server: NatsServer, name: str) -> None:
    nats_server.kill()
    await eventually(lambda: not own.connected)
    with counting(own) as asked:
        await refused(REQUESTS[name](own))
    assert len(asked) <= 1, "nothing is tried again, so nothing is waited for"


async def test_a_socket_that_closes_between_request_and_write_is_no_error(
    own: Store, nats_server: NatsServer, queue: str
) -> None:
    """uvloop raises where asyncio only warns."""
    unexpected: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unexpected.append(context))

    tapped_connection(own.nats).socket_closed = True
    pushing = asyncio.create_task(own.enqueue.push(draft(queue=queue)))
    await asyncio.sleep(0)
    await asyncio.to_thread(nats_server.restart)
    with contextlib.suppress(OjsError):  # it may also be tried again in time
        await pushing
    await eventually(lambda: works(own, new_id()))
    assert unexpected == []


async def test_requests_to_a_server_that_hangs_are_refused_in_time(own: Store, nats_server: NatsServer, queue: str) -> None:
    async with frozen(nats_server):
        await asyncio.gather(*(refused(request(own)) for request in REQUESTS.values() if request != REQUESTS["due"]))
    await eventually(lambda: works(own, queue))


@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_the_store_comes_back_by_itself(own: Store, nats_server: NatsServer, queue: str, end: str) -> None:
    assert await works(own, queue)
    getattr(nats_server, end)()
    await eventually(lambda: not own.connected)
    nats_server.start()
    await eventually(lambda: own.connected)
    assert await works(own, queue)


async def test_requests_under_way_end_when_the_server_dies(own: Store, nats_server: NatsServer, queue: str) -> None:
    at = own.clock.now() + HOUR
    stored: list[Job] = []

    async def pusher() -> None:
        with refusal("backend_unavailable"):
            while True:
                stored.append(await own.enqueue.push(draft(queue=queue, scheduled_at=at)))

    pushers = [asyncio.create_task(pusher()) for _ in range(64)]
    await eventually(lambda: len(stored) > 100)
    nats_server.kill()
    async with asyncio.timeout(60):
        await asyncio.gather(*pushers)
    nats_server.start()
    await eventually(lambda: own.connected)
    found = await own.records.many([job.id for job in stored])
    assert [found[job.id].job for job in stored] == stored


async def test_a_waiting_fetch_is_answered_after_an_outage_or_told_of_it(
    own: Store, nats_server: NatsServer, queue: str
) -> None:
    waiter = asyncio.create_task(fetch(own, queue, wait_ms=600_000))
    end = asyncio.create_task(own.jobs.wait_terminal((await own.enqueue.push(draft(queue=f"{queue}.x"))).id, 600.0))
    nats_server.kill()
    await refused(waiter)
    await refused(end)
    nats_server.start()
    await eventually(lambda: own.connected)
    assert await works(own, queue)


@timed(dispatch=DispatchTimings(fallback_look_s=3_600.0))
async def test_wakes_arrive_after_an_outage(own: Store, nats_server: NatsServer, open_store: OpenStore, queue: str) -> None:
    assert await fetch(own, queue, wait_ms=1) == []  # now it listens
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    waiter = asyncio.create_task(fetch(own, queue, wait_ms=600_000))
    await eventually(lambda: any(one.waiters for one in own.dispatcher.wakeups._queues.values()))
    other = await open_store(nats_server.url)
    pushed = await other.enqueue.push(draft(queue=queue))
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]


@timed(dispatch=DispatchTimings(fallback_look_s=3_600.0))
async def test_a_queue_first_waited_for_during_an_outage_is_listened_to_after_it(
    own: Store, nats_server: NatsServer, queue: str
) -> None:
    nats_server.kill()
    await eventually(lambda: not own.connected)
    await refused(fetch(own, queue, wait_ms=600_000))
    nats_server.start()
    await eventually(lambda: own.connected)
    waiter = asyncio.create_task(fetch(own, queue, wait_ms=600_000))
    await eventually(lambda: any(one.waiters for one in own.dispatcher.wakeups._queues.values()))
    pushed = await own.enqueue.push(draft(queue=queue))
    assert [job.id for job in await asyncio.wait_for(waiter, 60.0)] == [pushed.id]


async def test_what_came_due_during_an_outage_is_done_after_it(own: Store, nats_server: NatsServer, queue: str) -> None:
    scheduler = ojs_scheduler.build(own, Settings())
    await scheduler.start()
    ids = [(await own.enqueue.push(draft(queue=queue, scheduled_at=own.clock.now() + 500))).id for _ in range(20)]
    nats_server.kill()
    due = own.clock.now() + 600
    await eventually(lambda: own.clock.now() > due)
    nats_server.start()
    found: list[Job] = []

    async def all_found() -> bool:
        try:
            found.extend(await fetch(own, queue, count=20))
        except OjsError:
            return False
        return len(found) == 20

    await eventually(all_found)
    assert sorted(job.id for job in found) == sorted(ids)
    await scheduler.stop()


async def test_closing_while_the_server_is_away_does_not_hang(nats_server: NatsServer, queue: str) -> None:
    store = await Store.open(nats_server.url, StoreConfig(), role="gateway", features=STORE_FEATURES)
    waiter = asyncio.create_task(fetch(store, queue, wait_ms=600_000))
    nats_server.kill()
    await eventually(lambda: not store.connected)
    async with asyncio.timeout(60):
        await store.close()
        await asyncio.gather(waiter, return_exceptions=True)


async def test_a_handlers_bug_does_not_end_the_connection(own: Store) -> None:
    heard: list[bytes] = []

    def stumbles(found: Any) -> None:
        heard.append(found.data)
        raise ValueError("a bug")

    await own.nats.listen("ojs.test.bug", stumbles)
    for body in (b"1", b"2"):
        own.nats.publish("ojs.test.bug", body)
    await eventually(lambda: heard == [b"1", b"2"])
    assert await own.ping() > 0


async def test_a_connection_that_takes_nothing_any_more_is_left(
    nats_server: NatsServer, open_store: OpenStore, queue: str
) -> None:
    """What was written to it never leaves, so nobody may wait for that."""
    with Network() as network:
        link = network.link(nats_server.port)
        store = await open_store(f"nats://127.0.0.1:{link.port}")
        for nats in (store.nats, store.bulk):
            nats._nc.set_server_pool([nats_server.url])
            nats._nc.options["ping_interval"] = 0.1
        link.become(PARTITION)
        for _ in range(20):
            store.nats.publish(store.config.record("probe", new_id()), b"a" * 1_000_000)
        with refusal("backend_unavailable"):
            await store.enqueue.push(draft(queue=queue))
        await eventually(lambda: works(store, f"{queue}.after"))


# Nothing is lost


def reached(pushed: Sized, number: int) -> bool:
    return len(pushed) >= number


async def away(error: OjsError) -> None:
    """A client's pause before it tries again."""
    assert error.code == "backend_unavailable", error.message
    await asyncio.sleep(0.02)


async def test_no_acknowledged_job_is_lost_over_kills_under_load(
    own: Store, nats_server: NatsServer, open_store: OpenStore, queue: str
) -> None:
    """Two processes push and work while the server is killed again and again; then all that was acknowledged gets done."""
    chance = random.Random(8)
    other = await open_store(nats_server.url)
    acknowledged: set[str] = set()
    done: Counter[str] = Counter()
    pushing = working = True

    async def pusher(store: Store) -> None:
        while pushing:
            job = draft(queue=queue)
            try:
                await store.enqueue.push(job)
                acknowledged.add(job.id)
            except OjsError as error:
                await away(error)

    async def worker(store: Store) -> None:
        while working:
            try:
                jobs = await fetch(store, queue, count=3, worker="w", wait_ms=500)
            except OjsError as error:
                await away(error)
                continue
            for job in jobs:
                await finish(store, job)

    async def finish(store: Store, job: Job) -> None:
        holder = transitions.JobHolder(worker="w", attempt=job.attempt)
        while True:
            try:
                await store.jobs.change(job.id, lambda found, moment: transitions.ack(found, NOTHING, holder, moment))
                done[job.id] += 1
                return
            except OjsError as error:
                if error.code == "conflict":
                    return
                await away(error)

    tasks = [asyncio.create_task(pusher(store)) for store in (own, other) for _ in range(2)]
    tasks += [asyncio.create_task(worker(store)) for store in (own, other) for _ in range(4)]
    kills = examples(8, least=3)
    for _ in range(kills):
        enough = len(acknowledged) + chance.randrange(20, 150)
        await eventually(functools.partial(reached, acknowledged, enough), 60.0, every=0.002)
        nats_server.kill()
        await asyncio.sleep(chance.choice((0.0, 0.05, 0.4)))  # how long it is away
        await asyncio.to_thread(nats_server.start)
    pushing = False
    await eventually(lambda: own.connected and other.connected)

    async def all_done() -> bool:
        left = [job_id for job_id in acknowledged if not done[job_id]]
        for job_id in left[:20]:
            try:
                job = await own.jobs.get(job_id)
            except OjsError as error:
                await away(error)
                return False
            if job.state is not State.COMPLETED:
                return False
            done[job_id] += 1
        return not [job_id for job_id in acknowledged if not done[job_id]]

    try:
        await eventually(all_done, 60.0, every=0.1)
    except AssertionError:
        left = (await own.records.many([job_id for job_id in acknowledged if not done[job_id]])).values()
        raise AssertionError([(one.sequence, one.job) for one in left][:5]) from None
    finally:
        working = False
        await asyncio.gather(*tasks)
    assert len(acknowledged) >= 20 * kills
    found = await own.records.many(sorted(acknowledged))
    for job_id in acknowledged:
        job = found[job_id].job
        assert job is not None
        assert job.state is State.COMPLETED
        assert [entry.event for entry in job.transitions].count("acked") == 1


async def test_every_stored_record_has_the_timer_it_needs_after_a_kill(own: Store, nats_server: NatsServer, queue: str) -> None:
    """Same-stream order: what survives of a commit is a prefix of its messages, and the timer goes ahead."""
    chance = random.Random(3)
    at = own.clock.now() + HOUR
    pushed: list[str] = []

    async def pusher() -> None:
        try:
            while True:
                pushed.append((await own.enqueue.push(draft(queue=queue, scheduled_at=at))).id)
        except OjsError:
            return

    for _ in range(3):
        await eventually(lambda: own.connected)
        enough = len(pushed) + chance.randrange(60, 200)  # at any point
        tasks = [asyncio.create_task(pusher()) for _ in range(64)]
        await eventually(functools.partial(reached, pushed, enough), 60.0, every=0.002)
        await asyncio.to_thread(nats_server.kill)
        await asyncio.gather(*tasks)
        await asyncio.to_thread(nats_server.start)
    await eventually(lambda: own.connected)
    records = await subjects(own, own.config.records_stream, own.config.job(ANY))
    ids = [subject.rpartition(".")[2] for subject in records]
    assert set(pushed) <= set(ids)
    jobs = [stored.job for stored in (await own.records.many(ids)).values()]
    live = await subjects(own, own.config.records_stream, "ojs.timer.>")
    needed = {own.config.timer(job.id, job.timer.op) for job in jobs if job and job.timer}
    assert len(needed) == len(ids)
    assert needed <= set(live)


async def test_a_finished_record_does_not_come_back_as_active(own: Store, nats_server: NatsServer) -> None:
    """Left by its TTL, other writes after it, then a kill: without delete markers the last but one revision returns."""
    ids = [new_id() for _ in range(50)]
    for body, headers in (
        (b'{"s":"available"}', ""),
        (b'{"s":"active"}', ""),
        (b'{"s":"done"}', "Nats-TTL: 2s\r\n"),
    ):
        for job_id in ids:
            await own.nats.request(own.config.job(job_id), body, headers)
    for _ in range(200):
        await own.nats.request(own.config.job(new_id()), b"{}")

    async def all_gone() -> bool:
        return not [job_id for job_id in ids if (found := await message(own, own.config.job(job_id))) and found[0]]

    await eventually(all_gone, every=0.2)
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: own.connected)
    assert await all_gone()
    assert await timers(own, ids[0]) == []

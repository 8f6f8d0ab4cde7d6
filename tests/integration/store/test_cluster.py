"""Three servers: stale replicas, streams whose leaders move or die, a node that hangs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec import Raw

import ojs_reaper
import ojs_scheduler
from integration.conftest import OpenStore
from integration.samples import ANYONE, acked, delayed, draft, fetch, from_heads, frozen, refusal, subjects, timers
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.api import call, put
from ojs_engine.jetstream.connection import Collected, Failed
from ojs_engine.jetstream.contents import sequence_of
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.records.records import ABSENT, Stored
from ojs_engine.store.store import Store
from ojs_runtime.settings import Settings
from support.cluster import NatsCluster, step_down
from support.outside import EMPTY, Collect, collecting, standing
from support.waiting import answered, eventually

pytestmark = pytest.mark.cluster

HOUR = 3_600_000


@pytest.fixture
async def store(nats_cluster: NatsCluster, open_store: OpenStore) -> Store:
    await asyncio.to_thread(nats_cluster.until_whole)  # the test before may have frozen a server
    return await open_store(nats_cluster.url, replicas=3)


@pytest.fixture
async def other(nats_cluster: NatsCluster, open_store: OpenStore) -> Store:
    return await open_store(nats_cluster.url, replicas=3)


@pytest.fixture
async def stale(store: Store) -> AsyncIterator[Callable[[Store], Awaitable[None]]]:
    """`await stale(one)`: from now on that store's nearest replica has not heard of any write."""
    changed: list[tuple[Store, Any, Any]] = []

    async def freeze(one: Store) -> None:
        changed.append((one, one.records.nearest, one.records.many))
        known: dict[str, Stored] = {}
        for subject in await subjects(store, store.config.records_stream, store.config.job(ANY)):
            job_id = subject.rpartition(".")[2]
            known[job_id] = await store.records.leader(job_id)

        async def nearest(job_id: str) -> Stored:
            return known.get(job_id, ABSENT)

        async def many(ids: list[str]) -> dict[str, Stored]:
            return {job_id: known.get(job_id, ABSENT) for job_id in ids}

        one.records.nearest = nearest  # type: ignore[method-assign]
        one.records.many = many  # type: ignore[method-assign,assignment]

    yield freeze
    for one, nearest, many in changed:
        one.records.nearest, one.records.many = nearest, many  # type: ignore[method-assign]


async def leader(store: Store, stream: str) -> str:
    """The name of the stream's leader, once there is one that says so."""

    async def found() -> str:
        info = await answered(call, store.nats, f"STREAM.INFO.{stream}")
        return str(info.get("cluster", {}).get("leader") or "")

    return await eventually(found)


async def available(store: Store, queue: str) -> set[str]:
    """Ids of the queue's jobs that are stored as available."""
    found = await subjects(store, store.config.records_stream, store.config.job(ANY))
    stored = await store.records.many([subject.rpartition(".")[2] for subject in found])
    return {job_id for job_id, one in stored.items() if one.job and one.job.queue == queue and one.job.state is State.AVAILABLE}


async def drained(store: Store, queue: str, number: int) -> set[str]:
    """Ids of what can be fetched, until there are `number`; a job without a token never comes, however long one waits."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 60.0
    taken: set[str] = set()
    while len(taken) < number and loop.time() < deadline:
        with contextlib.suppress(OjsError):  # a leader is being elected
            taken |= {job.id for job in await fetch(store, queue, count=100, wait_ms=500)}
    return taken


# The same rules


@pytest.mark.usefixtures("way")
async def test_a_job_lives_as_on_one_server(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    with refusal("duplicate"):
        await other.enqueue.push(draft(id=pushed.id, queue=queue))
    [claimed] = await fetch(other, queue, count=5, worker="w", wait_ms=60_000)
    assert (claimed.id, claimed.attempt) == (pushed.id, 1)
    outcomes = await asyncio.gather(
        *(one.jobs.change(pushed.id, acked) for one in (store, other, store)), return_exceptions=True
    )
    assert sum(not isinstance(outcome, Exception) for outcome in outcomes) == 1
    assert (await store.jobs.get(pushed.id)).state is State.COMPLETED
    assert await timers(store, pushed.id) == []


async def test_of_many_pushes_of_one_id_one_wins(store: Store, other: Store, queue: str) -> None:
    job = draft(queue=queue, expires_at=store.clock.now() + HOUR)
    outcomes = await asyncio.gather(
        *(one.enqueue.push(job) for one in (store, other) for _ in range(12)), return_exceptions=True
    )
    assert sum(isinstance(outcome, Job) for outcome in outcomes) == 1
    assert {outcome.code for outcome in outcomes if isinstance(outcome, OjsError)} == {"duplicate"}
    assert [found.id for found in await fetch(store, queue, count=50)] == [job.id]

    async def no_timer_left() -> bool:  # neither a refused push's nor the expiry's, which a running job doesn't have
        return await timers(store, job.id) == []

    await eventually(no_timer_left)


@pytest.mark.usefixtures("way")
async def test_the_first_fetch_of_a_queue_finds_what_is_there(store: Store, queue: str) -> None:
    for number in range(20):
        pushed = await store.enqueue.push(draft(queue=f"{queue}.{number}"))
        assert [job.id for job in await fetch(store, f"{queue}.{number}")] == [pushed.id]


@pytest.mark.parametrize("timings", [from_heads()], ids=["heads"])
@pytest.mark.parametrize("known", [0, 2, None], ids=["nothing", "two", "no answer"])
async def test_tokens_that_a_replica_leaves_out_are_found_in_order(store: Store, queue: str, known: int | None) -> None:
    """`known`: so many of the stream's messages have reached the replica; None if it hangs."""
    jobs = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(5)]
    info = await call(store.nats, f"STREAM.INFO.{store.config.ready_stream}")
    last = info["state"]["last_seq"] - len(jobs) + (known or 0)

    async def lagging(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        if f"DIRECT.GET.{store.config.ready_stream}" not in subject:
            return await collect(subject, payload, wanted, timeout_s)
        if known is None:
            return Failed("NATS did not answer in time", sent=True)
        found = await collect(subject, payload, wanted, timeout_s)
        assert isinstance(found, Collected)
        return Collected([one for one in found.messages if sequence_of(one) <= last], EMPTY.closing)

    with collecting(store.bulk, lagging):
        assert [job.id for job in await fetch(store, queue, count=3)] == jobs[:3]
        assert [job.id for job in await fetch(store, queue, count=3)] == jobs[3:]


@pytest.mark.slow
async def test_all_jobs_are_fetched_after_all_servers_were_killed_at_once(
    nats_cluster: NatsCluster, open_store: OpenStore, queue: str, way: str
) -> None:
    store = await open_store(nats_cluster.url, replicas=3)
    jobs = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(30)]
    found = [job.id for job in await fetch(store, queue, count=5)]
    await store.dispatcher.reader.pull(store.config.ready(queue, 0), queue, 5)  # and nothing follows
    await put(store.nats, store.config.due("scheduler", queue), b"", None, "a due message")
    await delivered(store, queue)  # and nothing follows, either
    for node in nats_cluster.nodes:
        await asyncio.to_thread(node.kill)
    await asyncio.to_thread(nats_cluster.start)
    again = await open_store(nats_cluster.url, replicas=3)

    async def rest() -> bool:
        with contextlib.suppress(OjsError):  # streams and consumers have no leaders yet
            found.extend(job.id for job in await fetch(again, queue, count=7))
        return len(found) >= len(jobs)

    await eventually(rest, 60.0)
    assert sorted(found) == sorted(jobs), way

    await delivered(again, queue)


async def delivered(store: Store, name: str) -> None:
    """Returns when a due message of this name has come to the scheduler, whatever comes with it of other tests' jobs."""
    due = store.due_messages("scheduler")

    async def came() -> bool:
        with contextlib.suppress(OjsError):
            return name in {one.job_id for one in await due.next()}
        return False

    await eventually(came)


async def test_delayed_jobs_become_available_once_each(store: Store, other: Store, queue: str) -> None:
    schedulers = [ojs_scheduler.build(one, Settings()) for one in (store, other)]
    for scheduler in schedulers:
        await scheduler.start()
    with standing(store):  # all are pushed ahead of it
        at = store.clock.now() + 3_000
        pushed = await asyncio.gather(*(store.enqueue.push(draft(queue=queue, scheduled_at=at)) for _ in range(40)))
    ids = [job.id for job in pushed]
    taken: list[str] = []

    async def all_taken() -> bool:
        taken.extend(job.id for job in await fetch(store, queue, count=40))
        return len(taken) >= 40

    await eventually(all_taken)
    for scheduler in schedulers:
        await scheduler.stop()
    assert sorted(taken) == sorted(ids)
    for job_id in ids:
        assert [entry.event for entry in (await store.jobs.get(job_id)).transitions] == ["pushed", "promoted", "claimed"]


async def test_a_process_started_for_one_replica_goes_by_the_stream(
    nats_cluster: NatsCluster, store: Store, open_store: OpenStore
) -> None:
    assert store.config.replicas == 3
    mistaken = await open_store(nats_cluster.url, replicas=1)
    assert mistaken.config.replicas == 3
    assert not mistaken.records.nearest_is_leader


# Stale replicas


async def test_nothing_is_concluded_from_a_stale_read(store: Store, stale: Any, queue: str) -> None:
    await stale(store)
    pushed = await store.enqueue.push(draft(queue=queue))  # the nearest replica has never heard of it
    assert (await store.jobs.get(pushed.id)) == pushed
    with refusal("duplicate"):
        await store.enqueue.push(draft(id=pushed.id, queue=queue))
    change = await store.jobs.change(pushed.id, transitions.cancel)
    assert change.after.state is State.CANCELLED
    assert (await store.jobs.wait_terminal(pushed.id, 5.0)).state is State.CANCELLED


async def test_a_change_that_a_stale_read_forbids_is_made(store: Store, other: Store, stale: Any, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await stale(store)  # available, as it believes
    await fetch(other, queue)
    assert (await store.jobs.change(pushed.id, acked)).after.state is State.COMPLETED


async def test_a_heartbeat_over_a_stale_read_holds_on(store: Store, other: Store, stale: Any, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await stale(store)
    await fetch(other, queue, worker="w", lease_ms=60_000)
    assert (await store.jobs.extend([pushed.id], "w", 120_000)).extended == [pushed.id]


async def test_a_token_is_not_dropped_for_a_stale_read(store: Store, other: Store, stale: Any, queue: str) -> None:
    await stale(store)
    pushed = await other.enqueue.push(draft(queue=queue))
    assert await fetch(store, queue) == []  # it waits for its replica, in vain
    assert [job.id for job in await fetch(other, queue, wait_ms=60_000)] == [pushed.id]


async def test_a_due_message_is_not_dropped_for_a_stale_read(store: Store, other: Store, stale: Any, queue: str) -> None:
    await stale(store)
    scheduler = ojs_scheduler.build(store, Settings())
    await scheduler.start()
    pushed = await delayed(other, 300, queue=queue)
    assert [job.id for job in await fetch(other, queue, wait_ms=60_000)] == [pushed.id]
    await scheduler.stop()


async def test_not_yet_is_not_concluded_from_a_stale_read(store: Store, other: Store, stale: Any, queue: str) -> None:
    pushed = await other.enqueue.push(draft(queue=queue, expires_at=other.clock.now() + HOUR))
    await stale(store)  # expires in an hour, as it believes

    [claimed] = await fetch(other, queue, lease_ms=300, wait_ms=60_000)
    reaper = ojs_reaper.build(store, Settings())
    await reaper.start()
    [again] = await fetch(other, queue, wait_ms=60_000)
    await reaper.stop()
    assert (again.id, again.attempt) == (claimed.id, 2)
    assert again.id == pushed.id


@pytest.mark.slow
async def test_a_replica_that_lags_is_never_believed(
    nats_cluster: NatsCluster, store: Store, open_store: OpenStore, queue: str
) -> None:
    """A follower sleeps through changes; asked as it wakes, everybody still hears the latest."""
    ahead = nats_cluster.node(await leader(store, store.config.records_stream))
    lagging = next(node for node in nats_cluster.nodes if node is not ahead)
    near, steady = await open_store(lagging.url), await open_store(ahead.url)
    ids = [(await steady.enqueue.push(draft(queue=queue))).id for _ in range(100)]
    before = [await steady.records.leader(job_id) for job_id in ids]
    async with frozen(lagging):
        moments = [steady.clock.moment() for _ in ids]
        outcomes = await steady.committer.commit_all(
            [
                (transitions.cancel(one.job, moment), one.sequence, moment.op)
                for one, moment in zip(before, moments, strict=True)
                if one.job is not None
            ]
        )
    assert [type(outcome) for outcome in outcomes] == [int] * len(ids)
    found = await asyncio.gather(*(answered(near.jobs.get, job_id) for job_id in ids))
    assert {job.state for job in found} == {State.CANCELLED}


@pytest.mark.slow
async def test_a_replica_that_hangs_keeps_no_request_from_being_answered(
    nats_cluster: NatsCluster, store: Store, open_store: OpenStore, queue: str
) -> None:
    """A third of the direct reads goes to it until its peers notice."""
    ahead = nats_cluster.node(await leader(store, store.config.records_stream))
    hung = next(node for node in reversed(nats_cluster.nodes) if node is not ahead)
    steady = await open_store(ahead.url)

    async def lead(stream: str) -> bool:
        if await leader(steady, stream) != f"n{nats_cluster.nodes.index(hung) + 1}":
            return True
        await step_down(steady, stream)
        return False

    await eventually(lambda: lead(steady.config.ready_stream), every=0.2)
    ids = [(await steady.enqueue.push(draft(queue=queue))).id for _ in range(12)]
    async with frozen(hung):
        changes = await asyncio.gather(*(steady.jobs.change(job_id, transitions.cancel) for job_id in ids))
        found = await steady.records.many(ids)
        one_by_one = [(await steady.records.many([job_id]))[job_id] for job_id in ids]
    assert {change.after.state for change in changes} == {State.CANCELLED}
    assert [one.job for one in one_by_one] == [change.after for change in changes]
    assert [found[job_id].job for job_id in ids] == [change.after for change in changes]


async def accepted(store: Store, job: Job) -> None:
    """Push until the job is known to be stored. A 503 leaves that open, so a repeat may find it there."""

    async def there() -> bool:
        try:
            await store.enqueue.push(job)
        except OjsError as error:
            if error.code not in ("backend_unavailable", "duplicate"):
                raise
            return error.code == "duplicate"
        return True

    await eventually(there)


# Leaders that move or die


async def pushing(stores: list[Store], queue: str, acknowledged: set[str], stop: asyncio.Event, **members: Any) -> None:
    async def pusher(store: Store) -> None:
        while not stop.is_set():
            job = draft(queue=queue, **members)
            try:
                await store.enqueue.push(job)
                acknowledged.add(job.id)
            except OjsError as error:
                assert error.code == "backend_unavailable", error.message  # noqa: PT017
                await asyncio.sleep(0.02)  # a client's pause before it tries again

    await asyncio.gather(*(pusher(store) for store in stores for _ in range(8)))


async def more(pushed: set[str], number: int) -> None:
    """Let `number` more pushes be acknowledged."""
    enough = len(pushed) + number
    await eventually(lambda: len(pushed) >= enough)


@pytest.mark.slow
async def test_no_job_is_stored_without_its_token_while_leaders_step_down(store: Store, other: Store, queue: str) -> None:
    chance = random.Random(12)
    acknowledged: set[str] = set()
    stop = asyncio.Event()
    load = asyncio.create_task(pushing([store, other], queue, acknowledged, stop))
    for turn in range(8):
        await more(acknowledged, chance.randrange(20, 80))
        await step_down(store, (store.config.ready_stream, store.config.records_stream)[turn % 3 == 2])
    stop.set()
    await load
    stored = await available(store, queue)
    assert acknowledged <= stored
    assert await drained(store, queue, len(stored)) == stored


@pytest.mark.slow
async def test_no_job_is_stored_without_its_token_or_lost_when_the_tokens_leader_dies(
    nats_cluster: NatsCluster, store: Store, other: Store, queue: str
) -> None:
    async def apart() -> bool:
        """The tokens' leader is another node than the records'."""
        leaders = await leader(store, store.config.ready_stream), await leader(store, store.config.records_stream)
        if all(leaders) and leaders[0] != leaders[1]:
            return True
        await step_down(store, store.config.ready_stream)
        return False

    await eventually(apart, every=0.2)
    acknowledged: set[str] = set()
    stop = asyncio.Event()
    load = asyncio.create_task(pushing([store, other], queue, acknowledged, stop))
    await more(acknowledged, 300)
    victim = nats_cluster.node(await leader(store, store.config.ready_stream))
    try:
        await asyncio.to_thread(victim.kill)
        await more(acknowledged, 200)
    finally:
        stop.set()
        await load
        await asyncio.to_thread(victim.start)
        await asyncio.to_thread(nats_cluster.until_led)
    stored = await available(store, queue)
    assert acknowledged <= stored
    assert await drained(store, queue, len(stored)) == stored


@pytest.mark.slow
async def test_no_record_is_stored_without_its_timer_while_leaders_step_down(store: Store, other: Store, queue: str) -> None:
    acknowledged: set[str] = set()
    stop = asyncio.Event()
    load = asyncio.create_task(pushing([store, other], queue, acknowledged, stop, scheduled_at=store.clock.now() + HOUR))
    for _ in range(5):
        await more(acknowledged, 40)
        await step_down(store, store.config.records_stream)
    stop.set()
    await load
    found = await subjects(store, store.config.records_stream, store.config.job(ANY))
    stored = await store.records.many([subject.rpartition(".")[2] for subject in found])
    jobs = [one.job for one in stored.values() if one.job is not None and one.job.queue == queue]
    live = await subjects(store, store.config.records_stream, "ojs.timer.>")
    assert acknowledged <= {job.id for job in jobs}
    assert not [job.id for job in jobs if job.timer is None or store.config.timer(job.id, job.timer.op) not in live]


@pytest.mark.slow
async def test_a_node_that_hangs_is_left_for_another(
    nats_cluster: NatsCluster, store: Store, open_store: OpenStore, queue: str
) -> None:
    """Its sockets stay open, and nothing is answered."""
    ahead = {await leader(store, stream["name"]) for stream in store.config.streams()}
    hung = nats_cluster.node(min({"n1", "n2", "n3"} - ahead) if len(ahead) < 3 else "n1")
    others = [node.url for node in nats_cluster.nodes if node is not hung]
    one = await open_store(hung.url, replicas=3)
    for nats in (one.nats, one.bulk):
        nats._nc.set_server_pool([hung.url, *others])
    async with frozen(hung):
        with refusal("backend_unavailable"):
            await one.enqueue.push(draft(queue=queue))
        await accepted(one, draft(queue=queue))
    await accepted(store, draft(queue=queue))


@pytest.mark.slow
async def test_a_result_set_apart_is_there_through_every_node_once_its_ack_is_answered(
    store: Store, other: Store, queue: str
) -> None:
    result = Raw(b'"' + b"r" * 100_000 + b'"')
    for _ in range(20):
        pushed = await store.enqueue.push(draft(queue=queue))
        await fetch(store, queue)
        await store.jobs.change(pushed.id, lambda job, moment: transitions.ack(job, result, ANYONE, moment))
        assert (await other.blobs.whole(await other.jobs.get(pushed.id))).result == result

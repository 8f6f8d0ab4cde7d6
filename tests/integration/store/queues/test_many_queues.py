"""Any number of queues and priorities: consumers are for busy ones, and no limit of NATS keeps jobs from being fetched."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from integration.conftest import MakeServer, OpenStore
from integration.samples import draft, fetch, refusal, timed, tokens
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.api import call, put
from ojs_engine.jetstream.connection import Collected, Connection, Failed
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.dispatch.queue_consumers import ConsumerTimings
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from support.nats import NatsServer
from support.outside import Collect, collecting
from support.waiting import eventually

_SECOND_NS = 1_000_000_000


async def consumers(store: Store) -> int:
    info = await call(store.nats, f"STREAM.INFO.{store.config.ready_stream}")
    return int(info["state"]["consumer_count"])


async def limit(store: Store, number: int) -> None:
    info = await call(store.nats, f"STREAM.INFO.{store.config.ready_stream}")
    changed = await call(store.nats, f"STREAM.UPDATE.{store.config.ready_stream}", info["config"] | {"max_consumers": number})
    assert "error" not in changed


async def pushed(store: Store, queue: str, number: int) -> list[str]:
    return [(await store.enqueue.push(draft(queue=queue))).id for _ in range(number)]


async def drained(store: Store, queue: str, count: int = 7) -> list[str]:
    jobs: list[Job] = []
    while found := await fetch(store, queue, count=count):
        jobs += found
    return [job.id for job in jobs]


async def test_a_thousand_and_one_queues_and_priorities_leave_the_next_queue_working(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        for queue in "abcde":
            drafts = [draft(queue=queue, priority=priority) for priority in range(-100, 101)]
            await asyncio.gather(*map(store.enqueue.push, drafts))
            found = await fetch(store, queue, count=1_000)
            assert [job.priority for job in found] == list(range(100, -101, -1))
        (job,) = await pushed(store, "payments", 1)
        assert [one.id for one in await fetch(store, "payments")] == [job]
        assert await consumers(store) == 0, "none of them is busy"


@timed(dispatch=DispatchTimings(consumers=ConsumerTimings(busy_pulls=0, rest_s=0.0)))
async def test_busy_queues_beyond_the_limit_of_consumers_are_served_without(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    refused = metrics.CONSUMERS_REFUSED.value
    with own_server() as server:
        store = await open_store(server.url)
        await limit(store, 3)
        for number in range(8):
            jobs = await pushed(store, f"tenant-{number}", 20)
            assert await drained(store, f"tenant-{number}") == jobs
        assert await consumers(store) == 3
        assert metrics.CONSUMERS_REFUSED.value >= refused + 5
        exposed = (await metrics.exposition()).decode()
        assert 'ojs_nats_consumers{stream="OJS_READY"} 3.0' in exposed
        assert 'ojs_nats_consumers_limit{stream="OJS_READY"} 3.0' in exposed


@timed(dispatch=DispatchTimings(consumers=ConsumerTimings(busy_pulls=3, idle_s=1)))
async def test_a_queue_that_has_become_busy_gets_a_consumer_which_leaves_when_it_is_idle(store: Store, queue: str) -> None:
    jobs = await pushed(store, queue, 6)
    name = f"{store.config.ready_stream}.{store.config.ready_consumer(store.config.ready(queue, 0))}"
    found: list[str] = []
    for _ in range(3):
        found += [job.id for job in await fetch(store, queue)]
    assert "error" in await call(store.nats, f"CONSUMER.INFO.{name}")
    found += [job.id for job in await fetch(store, queue)]
    assert "error" not in await call(store.nats, f"CONSUMER.INFO.{name}")

    async def gone() -> bool:
        return "error" in await call(store.nats, f"CONSUMER.INFO.{name}")

    await eventually(gone)
    found += await drained(store, queue)  # it believes in its consumer still
    assert found == jobs


async def test_fetches_of_two_gateways_that_take_from_the_same_heads_share_out_the_jobs(
    store: Store, other: Store, queue: str, way: str
) -> None:
    jobs = await pushed(store, queue, 150)
    found = await asyncio.gather(*(drained(one, queue, count=3) for one in (store, other) for _ in range(6)))
    assert sorted(job for part in found for job in part) == sorted(jobs), way

    async def answered_for() -> bool:
        await fetch(store, queue)
        return await tokens(store, queue) == 0

    await eventually(answered_for)


async def test_tokens_in_hand_come_back_in_their_places_when_nats_was_killed(
    own_server: MakeServer, open_store: OpenStore, queue: str, way: str
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        jobs = await pushed(store, queue, 30)
        found = [job.id for job in await fetch(store, queue, count=5)]
        in_hand = await store.dispatcher.reader.pull(store.config.ready(queue, 0), queue, 5)
        assert [token.job_id for token in in_hand] == jobs[5:10], way
        await asyncio.to_thread(server.restart)
        await eventually(lambda: store.connected)
        store.dispatcher.reader.back(in_hand[0])

        async def rest() -> bool:
            with_rest = await fetch(store, queue, count=100)
            found.extend(job.id for job in with_rest)
            return len(found) >= len(jobs)

        await eventually(rest)
        assert sorted(found) == sorted(jobs)


# What one queue's trouble means for others


def failing(nats: Connection, *queues: str) -> AbstractContextManager[None]:
    """NATS doesn't answer whoever wants the tokens of some queues."""

    async def tap(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        if any(f"{queue}.100".encode() in payload or f"{queue}-100" in subject for queue in queues):
            return Failed("its consumer has no leader", sent=True)
        return await collect(subject, payload, wanted, timeout_s)

    return collecting(nats, tap)


@pytest.mark.usefixtures("way")
async def test_a_queue_that_cannot_be_served_is_skipped_by_a_fetch_that_names_others(store: Store, queue: str) -> None:
    bad, good = f"{queue}-bad", f"{queue}-good"
    (kept,), (job,) = await pushed(store, bad, 1), await pushed(store, good, 1)
    skipped = metrics.QUEUES_SKIPPED.value
    with failing(store.bulk, bad):
        assert [one.id for one in await fetch(store, bad, good)] == [job]
        assert await fetch(store, bad, good, wait_ms=0) == [], "one of them can be served, and is empty"
        assert metrics.QUEUES_SKIPPED.value == skipped + 2
        with refusal("backend_unavailable"):
            await fetch(store, bad)
    assert [one.id for one in await eventually(lambda: fetch(store, bad, good))] == [kept]


@pytest.mark.usefixtures("way")
async def test_a_fetch_of_which_no_queue_can_be_served_is_refused(store: Store, queue: str) -> None:
    names = [f"{queue}-{number}" for number in range(3)]
    for name in names:
        await pushed(store, name, 1)
    with failing(store.bulk, *names), refusal("backend_unavailable"):
        await fetch(store, *names)


# Copies of the data folder that were taken while it was written


async def made_by_an_earlier_version(store: Store, stream: str, name: str, subject: str) -> None:
    config = {"durable_name": name, "filter_subject": subject, "ack_policy": "explicit", "ack_wait": 3 * _SECOND_NS}
    made = await call(store.nats, f"CONSUMER.CREATE.{stream}.{name}.{subject}", {"stream_name": stream, "config": config})
    assert "error" not in made


async def consumed(store: Store, stream: str, name: str, number: int) -> None:
    """Have a consumer deliver messages, which are acknowledged and gone."""
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}"
    outcome = await store.bulk.collect(pull, b'{"batch":%d,"no_wait":true}' % number, number, 2.0)
    assert isinstance(outcome, Collected)
    assert len(outcome.messages) == number
    for message in outcome.messages:
        answer = await store.bulk.request(message.reply.decode(), b"+ACK")
        assert not isinstance(answer, Failed)


@contextmanager
def torn(server: NatsServer, stream: str) -> Iterator[None]:
    """What the stream stores in this context is lost; what its consumers have come to is kept."""
    (messages,) = server.folder.glob(f"store/**/streams/{stream}/msgs")
    copy = server.folder / "copy"
    server.stop()
    shutil.copytree(messages, copy)
    server.start()
    yield
    server.stop()
    shutil.rmtree(messages)
    shutil.copytree(copy, messages)
    server.start()


async def test_tokens_are_delivered_though_their_consumers_state_is_newer_than_their_stream(
    own_server: MakeServer, open_store: OpenStore, queue: str, way: str
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        stream, subject = store.config.ready_stream, store.config.ready(queue, 0)
        name = store.config.ready_consumer(subject)
        await made_by_an_earlier_version(store, stream, name, subject)
        jobs = await pushed(store, queue, 3)
        with torn(server, stream):
            store = await open_store(server.url)
            await consumed(store, stream, name, 3)  # by whom, and what came of it, is lost as well
        store = await open_store(server.url)
        assert await eventually(lambda: drained(store, queue)) == jobs, way


async def test_due_messages_are_delivered_though_their_consumers_state_is_newer_than_their_stream(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        stream = store.config.records_stream
        await made_by_an_earlier_version(store, stream, "scheduler", store.config.due("scheduler", ANY))
        await put(store.nats, store.config.due("scheduler", "job"), b"", None, "a due message")
        with torn(server, stream):
            store = await open_store(server.url)
            await consumed(store, stream, "scheduler", 1)
        store = await open_store(server.url)
        messages = store.due_messages("scheduler")
        assert [due.job_id for due in await eventually(messages.next)] == ["job"]

"""Storage that runs full, on a real nats-server with a small limit: new jobs are refused, those that are there go on."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import structlog
from msgspec import Raw
from msgspec.structs import replace

from integration.conftest import MakeServer, OpenStore
from integration.crons.test_crons import unchanged, wanted
from integration.samples import acked, draft, failed, fetch, refusal, timed
from integration.workflows.flows import chain, coordinate, create, end
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.storage_room import RoomSettings
from ojs_engine.jetstream.api import call, parse_ack
from ojs_engine.jetstream.connection import Reply
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.capacity.storage_room import RoomTimings
from ojs_engine.store.store import Store, StoreTimings
from ojs_engine.store.workers.presence import PresenceTimings, WorkerRecord
from ojs_engine.telemetry import metrics
from ojs_features.all import STORE_FEATURES
from ojs_features.crons.loop import CronWorker
from ojs_features.crons.store import Crons
from support.cluster import NatsCluster
from support.nats import NatsServer
from support.outside import before
from support.waiting import eventually

MIB = 1024 * 1024
LIMIT = 32 * MIB
RESERVE = LIMIT // 8


NAMED = RoomSettings(limit=LIMIT)


ROOM = RoomTimings(shortest_s=0.002, fastest=1 << 40, longest_s=0.05, quiet_s=0.05, others_s=3_600.0)
OFTEN = StoreTimings(
    room=ROOM,
    presence=PresenceTimings(beat_s=0.2, again_s=0.2),
)
"""A limit this small is reached between two looks that are 50 ms apart."""


@pytest.fixture
def timings() -> StoreTimings:
    return OFTEN


def large(queue: str, size: int = 250_000) -> Job:
    return draft(queue=queue, args=Raw(b'["' + b"x" * size + b'"]'))


async def used(store: Store) -> int:
    return int((await call(store.nats, "INFO"))["storage"])


async def fill(store: Store, queue: str) -> list[str]:
    """Push until that is refused; the ids of those that were taken."""
    taken = []
    with refusal("storage_full"):
        for _ in range(LIMIT // 250_000 + 2):
            job = await store.enqueue.push(large(queue))
            taken.append(job.id)
    return taken


async def exhaust(store: Store) -> None:
    """Use up the reserve, as events would that are published on and on."""
    for size in (100_000, 100):
        while True:
            answer = await store.nats.request(store.config.event("job.progress", "queue", "job"), b"x" * size)
            assert isinstance(answer, Reply)
            if parse_ack(answer.data).error is not None:
                break


def refused(store: Store) -> bool:
    return store.room.shortage is not None


async def test_new_jobs_are_refused_while_there_is_a_reserve_and_everything_else_goes_on(
    own_server: MakeServer, open_store: OpenStore, queue: str
) -> None:
    with own_server(max_file_store=str(LIMIT)) as server:
        store = await open_store(server.url, room=NAMED)
        flow = await create(store, chain(f"{queue}-flow", "a", "b"))
        await store.of(Crons).register(wanted("yearly", "0 0 1 1 *", queue=f"{queue}-cron"))
        await eventually(lambda: store.room.levels)
        ids = await fill(store, queue)
        assert LIMIT - RESERVE <= await used(store) < LIMIT, "the reserve is there"

        for create_one in (
            lambda: store.enqueue.push(draft(queue=queue)),
            lambda: store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + 60_000)),
            lambda: store.enqueue.push_all([draft(queue=queue), draft(queue=queue)]),
            lambda: create(store, chain(queue, "a", "b")),
            lambda: store.of(Crons).register(wanted("another")),
            lambda: store.of(Crons).run_now("yearly", unchanged),
        ):
            with refusal("storage_full"):
                await create_one()

        worker = "worker"
        held = await fetch(store, queue, count=4, worker=worker)
        assert [job.id for job in held] == ids[:4]
        await store.workers.beat(WorkerRecord(id=worker))
        assert (await store.jobs.extend([held[0].id], worker, None)).extended == [held[0].id]
        assert (await store.jobs.change(held[0].id, acked)).after.state is State.COMPLETED
        assert (await store.jobs.change(held[1].id, failed)).after.state is State.RETRYABLE
        assert (await store.jobs.change(ids[5], transitions.cancel)).after.state is State.CANCELLED
        await end(store, f"{queue}-flow")
        await coordinate(store, flow)
        assert [job.type for job in await fetch(store, f"{queue}-flow")] == ["b"], "the next step of accepted work"

        full = await used(store)
        for job_id in ids[6:60]:
            await store.jobs.change(job_id, transitions.cancel)
            await store.jobs.change(job_id, transitions.remove)
        assert full - await used(store) > 50 * 250_000, "deleting makes room at once"
        await eventually(lambda: not refused(store))
        assert (await store.enqueue.push(draft(queue=queue))).state is State.AVAILABLE


async def test_only_those_who_take_new_jobs_ask_nats_for_its_room_again_and_again(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    """Others show it in their metrics; each question costs nats-server and the process some of an idle second."""
    with own_server(max_file_store=str(LIMIT)) as server:
        gateway, scheduler, reaper = [
            await open_store(server.url, room=NAMED, role=role) for role in ("gateway", "scheduler", "reaper")
        ]
        await eventually(lambda: all(store.room.levels for store in (gateway, scheduler, reaper)))

        async def nothing() -> None:
            return

        with (
            before(gateway.nats, "$JS.API.INFO", nothing, times=1_000) as often,
            before(scheduler.nats, "$JS.API.INFO", nothing, times=1_000) as as_often,
            before(reaper.nats, "$JS.API.INFO", nothing, times=1_000) as never,
        ):
            await eventually(lambda: len(often) > 10 and len(as_often) > 10)
        assert never == []


@timed(room=replace(ROOM, quiet_s=3_600.0, others_s=3_600.0))
async def test_while_there_are_no_new_jobs_nobody_asks_again_and_the_first_one_has_its_gateway_ask(
    own_server: MakeServer, open_store: OpenStore, queue: str
) -> None:
    with own_server(max_file_store=str(LIMIT)) as server:
        gateway, other = [await open_store(server.url, room=NAMED, role="gateway") for _ in range(2)]
        await eventually(lambda: gateway.room.levels and other.room.levels)
        await fill(other, queue)
        assert not refused(gateway), "it was asked for nothing yet"
        assert (await gateway.enqueue.push(draft(queue=queue))).state is State.AVAILABLE, "the reserve has room for it"
        await eventually(partial(refused, gateway))


async def test_a_tick_of_a_cron_entry_waits_for_room(own_server: MakeServer, open_store: OpenStore, queue: str) -> None:
    with own_server(max_file_store=str(LIMIT)) as server:
        store = await open_store(server.url, room=NAMED)
        await eventually(lambda: store.room.levels)
        await store.of(Crons).register(wanted("ticking", queue=f"{queue}-cron"))
        ids = await fill(store, queue)
        keeper = CronWorker(store, unchanged)
        await keeper.start()
        try:
            runs = (await store.of(Crons).get("ticking")).n
            assert await fetch(store, f"{queue}-cron", wait_ms=1_500) == []
            assert (await store.of(Crons).get("ticking")).n == runs, "no run is noted without its job"
            for job_id in ids[: len(ids) // 2]:
                await store.jobs.change(job_id, transitions.cancel)
                await store.jobs.change(job_id, transitions.remove)
            assert await fetch(store, f"{queue}-cron", wait_ms=60_000) != []
        finally:
            await keeper.stop()


async def test_the_limit_of_an_account_counts(own_server: MakeServer, open_store: OpenStore, queue: str) -> None:
    accounts = f"""
accounts {{ OJS {{ jetstream {{ max_memory: 64MB, max_file: {LIMIT} }}, users: [{{user: ojs, password: ojs}}] }} }}
no_auth_user: ojs
"""
    with own_server(more=accounts) as server:
        store = await open_store(server.url)
        await eventually(lambda: store.room.levels)
        await fill(store, queue)
        assert store.room.shortage is not None
        assert "the storage that NATS gives the account (max_file) is full" in store.room.shortage
        (job,) = await fetch(store, queue)
        await store.jobs.change(job.id, acked)


async def test_a_limit_that_the_operator_names_counts(nats_server: NatsServer, queue: str) -> None:
    first = await Store.open(nats_server.url, StoreConfig(), role="gateway", features=STORE_FEATURES)
    limit = await used(first) + 15 * MIB
    store = await Store.open(
        nats_server.url,
        StoreConfig(),
        role="gateway",
        features=STORE_FEATURES,
        room=RoomSettings(limit=limit, reserve=5 * MIB),
        timings=OFTEN,
    )
    try:
        await eventually(lambda: store.room.levels)
        await fill(store, queue)
        assert await used(store) < limit
        assert (await first.enqueue.push(draft(queue=queue))).state is State.AVAILABLE, "the server itself has room"
    finally:
        await store.close()
        await first.close()


@pytest.mark.cluster
@pytest.mark.slow
async def test_on_a_cluster_the_limit_is_that_of_each_server(nats_cluster: NatsCluster, queue: str) -> None:
    first = await Store.open(nats_cluster.url, StoreConfig(replicas=3), role="gateway", features=STORE_FEATURES)
    limit = await used(first) // 3 + 20 * MIB
    store = await Store.open(
        nats_cluster.url,
        StoreConfig(replicas=3),
        role="gateway",
        features=STORE_FEATURES,
        room=RoomSettings(limit=limit, reserve=5 * MIB),
        timings=OFTEN,
    )
    try:
        await eventually(lambda: store.room.levels)
        with refusal("storage_full"):
            for _ in range(600):
                await store.enqueue.push(large(queue))
        (job,) = await fetch(store, queue)
        await store.jobs.change(job.id, acked)
        assert limit - 10 * MIB < await used(first) // 3 < limit + 10 * MIB
    finally:
        await store.close()
        await first.close()


async def test_every_process_refuses_what_is_new_and_metrics_say_why(
    own_server: MakeServer, open_store: OpenStore, queue: str
) -> None:
    with own_server(max_file_store=str(LIMIT)) as server:
        store, other = [await open_store(server.url, room=NAMED) for _ in range(2)]
        await eventually(lambda: store.room.levels)
        await fill(store, queue)
        await eventually(partial(refused, other))
        with pytest.raises(OjsError, match=r"nats-server's storage \(max_file_store\) is full: .* of 32.0 MiB") as caught:
            await other.enqueue.push(draft(queue=queue))
        assert (caught.value.info.status, caught.value.retry_after, caught.value.info.retryable) == (503, 5, True)

        def value(name: str, **labels: str) -> float | None:
            return metrics.REGISTRY.get_sample_value(name, labels)

        assert value("ojs_storage_limit_bytes", of="server") == LIMIT
        assert value("ojs_storage_reserve_bytes", of="server") == RESERVE
        assert (value("ojs_storage_used_bytes", of="server") or 0) > LIMIT - RESERVE
        assert value("ojs_storage_full") == 1


async def test_beyond_the_reserve_every_error_says_what_is_full_and_a_purge_makes_room(
    own_server: MakeServer, open_store: OpenStore, queue: str
) -> None:
    with own_server(max_file_store=str(LIMIT)) as server:
        store = await open_store(server.url, room=NAMED)
        await eventually(lambda: store.room.levels)
        await fill(store, queue)
        (job,) = await fetch(store, queue)
        await exhaust(store)
        with refusal("storage_full"):
            await store.jobs.change(job.id, acked)
        await eventually(lambda: store.room.trouble)
        with pytest.raises(OjsError, match="max_file_store"):
            await store.ready()
        await call(store.nats, f"STREAM.PURGE.{store.config.events_stream}")
        assert (await store.jobs.change(job.id, acked)).after.state is State.COMPLETED
        await eventually(lambda: store.room.trouble is None)
        assert await store.ready() > 0


async def test_where_no_limit_is_known_jobs_are_refused_once_nats_has_no_room(
    own_server: MakeServer, open_store: OpenStore, queue: str
) -> None:
    with own_server(max_file_store=str(LIMIT)) as server, structlog.testing.capture_logs() as logs:
        store = await open_store(server.url)
        await eventually(lambda: said(logs))
        await fill(store, queue)
        assert await used(store) > LIMIT - 500_000, "nothing is kept for what is there"
        with pytest.raises(OjsError, match="max_file_store") as caught:
            await store.enqueue.push(large(queue))
        assert (caught.value.code, caught.value.info.status, caught.value.retry_after) == ("storage_full", 503, 5)
        assert len(said(logs)) == 1
        assert store.room.levels == []


def said(logs: list[Any]) -> list[Any]:
    return [entry for entry in logs if "--storage-limit" in entry["event"]]

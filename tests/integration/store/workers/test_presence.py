"""Dead workers: their jobs come back, but silence that nobody could have heard kills nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from integration.conftest import OpenStore
from integration.samples import draft, fetch, timers
from ojs_engine.base.service import Service
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.domain.worker import CompleteList, Mark
from ojs_engine.due.timekeeping import Timekeeper
from ojs_engine.jetstream.event_reader import EventFilter, EventReader
from ojs_engine.store.store import Store, StoreTimings
from ojs_engine.store.workers.presence import PresenceTimings, WorkerRecord, covers
from ojs_reaper.liveness import LivenessTimings, WorkerLiveness
from support.nats import NatsServer
from support.waiting import eventually

LIVENESS_MS = 1_000
MAX_GAP_MS = 500
Start = Callable[[Store], Awaitable[Service]]


@pytest.fixture
def timings() -> StoreTimings:
    """A service is away after half a second instead of ten, and a worker dead after one second instead of thirty."""
    return StoreTimings(
        presence=PresenceTimings(beat_s=0.1, max_gap_ms=MAX_GAP_MS),
        workers=WorkerTimes(dead_ms=LIVENESS_MS, look_again_ms=300),
    )


@pytest.fixture
def own_nats(nats_server: NatsServer) -> NatsServer:
    """A server that has heard of no other test's gateways."""
    return nats_server


@pytest.fixture
async def reaping(own_nats: NatsServer, open_store: OpenStore) -> AsyncIterator[Store]:
    """A reaper's process; no gateway beats unless the test opens one."""
    store = await open_store(own_nats.url, role="reaper")
    looks = LivenessTimings(fresh_ms=0)
    services = [Timekeeper(store, "reaper", WorkerLiveness(store, looks).of) for _ in range(2)]
    for service in services:
        await service.start()
    yield store
    for service in services:
        await service.stop()


async def held(store: Store, queue: str, worker: str = "w") -> Job:
    await store.enqueue.push(draft(queue=queue))
    [job] = await fetch(store, queue, worker=worker)
    return job


async def died(store: Store, job_id: str) -> Job | None:
    job = await store.jobs.get(job_id)
    return job if job.state is State.AVAILABLE else None


async def rounds(store: Store, job: Job, number: int) -> None:
    """Let the liveness of the job's worker be asked for `number` times."""
    asked: set[str] = set()

    async def enough() -> bool:
        for op in await timers(store, job.id):
            found = await store.records.leader_raw(store.config.timer(job.id, op))
            if found is not None:
                asked.add(str(found[0]))
        return len(asked) > number

    await eventually(enough)


async def test_a_silent_workers_job_comes_back_while_gateways_listen(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w"))
    job = await held(gateway, queue)
    found = await eventually(lambda: died(reaping, job.id))
    assert found is not None
    assert [error.type for error in found.errors] == ["worker_death"]
    assert [entry.event for entry in found.transitions] == ["pushed", "claimed", "worker_died"], "once"
    assert [again.attempt for again in await fetch(gateway, queue)] == [2]


@pytest.mark.parametrize(("state", "reason"), [("running", "error"), ("terminate", "shutdown")])
async def test_that_a_worker_died_is_told_once_by_however_many_reapers_and_jobs(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str, state: str, reason: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w", state=state))
    jobs = [await held(gateway, queue) for _ in range(5)]

    async def all_died() -> bool:
        return None not in [await died(reaping, job.id) for job in jobs]

    await eventually(all_died)
    events = EventReader(gateway.bulk, gateway.config)
    [event] = (await events.read(0, EventFilter(types=("worker.stopped",)), 10)).events
    assert msgspec.json.decode(event.body)["data"] == {"worker_id": "w", "reason": reason}


async def test_a_worker_that_beats_keeps_its_job(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    job = await held(gateway, queue)
    silent = await held(gateway, f"{queue}.silent", worker="silent")
    await gateway.workers.beat(WorkerRecord(id="silent"))

    async def the_other_died() -> bool:
        await gateway.workers.beat(WorkerRecord(id="w"))
        return await died(reaping, silent.id) is not None

    await eventually(the_other_died)
    assert (await reaping.jobs.get(job.id)).state is State.ACTIVE


async def test_silence_without_gateways_kills_nobody(reaping: Store, queue: str) -> None:
    await reaping.workers.beat(WorkerRecord(id="w"))
    job = await held(reaping, queue)
    await rounds(reaping, job, 4)
    assert (await reaping.jobs.get(job.id)) == job


async def test_silence_counts_only_from_when_a_gateway_listens(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    await reaping.workers.beat(WorkerRecord(id="w"))
    job = await held(reaping, queue)
    await rounds(reaping, job, 2)
    opened = reaping.clock.now()
    await open_store(own_nats.url)
    found = await eventually(lambda: died(reaping, job.id))
    assert found is not None
    assert found.errors[0].at >= opened + LIVENESS_MS - MAX_GAP_MS


async def test_a_worker_that_never_spoke_is_judged_by_its_lease(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.enqueue.push(draft(queue=queue))
    [job] = await fetch(gateway, queue, worker="w", lease_ms=2_000)
    found = await eventually(lambda: died(reaping, job.id))
    assert found is not None
    assert [error.type for error in found.errors] == ["visibility_timeout"]
    assert found.errors[0].at >= (job.visible_until or 0)


async def test_a_worker_that_left_holds_nothing(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w"))
    job = await held(gateway, queue)
    await gateway.workers.remove("w")
    found = await eventually(lambda: died(reaping, job.id))
    assert found is not None
    assert (found.errors[0].type, found.uncharged) == ("worker_death", 0)


async def test_what_a_worker_had_when_it_signed_off_does_not_count(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w"))
    job = await held(gateway, queue)
    await gateway.workers.remove("w", signed_off=True)
    found = await eventually(lambda: died(reaping, job.id))
    assert found is not None
    assert (found.errors, found.attempt, found.uncharged) == ((), 1, 1)


async def test_a_late_goodbye_of_another_process_is_not_the_workers(store: Store) -> None:
    await store.workers.beat(WorkerRecord(id="twice", pid=2, started_at="later"))
    assert await store.workers.remove("twice", signed_off=True, pid=1) is None
    assert await store.workers.remove("twice", signed_off=True, pid=2, started_at="earlier") is None
    found = await store.workers.get("twice")
    assert found is not None
    assert found.state == "running"
    assert await store.workers.remove("twice", signed_off=True, pid=2) is not None


async def test_a_worker_loses_what_its_complete_list_does_not_name_and_nothing_else(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    since = await gateway.workers.beat(WorkerRecord(id="w"))
    named, unread = await held(gateway, queue), await held(gateway, queue)
    until = await gateway.workers.beat(WorkerRecord(id="w"))
    later = await held(gateway, queue)  # its answer may be under way while the list is made
    complete = CompleteList(since, until, frozenset({named.id}))

    async def taken_back() -> Job | None:
        await gateway.workers.beat(WorkerRecord(id="w", complete=complete))
        return await died(reaping, unread.id)

    found = await eventually(taken_back)
    assert found is not None
    assert (found.errors, found.attempt, found.uncharged) == ((), 1, 1)
    # What was claimed later is looked at later: this is its turn.
    another = await held(gateway, queue, worker="silent")
    await gateway.workers.beat(WorkerRecord(id="silent"))

    async def the_other_died() -> bool:
        await gateway.workers.beat(WorkerRecord(id="w", complete=complete))
        return await died(reaping, another.id) is not None

    await eventually(the_other_died)
    assert [(await reaping.jobs.get(job.id)).state for job in (named, later)] == [State.ACTIVE] * 2


async def test_without_a_complete_list_a_worker_keeps_what_it_does_not_name(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w"))
    job = await held(gateway, queue)
    ahead = Mark(10**15, gateway.clock.now() + 1_000_000)

    async def beats() -> None:
        await gateway.workers.beat(WorkerRecord(id="w"))
        # Marks that nobody has given say nothing.
        await gateway.workers.beat(WorkerRecord(id="w", complete=CompleteList(Mark(0, 0), ahead, frozenset())))

    silent = await held(gateway, f"{queue}.silent", worker="silent")
    await gateway.workers.beat(WorkerRecord(id="silent"))

    async def the_other_died() -> bool:
        await beats()
        return await died(reaping, silent.id) is not None

    await eventually(the_other_died)
    assert (await reaping.jobs.get(job.id)).state is State.ACTIVE


async def test_what_an_earlier_process_of_a_worker_held_comes_back_and_counts(
    reaping: Store, own_nats: NatsServer, open_store: OpenStore, queue: str
) -> None:
    gateway = await open_store(own_nats.url)
    await gateway.workers.beat(WorkerRecord(id="w"))
    job = await held(gateway, queue)
    since = await gateway.workers.beat(WorkerRecord(id="w"))  # it was killed, and begins anew under its id

    async def died_with_it() -> Job | None:
        await gateway.workers.beat(WorkerRecord(id="w", complete=CompleteList(since, since, frozenset())))
        return await died(reaping, job.id)

    found = await eventually(died_with_it)
    assert found is not None
    assert ([error.type for error in found.errors], found.uncharged) == (["worker_death"], 0)


async def test_a_gateway_that_left_has_still_listened(own_nats: NatsServer, open_store: OpenStore) -> None:
    reaper = await open_store(own_nats.url, role="reaper")
    gateway = await open_store(own_nats.url)
    began = gateway.clock.now()
    await eventually(lambda: gateway.clock.now() > began + 300)
    await gateway.close()
    beats = await reaper.presence.of("gateway")
    assert covers(beats, began, began + 300, MAX_GAP_MS)
    assert await reaper.presence.live() == [reaper.instance]

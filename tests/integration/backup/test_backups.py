"""Backups of a store that works on, and what is made of them in another namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

import ojs_reaper
from integration.conftest import OpenStore
from integration.samples import (
    ANYONE,
    KINDS,
    acked,
    configure,
    draft,
    fetch,
    message,
    put_raw,
    subjects,
    timers,
    tokens,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.base.problems import Unreachable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import RestoreMark, released, waiting_for_release
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Collected, Connection
from ojs_engine.jetstream.streams import RESTORING
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup import BackupProblem
from ojs_engine.store.store import Store
from ojs_features.all import BACKUPS
from ojs_features.backup.archive import Archive
from ojs_features.backup.last import last_backup, note_backup
from ojs_features.backup.release import Held, Release
from ojs_features.backup.restoring import Restore, Restored, RestoreTimings
from ojs_features.backup.taking import Taken, take_backup
from ojs_features.crons.changes import Registration
from ojs_features.crons.store import Crons
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import key_scope
from ojs_features.limits.rules import LimitOverride
from ojs_features.pools.rules import Pool
from ojs_features.pools.store import Pools
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.registry import Schemas
from ojs_features.webhooks.records import Subscription
from ojs_features.webhooks.subjects import Subjects
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_features.workflows.requests import parse_workflow
from ojs_features.workflows.store import Workflows
from ojs_runtime.settings import Settings
from support.cluster import NatsCluster
from support.nats import NatsServer
from support.waiting import eventually

AT_ONCE = RestoreTimings(beats_s=0.0)
_names = count(1)


def silent(_phase: str, _done: int, _total: int) -> None:
    """Hear of progress."""


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    nats = Connection("backup")
    await nats.connect(url)
    try:
        yield nats
    finally:
        await nats.close()


class Backups:
    """Makes backups of stores, and restores them into namespaces that nobody else uses."""

    def __init__(self, url: str, folder: Path, open_store: OpenStore) -> None:
        self.url = url
        self.folder = folder
        self._open = open_store

    async def take(self, store: Store) -> Taken:
        async with connected(self.url) as nats:
            return await take_backup(nats, store.config, self.folder, silent, BACKUPS)

    async def restore(
        self,
        namespace: str = "",
        tell: Callable[[str, int, int], None] = silent,
        timings: RestoreTimings = AT_ONCE,
        *,
        url: str = "",
        replicas: int = 1,
        quiet: bool | None = False,
    ) -> Restored:
        config = StoreConfig(namespace=namespace or f"restored-{next(_names)}", replicas=replicas)
        async with connected(url or self.url) as nats:
            return await Restore(nats, config, Archive.open(self.folder), tell, BACKUPS, timings, quiet=quiet).run()

    async def open(self, restored: Restored) -> Store:
        return await self._open(self.url, namespace=restored.namespace)

    async def waiting(self, restored: Restored) -> Held | None:
        """Return what waits for the release of a restored system."""
        async with connected(self.url) as nats:
            return await (await Release.of(nats, StoreConfig(namespace=restored.namespace), BACKUPS)).held()

    async def release(self, restored: Restored) -> None:
        async with connected(self.url) as nats:
            await (await Release.of(nats, StoreConfig(namespace=restored.namespace), BACKUPS)).run()


@pytest.fixture
async def source(nats_server: NatsServer, open_store: OpenStore) -> Store:
    """A store on a server of the test's own."""
    return await open_store(nats_server.url)


@pytest.fixture
def backups(nats_server: NatsServer, tmp_path: Path, open_store: OpenStore) -> Backups:
    return Backups(nats_server.url, tmp_path / "kept", open_store)


async def test_what_waited_runs_once_and_what_was_done_does_not(source: Store, backups: Backups, queue: str) -> None:
    done = await source.enqueue.push(draft(queue=queue))
    await fetch(source, queue)
    await source.jobs.change(done.id, lambda job, moment: transitions.ack(job, Raw(b'{"a": 1}'), ANYONE, moment))
    running = await source.enqueue.push(draft(queue=queue))
    [held] = await fetch(source, queue, worker="w")
    assert held.id == running.id
    waiting = await source.enqueue.push(draft(queue=queue))
    urgent = await source.enqueue.push(draft(queue=queue, priority=5))
    later = await source.enqueue.push(draft(queue=queue, state=State.SCHEDULED, scheduled_at=source.clock.now() + 3_600_000))
    taken = await backups.take(source)
    restored = await backups.restore()
    assert (restored.jobs, restored.waiting, restored.requeued, restored.timers) == (5, 3, 1, 1)
    assert taken.records >= 5
    there = await backups.open(restored)
    got = await fetch(there, queue, count=10)
    assert got[0].id == urgent.id
    assert {job.id for job in got} == {urgent.id, running.id, waiting.id}
    again = next(job for job in got if job.id == running.id)
    assert (again.attempt, again.uncharged, again.worker) == (2, 1, None)
    assert [entry.reason for entry in again.transitions if entry.event == "requeued"] == ["restored"]
    assert await fetch(there, queue) == []
    assert await tokens(there, queue) == 0
    assert (await there.jobs.get(done.id)).result == Raw(b'{"a": 1}')
    assert await timers(there, later.id) == await timers(source, later.id) != []


async def test_an_old_holder_of_a_job_that_was_given_back_is_refused(source: Store, backups: Backups, queue: str) -> None:
    job = await source.enqueue.push(draft(queue=queue))
    await fetch(source, queue, worker="w")
    await backups.take(source)
    there = await backups.open(await backups.restore())
    holder = transitions.JobHolder(worker="w", attempt=1)
    with pytest.raises(OjsError) as refused:
        await there.jobs.change(job.id, lambda found, moment: transitions.ack(found, NOTHING, holder, moment))
    assert refused.value.code == "conflict"


async def test_a_backup_under_load_is_of_one_moment(source: Store, backups: Backups, queue: str) -> None:
    """Each job goes on to its end while records are read: at the end of reading it is there in its state of then."""
    before = [await source.enqueue.push(draft(queue=queue)) for _ in range(300)]
    ended: set[str] = set()
    stop = asyncio.Event()

    async def work() -> None:
        while not stop.is_set():
            for job in await fetch(source, queue, count=20):
                await source.jobs.change(job.id, acked)
                ended.add(job.id)
                await source.enqueue.push(draft(queue=queue))

    workers = [asyncio.create_task(work()) for _ in range(4)]
    await eventually(lambda: len(ended) > 20)
    done_before = set(ended)
    try:
        await backups.take(source)
    finally:
        stop.set()
        await asyncio.gather(*workers)
    kept: dict[str, Job] = {}
    archive = Archive.open(backups.folder)
    for one in archive.messages("records"):
        if one.subject.startswith(source.config.job("")):
            job = msgspec.json.decode(one.data, type=Job)
            kept[job.id] = job
    assert {job.id for job in before} <= kept.keys()
    assert all(kept[job_id].state is State.COMPLETED for job_id in done_before)
    restored = await backups.restore()
    there = await backups.open(restored)
    unfinished = {job_id for job_id, job in kept.items() if not job.terminal}
    got: set[str] = set()
    while jobs := await fetch(there, queue, count=50):
        assert not got & {job.id for job in jobs}
        got |= {job.id for job in jobs}
    assert got == unfinished


async def test_settings_locks_results_and_subscriptions_are_restored(source: Store, backups: Backups, queue: str) -> None:
    await configure(source, queue, max_size=7)
    unique = keyed(draft(queue=queue, unique=Raw(b'{"keys": ["type", "args"]}')))
    held = await source.enqueue.push(unique)
    await put_raw(source, source.config.record("checkpoint", held.id), b'{"a": 1}', "Nats-TTL: 3600s\r\n")
    await put_raw(source, source.config.record("progress", held.id), b'{"a": 1}', "Nats-TTL: 1s\r\n")
    await put_raw(source, source.config.job("torn"), b"{")
    made = Subscription(id="sub", url="http://127.0.0.1", events=("*",), secret="s", since=0)
    await put_raw(source, Subjects(source.config).webhook("sub"), msgspec.json.encode(made))
    for number in range(5):
        await source.nats.request(source.config.event("job.enqueued", queue, f"j{number}"), b"{}", "Ojs-Entry: 1\r\n")
    wanted = {"durable_name": Subjects(source.config).consumer("sub"), "ack_policy": "explicit"}
    stream = source.config.events_stream
    await call(source.nats, f"CONSUMER.CREATE.{stream}.{wanted['durable_name']}", {"stream_name": stream, "config": wanted})
    found = await source.bulk.collect(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{wanted['durable_name']}", b'{"batch":3}', 3, 30.0)
    assert isinstance(found, Collected)
    for one in found.messages:
        await source.bulk.request(one.reply.decode(), b"+ACK")
    await backups.take(source)
    await eventually(lambda: source.clock.now() > _ends(archive_of(backups), source.config.record("progress", held.id)))
    restored = await backups.restore()
    assert (restored.features["webhooks"], restored.events, restored.unreadable, restored.ended) == (1, 5, 1, 1)
    there = await backups.open(restored)
    settings = await there.queues.settings(queue)
    assert settings is not None
    assert settings.config.max_size == 7
    with pytest.raises(OjsError) as refused:
        await there.enqueue.push(replace(unique, id=draft().id))
    assert refused.value.code == "duplicate"
    checkpoint = await message(there, there.config.record("checkpoint", held.id))
    assert checkpoint is not None
    assert 3_000 < int(checkpoint[1]["Nats-TTL"].removesuffix("s")) < 3_600
    assert await message(there, there.config.record("progress", held.id)) is None
    after = await message(there, Subjects(there.config).webhook("sub"))
    assert after is not None
    assert msgspec.json.decode(after[0], type=Subscription).since == 3
    assert len(await subjects(there, there.config.events_stream, there.config.events)) == 5


async def test_the_time_of_the_last_backup_outlives_resets_alone(source: Store, backups: Backups) -> None:
    nats, config = source.nats, source.config
    assert await last_backup(nats, config) is None
    for at in (1_000, 2_000):
        await note_backup(nats, config, at)
    assert await last_backup(nats, config) == 2_000
    await source.reset(KINDS)
    assert await last_backup(nats, config) == 2_000
    await backups.take(source)
    there = await backups.open(await backups.restore())
    assert await last_backup(there.nats, there.config) is None


@pytest.mark.parametrize("torn", [b"{", b'{"at": "x"}', b"\xff"])
async def test_a_note_that_cannot_be_read_counts_from_when_it_was_stored(source: Store, torn: bytes) -> None:
    before = source.clock.now()
    await put_raw(source, source.config.last_backup, torn)
    at = await last_backup(source.nats, source.config)
    assert at is not None
    assert abs(at - before) < 60_000


def archive_of(backups: Backups) -> Archive:
    return Archive.open(backups.folder)


def _ends(archive: Archive, subject: str) -> int:
    """When a message of a second ends its time."""
    return next(kept.at for kept in archive.messages("records") if kept.subject == subject) + 1_000


async def test_members_of_extensions_are_restored_with_all(source: Store, backups: Backups, queue: str) -> None:
    kept = {"ext_vendor": Raw(b'{"n":[1.0,1E5]}')}
    await configure(source, queue, extensions=kept)
    await source.of(Pools).put(Pool(name="pool", weights={queue: 1}, extensions=kept))
    document = Raw(b'{"type":"array"}')
    schema = SchemaRecord(uri="urn:a", type="a.b", version="1", document=document, extensions=kept)
    await source.of(Schemas).register(schema, 10)
    webhook = Subscription(id="", url="http://127.0.0.1", events=("*",), secret="s", extensions=kept)
    await source.of(Webhooks).create(webhook)
    template = Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE, extra=kept, retry_extensions=kept)
    await source.of(Crons).register(Registration(name="daily", expression="@daily", draft=template, extensions=kept))
    job = await source.enqueue.push(draft(queue=queue, extra=kept, retry_extensions=kept))
    await source.of(Limits).permits.override(key_scope("key"), LimitOverride(concurrency=1, extensions=kept))
    step = {"type": "a.c", "args": [], "options": {"queue": f"{queue}-2"}, "ext_vendor": {"n": 1}}
    body = msgspec.json.encode({"type": "chain", "steps": [step, step], "ext_vendor": {"n": 2}})
    workflow = await source.of(Workflows).create(parse_workflow(body, source.clock.now(), DEFAULT_LIMITS))
    await backups.take(source)
    there = await backups.open(await backups.restore())
    settings = await there.queues.settings(queue)
    assert settings is not None
    [webhook] = await there.of(Webhooks).all()
    cron = await there.of(Crons).get("daily")
    restored = await there.jobs.get(job.id)
    override = (await there.of(Limits).permits.read(key_scope("key")))[1].override
    assert override is not None
    assert [
        settings.config.extensions,
        (await there.of(Pools).get("pool")).extensions,
        (await there.of(Schemas).catalogue()).at("urn:a").extensions,
        webhook.extensions,
        cron.extensions,
        cron.draft.extra,
        restored.extra,
        restored.retry_extensions,
        override.extensions,
    ] == [kept] * 9
    found = await there.of(Workflows).get(workflow.record.id)
    assert found.graph.root.extensions == {"ext_vendor": Raw(b'{"n":2}')}
    [first, _] = await there.of(Workflows).drafts(found)
    assert (first.extra, found.graph.shape.extended) == ({"ext_vendor": Raw(b'{"n":1}')}, (1, 2))


async def test_a_cron_entry_goes_on_with_its_next_tick(source: Store, backups: Backups) -> None:
    template = Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE)
    registered = Registration(name="each-second", expression="* * * * * *", draft=template)
    entry = (await source.of(Crons).register(registered))[1]
    await backups.take(source)
    assert entry.next_at is not None
    late = entry.next_at + 3_000
    await eventually(lambda: source.clock.now() > late)
    restored = await backups.restore()
    assert (restored.features["crons"], restored.features["passed_over"]) == (1, 1)
    there = await backups.open(restored)
    cron = await there.of(Crons).get("each-second")
    assert cron.next_at is not None
    assert cron.next_at > late
    assert (cron.run_count, cron.timer is not None) == (0, True)

    async def one_hint() -> bool:
        """Its timer, or the message of one that has fired; between the two looks it may do so."""
        timers = await subjects(there, there.config.records_stream, f"{restored.namespace}.timer.cron.>")
        dues = await subjects(there, there.config.records_stream, f"{restored.namespace}.due.cron.>")
        return len(timers) + len(dues) == 1

    await eventually(one_hint)


async def test_nothing_is_restored_over_another_installation(source: Store, backups: Backups, queue: str) -> None:
    job = await source.enqueue.push(draft(queue=queue))
    await backups.take(source)
    with pytest.raises(BackupProblem, match=r"is in use: there is a stream KV_ojs.*Name another --namespace"):
        await backups.restore(source.config.namespace)
    assert (await source.jobs.get(job.id)).state is State.AVAILABLE


async def test_services_that_run_stop_a_restore_and_leave_nothing(
    source: Store, backups: Backups, nats_server: NatsServer
) -> None:
    """A gateway whose NATS has lost everything stores its beat as soon as there is a stream."""
    await backups.take(source)
    config = StoreConfig(namespace="company")
    told: list[str] = []

    async with connected(nats_server.url) as service:

        def beat(phase: str, _done: int, _total: int) -> None:
            if phase == "look for services":
                told.append(phase)
                beats.append(asyncio.ensure_future(_beat(service, config)))

        beats: list[Awaitable[None]] = []
        with pytest.raises(BackupProblem, match=r"services of namespace company run \(gateway\): stop all of them"):
            await backups.restore("company", beat, RestoreTimings(beats_s=3.0))
        await asyncio.gather(*beats)
        assert told == ["look for services"]
        answer = await call(service, f"STREAM.INFO.{config.records_stream}")
        assert answer["error"]["err_code"] == 10059


async def _beat(nats: Connection, config: StoreConfig) -> None:
    await nats.request(config.record("service", "gateway.one"), b"{}")


@pytest.mark.parametrize("phase", ["look for services", "events", "audit", "records"])
async def test_a_restore_that_was_interrupted_is_begun_anew(
    source: Store, backups: Backups, open_store: OpenStore, queue: str, phase: str
) -> None:
    jobs = {(await source.enqueue.push(draft(queue=queue))).id for _ in range(20)}
    await source.nats.request(source.config.event("job.enqueued", queue, "j1"), b"{}", "Ojs-Entry: 1\r\n")
    await source.nats.request(source.config.audit_entry("key.made", "k"), b"{}")
    await backups.take(source)

    class Interrupted(Exception):
        pass

    def interrupt(told: str, done: int, total: int) -> None:
        if told == phase and done == total:
            raise Interrupted

    with pytest.raises(Interrupted):
        await backups.restore("halfway", interrupt)
    with pytest.raises(Unreachable, match="is being restored, or a restore of it was interrupted"):
        await open_store(backups.url, namespace="halfway")
    await _check_whole(backups, queue, jobs)


async def _check_whole(backups: Backups, queue: str, jobs: set[str]) -> None:
    """Restore what was interrupted: all is there once."""
    there = await backups.open(await backups.restore("halfway"))
    assert {job.id for job in await fetch(there, queue, count=100)} == jobs
    assert await fetch(there, queue) == []
    stored = await subjects(there, there.config.events_stream, there.config.events)
    assert set(stored.values()) <= {1}


async def test_a_restore_that_ended_with_some_of_its_marks_taken_away_is_begun_anew(
    source: Store, backups: Backups, nats_server: NatsServer, queue: str
) -> None:
    jobs = {(await source.enqueue.push(draft(queue=queue))).id for _ in range(3)}
    await backups.take(source)
    stream = StoreConfig(namespace=(await backups.restore("halfway")).namespace).records_stream
    async with connected(nats_server.url) as nats:
        config = (await call(nats, f"STREAM.INFO.{stream}"))["config"]
        marked = config | {"metadata": config["metadata"] | {RESTORING: "of a process that is gone"}}
        assert "error" not in await call(nats, f"STREAM.UPDATE.{stream}", marked)
    await _check_whole(backups, queue, jobs)


async def test_of_two_restores_at_once_the_earlier_ends(source: Store, backups: Backups, queue: str) -> None:
    job = await source.enqueue.push(draft(queue=queue))
    await backups.take(source)
    looking = asyncio.Event()

    def tell(phase: str, _done: int, _total: int) -> None:
        if phase == "look for services":
            looking.set()

    earlier = asyncio.create_task(backups.restore("both", tell, RestoreTimings(beats_s=3.0)))
    await looking.wait()
    there = await backups.open(await backups.restore("both"))
    with pytest.raises(BackupProblem, match="another restore into namespace both has begun meanwhile, so this one ends"):
        await earlier
    assert [found.id for found in await fetch(there, queue, count=5)] == [job.id]


async def test_a_backup_of_a_restored_system_is_as_good(
    source: Store, backups: Backups, open_store: OpenStore, queue: str, tmp_path: Path
) -> None:
    job = await source.enqueue.push(draft(queue=queue))
    await backups.take(source)
    there = await backups.open(await backups.restore())
    second = Backups(backups.url, tmp_path / "second", open_store)
    await second.take(there)
    last = await second.open(await second.restore())
    assert [found.id for found in await fetch(last, queue, count=5)] == [job.id]


async def test_in_another_namespace_nothing_is_handed_out_until_the_release(
    source: Store, backups: Backups, queue: str
) -> None:
    job = await source.enqueue.push(draft(queue=queue))
    await source.enqueue.push(draft(queue="paused"))
    await source.queues.pause("paused")
    template = Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE)
    await source.of(Crons).register(Registration(name="daily", expression="@daily", draft=template))
    made = Subscription(id="sub", url="http://127.0.0.1", events=("*",), secret="s", since=0)
    for one in (made, replace(made, id="off", active=False)):
        await put_raw(source, Subjects(source.config).webhook(one.id), msgspec.json.encode(one))
    await backups.take(source)
    restored = await backups.restore(quiet=None)
    assert restored.waits_for_release
    there = await backups.open(restored)
    assert await fetch(there, queue) == []
    assert await there.queues.under_maintenance()
    held = await backups.waiting(restored)
    assert held is not None
    assert (held.features["crons"], held.features["webhooks"], held.queues, held.jobs, held.due, held.paused) == (
        1,
        1,
        1,
        1,
        0,
        1,
    )
    assert held.mark.namespace == source.config.namespace
    await backups.release(restored)
    found: list[Job] = []

    async def handed_out() -> bool:
        found.extend(await fetch(there, queue))
        return bool(found)

    await eventually(handed_out)
    assert [one.id for one in found] == [job.id]
    assert await fetch(there, "paused") == []
    assert await backups.waiting(restored) is None


async def test_no_job_outlives_its_limits_until_the_release(source: Store, backups: Backups, queue: str) -> None:
    """Two reapers: that of the source says that the time is over, by the end of its own jobs."""
    soon = source.clock.now() + 2_000
    limits = ({"expires_at": soon}, {"enqueue_ttl_ms": 2_000}, {"total_timeout_ms": 2_000})
    jobs = [(await source.enqueue.push(draft(queue=queue, **limit))).id for limit in limits]
    delayed = await source.enqueue.push(draft(queue=queue, expires_at=soon, scheduled_at=soon + 3_600_000))
    jobs.append(delayed.id)
    await backups.take(source)
    restored = await backups.restore(quiet=None)
    there = await backups.open(restored)
    before = [(await there.jobs.get(job_id)).state for job_id in jobs]
    reapers = [ojs_reaper.build(store, Settings()) for store in (source, there)]
    for reaper in reapers:
        await reaper.start()
    try:

        async def outlived() -> bool:
            held = await backups.waiting(restored)
            return held is not None and held.outlived == len(jobs) and await ended(source, jobs)

        await eventually(outlived)
        later = await source.enqueue.push(draft(queue=queue, enqueue_ttl_ms=1_000))
        await eventually(lambda: ended(source, [later.id]))
        assert [(await there.jobs.get(job_id)).state for job_id in jobs] == before
        await backups.release(restored)
        await eventually(lambda: ended(there, jobs))
    finally:
        for reaper in reapers:
            await reaper.stop()


async def ended(store: Store, jobs: list[str]) -> bool:
    """Whether all of them are discarded."""
    return {(await store.jobs.get(job_id)).state for job_id in jobs} == {State.DISCARDED}


@pytest.mark.parametrize(
    ("before", "asked", "waits"),
    [(None, None, True), (False, None, True), (False, False, False), (True, None, True), (True, False, False)],
    ids=["another namespace", "its own mark is lifted", "live", "it waited", "it waited, live"],
)
async def test_whether_a_restored_system_waits(
    source: Store, backups: Backups, queue: str, before: bool | None, asked: bool | None, waits: bool
) -> None:
    await source.enqueue.push(draft(queue=queue))
    if before is not None:
        mark = RestoreMark(namespace="older", taken_at=1, at=2)
        await source.queues.change(MAINTENANCE, lambda old, moment: waiting_for_release(old, moment, mark))
    if before is False:
        await source.queues.change(MAINTENANCE, released)
    await backups.take(source)
    restored = await backups.restore(quiet=asked)
    assert restored.waits_for_release is waits
    there = await backups.open(restored)
    assert await there.queues.under_maintenance() is waits
    assert bool(await fetch(there, queue)) is not waits


async def test_nothing_is_backed_up_where_nothing_is(backups: Backups) -> None:
    async with connected(backups.url) as nats:
        with pytest.raises(BackupProblem, match="there is nothing to back up in namespace nowhere"):
            await take_backup(nats, StoreConfig(namespace="nowhere"), backups.folder, silent, BACKUPS)
    assert not backups.folder.exists()


@pytest.mark.slow
@pytest.mark.cluster
async def test_one_server_is_restored_into_a_cluster_and_back(
    source: Store, backups: Backups, open_store: OpenStore, nats_cluster: NatsCluster, queue: str, tmp_path: Path
) -> None:
    jobs = {(await source.enqueue.push(draft(queue=queue))).id for _ in range(50)}
    await backups.take(source)
    url = nats_cluster.url
    restored = await backups.restore("from-one", url=url, replicas=3)
    there = await open_store(url, namespace=restored.namespace, replicas=3)
    assert there.config.replicas == 3
    [first] = await fetch(there, queue)
    await there.jobs.change(first.id, acked)
    second = Backups(url, tmp_path / "second", open_store)
    await second.take(there)
    back = await open_store(backups.url, namespace=(await second.restore("from-three", url=backups.url)).namespace)
    assert {job.id for job in await fetch(back, queue, count=100)} == jobs - {first.id}

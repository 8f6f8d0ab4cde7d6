"""Settings that NATS has lost, which running processes know: they go on by them, and write them back (docs/adr/028)."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import MakeServer, OpenStore
from integration.samples import KINDS, draft
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.handlers import Handler
from ojs_engine.domain.queues.config import DEFAULT_QUEUE, MAINTENANCE, QueueConfig
from ojs_engine.domain.queues.record import (
    Maintenance,
    RestoreMark,
    configured,
    deleted,
    released,
    waiting_for_release,
)
from ojs_engine.jetstream.api import call, put
from ojs_engine.jetstream.connection import header
from ojs_engine.jetstream.contents import message, subjects_of
from ojs_engine.store.store import Store
from ojs_engine.store.workers.notes import Directive, WorkerNotes
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_features.access.keys import make_key
from ojs_features.access.store import Keys
from ojs_features.pools.rules import Pool
from ojs_features.pools.store import Pools
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.registry import Schemas
from ojs_features.webhooks.records import Subscription
from ojs_features.webhooks.subscriptions import Webhooks
from support.nats import NatsServer
from support.waiting import eventually


def blocks(server: NatsServer) -> list[Path]:
    """The files of the records, the oldest first."""
    return sorted(server.folder.glob("store/jetstream/*/streams/KV_ojs/msgs/*.blk"), key=lambda path: int(path.stem))


async def fill_a_block(store: Store) -> None:
    for number in range(20):
        await store.nats.request(store.config.result(f"job-{number}", "op"), bytes(500_000))


async def configure(store: Store, queue: str, config: QueueConfig) -> None:
    await store.queues.change(queue, lambda old, moment: configured(old, queue, config, moment))


async def refused(store: Store, **members: object) -> bool:
    """Whether a job is refused by its queue or its schema."""
    try:
        job = await store.queues.admit(draft(**members))
        await store.of(Schemas).check(job)
    except OjsError:
        return True
    return False


async def restrict(store: Store) -> None:
    """Set everything that holds somebody back, and a webhook."""
    await store.queues.pause("paused")
    await configure(store, "narrow", QueueConfig(max_size=3, concurrency=2, allowed_job_types=("mail.*",)))
    await configure(store, DEFAULT_QUEUE, QueueConfig(concurrency=7))
    await store.queues.hold_all(Maintenance(reason="a move"))
    await store.of(Pools).put(Pool(name="apart", weights={"theirs": 1}, isolated=True))
    document = Raw(b'{"type": "array", "maxItems": 0}')
    schema = SchemaRecord(uri="urn:x", type="checked", version="1", document=document, mode="strict")
    await store.of(Schemas).register(schema, 10)
    hook = Subscription(id="", url="https://hooks.example/", events=("job.*",), secret="some-secret")
    made = await store.of(Webhooks).create(hook)
    await store.of(Webhooks).pause(made.id, "failing")


async def stands(store: Store) -> dict[str, bool]:
    """What of that holds, as the store's process sees it."""
    known = store.of(Webhooks).known()
    await store.of(Pools).learn()
    return {
        "a pause": await store.queues.held("paused"),
        "a bound": store.queues.bound("narrow") == 3,
        "a limit": store.queues.config("narrow").concurrency == 2,
        "a limit of all queues": store.queues.config("other").concurrency == 7,
        "allowed types": await refused(store, queue="narrow", type="report"),
        "maintenance": await store.queues.under_maintenance(),
        "a pool of its own workers": store.of(Pools).open_to(["theirs"], None) == [],
        "a schema": await refused(store, type="checked", args=Raw(b"[1]")),
        "a webhook's pause": [one.active for one in known] == [False],
        "keys": len(await store.of(Keys).all()) == 1,
    }


async def heard(store: Store) -> bool:
    """Whether a store's copies are all of now, behind an outage."""
    try:
        await store.ping()
    except OjsError:
        return False
    return bool(store.of(Keys).fresh and store.connected)


async def test_a_lost_block_lifts_no_restriction_and_its_settings_are_written_back(
    own_server: MakeServer, open_store: OpenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        await restrict(store)
        await store.of(Keys).create(make_key("first", "admin"))
        await store.of(Keys).follow(lambda _keys, _others: None)
        await store.of(Webhooks).follow(lambda: None)

        async def everything() -> bool:
            return all((await stands(store)).values())

        await eventually(everything)
        before = await subjects_of(store.nats, store.config.records_stream, store.config.records)
        await fill_a_block(store)
        server.stop()
        blocks(server)[0].unlink()
        server.start()
        kinds = {"queue", "pool", "schema", "webhook", "key"}
        settings = {subject for subject in before if subject.split(".")[2] in kinds}

        async def written_back() -> bool:
            return len(store.watches.lost.names) == len(settings) and await heard(store)

        await eventually(written_back)
        assert await stands(store) == dict.fromkeys(await stands(store), True)
        assert {f"$KV.ojs.{name}" for name in store.watches.lost.names} == settings
        assert list(store.watches.lost.missing) == []
        assert "NATS has lost records that this process knows" in capsys.readouterr().out
        later = await open_store(server.url)
        await later.of(Webhooks).follow(lambda: None)
        assert await later.queues.held("paused")
        assert await stands(later) == dict.fromkeys(await stands(later), True)


async def test_settings_stand_while_nats_server_can_not_keep_them_and_are_written_back_when_it_can(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    """With a file that is cut off, nats-server takes messages and drops them, until it is started once more."""
    with own_server() as server:
        store = await open_store(server.url)
        await store.queues.pause("paused")
        await store.queues.settings("paused")
        await fill_a_block(store)
        server.stop()
        os.truncate(blocks(server)[0], 0)
        server.start()
        await eventually(lambda: list(store.watches.lost.names) == ["queue.paused"])
        assert await store.queues.held("paused")
        server.stop()
        server.start()
        await eventually(lambda: not store.watches.lost.missing)
        assert await store.queues.held("paused")
        assert await (await open_store(server.url)).queues.held("paused")


async def test_a_change_that_was_lost_stands_and_what_was_before_it_does_not_come_back(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        await configure(store, "mail", QueueConfig(max_size=9))
        await store.queues.settings("mail")
        server.stop()
        sizes = {path: path.stat().st_size for path in blocks(server)}
        server.start()
        other = await open_store(server.url)
        await configure(other, "mail", QueueConfig(max_size=2))
        await eventually(lambda: store.queues.bound("mail") == 2)
        await other.close()
        server.kill()
        for path in blocks(server):
            os.truncate(path, sizes.get(path, 0))
        for index in server.folder.glob("store/jetstream/*/streams/KV_ojs/msgs/index.db"):
            index.unlink()
        server.start()
        later = await open_store(server.url)
        await later.queues.settings("mail")
        await eventually(lambda: later.queues.bound("mail") == 2)
        assert store.queues.bound("mail") == 2


async def remade(store: Store, act: Callable[[], Awaitable[object]]) -> None:
    """Have every copy of settings begin anew behind something that its consumer doesn't tell."""
    stream = store.config.records_stream
    await act()
    for name in (await call(store.nats, f"CONSUMER.NAMES.{stream}"))["consumers"]:
        await call(store.nats, f"CONSUMER.DELETE.{stream}.{name}")


async def test_what_was_deleted_is_not_brought_back(own_server: MakeServer, open_store: OpenStore) -> None:
    """The record that says so has gone by its own time meanwhile, and so has its marker."""
    with own_server() as server:
        store = await open_store(server.url)
        await configure(store, "gone", QueueConfig(max_size=1))
        await configure(store, "stays", QueueConfig(max_size=1))
        await store.queues.settings("gone")
        await store.queues.change("gone", lambda old, moment: None if old is None else deleted(old, moment))
        subjects = [store.config.queue(name) for name in ("gone", "stays")]

        async def purge() -> None:
            for subject in subjects:
                await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": subject})

        await remade(store, purge)

        async def back() -> bool:
            return subjects[1] in await subjects_of(store.nats, store.config.records_stream, store.config.records)

        await eventually(back)
        assert subjects[0] not in await subjects_of(store.nats, store.config.records_stream, store.config.records)
        assert list(store.watches.lost.names) == ["queue.stays"]


async def test_what_is_noted_of_workers_holds_and_is_written_back_for_the_time_that_it_has_left(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    """A lost `quiet` would let the worker go on, lost handlers would bring it jobs of any type."""

    def notes_of(store: Store) -> WorkerNotes:
        return WorkerNotes(store.nats, store.clock, store.config, store.watches)

    with own_server() as server:
        store = await open_store(server.url)
        notes = notes_of(store)
        quiet, gone = WorkerRecord(id="w"), WorkerRecord(id="gone")
        await notes.give(quiet, "quiet")
        await notes.heard(WorkerRecord(id="w", state="drain"))
        await notes.declare("w", (Handler(type="mail.send"),))
        await notes.give(gone, "terminate")
        await notes.withdraw("gone")
        subjects = [f"$KV.ojs.worker.{name}" for name in ("w.directive", "w.handlers", "w.leaving", "gone.directive")]

        async def lose() -> None:
            for subject in subjects:
                await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": subject})

        async def back() -> bool:
            there = await subjects_of(store.nats, store.config.records_stream, store.config.records)
            return {subject for subject in subjects if subject in there} == set(subjects[:3])

        await remade(store, lose)
        await eventually(back)
        for view in (notes, notes_of(await open_store(server.url))):
            told, handled = await view.of(quiet), await view.handled("w")
            assert told is not None
            assert handled is not None
            assert (told.wish, await view.leaving("w")) == ("quiet", True)
            assert [one.type for one in handled.declared] == ["mail.send"]
            assert await view.of(gone) is None
        assert sorted(store.watches.lost.names) == ["worker.w.directive", "worker.w.handlers", "worker.w.leaving"]
        for subject, most_s in zip(subjects[:3], (7 * 86_400, 7 * 86_400, 3_600), strict=True):
            request = {"last_by_subj": subject}
            found = await message(store.nats, store.config.records_stream, request, "a note")
            assert found is not None
            left_s = int((header(found.hdrs, b"Nats-TTL") or b"0s").removesuffix(b"s"))
            assert most_s - 120 <= left_s <= most_s


async def test_a_directive_whose_time_is_over_stays_lost(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        notes = WorkerNotes(store.nats, store.clock, store.config, store.watches)
        old, new = (store.config.record("worker", f"{name}.directive") for name in ("old", "new"))
        given = msgspec.json.encode(Directive("terminate", store.clock.now() - 3_600_000))
        await put(store.nats, old, given, None, "a directive")
        await notes.give(WorkerRecord(id="new"), "terminate")
        await eventually(lambda: notes.of(WorkerRecord(id="old")))

        async def lose() -> None:
            for subject in (old, new):
                await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": subject})

        async def forgotten() -> bool:
            return await notes.of(WorkerRecord(id="old")) is None

        await remade(store, lose)
        await eventually(forgotten)
        assert await notes.of(WorkerRecord(id="new")) is not None
        assert list(store.watches.lost.names) == ["worker.new.directive"]


async def test_a_restored_system_waits_on_where_its_mark_is_lost(own_server: MakeServer, open_store: OpenStore) -> None:
    """Of a process that has asked before. A release leaves a record."""
    with own_server() as server:
        store = await open_store(server.url)
        mark = RestoreMark(namespace="older", taken_at=1, at=2)

        async def lose() -> None:
            request = {"filter": store.config.queue(MAINTENANCE)}
            await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", request)

        await store.queues.change(MAINTENANCE, lambda old, moment: waiting_for_release(old, moment, mark))
        assert await store.queues.wait_for_release()
        await lose()
        assert await store.queues.wait_for_release()
        await store.queues.change(MAINTENANCE, lambda old, moment: waiting_for_release(old, moment, mark))
        await store.queues.change(MAINTENANCE, released)
        assert not await store.queues.wait_for_release()
        await lose()
        assert not await store.queues.wait_for_release()


async def test_after_a_reset_and_in_a_stream_that_was_made_anew_nothing_is_brought_back(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    with own_server() as server:
        store = await open_store(server.url, test_mode=True)
        await configure(store, "mail", QueueConfig(max_size=1))
        await store.queues.settings("mail")
        await store.reset(KINDS)
        await remade(store, store.ping)
        assert await store.queues.all() == {}
        await configure(store, "mail", QueueConfig(max_size=1))
        stream = store.config.records_stream

        async def anew() -> None:
            await call(store.nats, f"STREAM.DELETE.{stream}")
            await open_store(server.url)

        await remade(store, anew)

        async def forgotten() -> bool:
            return await store.queues.all() == {}

        await eventually(forgotten)
        assert store.config.queue("mail") not in await subjects_of(store.nats, stream, store.config.records)
        assert list(store.watches.lost.names) == []

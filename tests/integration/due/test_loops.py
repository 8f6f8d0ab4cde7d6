"""The loops that everything else leans on survive a failure that nobody expected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from integration.conftest import OpenStore
from ojs_engine.jetstream.connection import Connection, Failed
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store, StoreTimings
from ojs_engine.store.workers.presence import PresenceTimings
from ojs_features.events.hub import EventHub
from support.nats import NatsServer
from support.outside import Send, Wanted, tapped
from support.waiting import eventually


class FailingOnce:
    """Fails in a way that nobody expects the first time that it is called for."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == 1:
            raise ValueError("nobody expects this")

    def went_on(self) -> bool:
        return self.calls > 1


def failing(nats: Connection, wanted: Wanted) -> AbstractContextManager[FailingOnce]:
    """Have the first of some requests fail."""
    fails = FailingOnce()

    def tap(_send: Send, subject: str, payload: bytes, *_: object) -> None:
        if wanted(subject, payload):
            fails()

    @contextmanager
    def whole() -> Iterator[FailingOnce]:
        with tapped(nats, tap):
            yield fails

    return whole()


class FailsOnce(str):
    """A text whose first reader fails."""

    __slots__ = ("asked",)

    def __bool__(self) -> bool:
        self.asked = getattr(self, "asked", 0) + 1
        if self.asked == 1:
            raise ValueError("nobody expects this")
        return False


async def test_requests_time_out_after_the_sweep_has_failed(shared_nats_server: NatsServer) -> None:
    nats = Connection("test")
    await nats.connect(shared_nats_server.url)
    await nats.listen("test.silent", lambda _message: None)
    nats.explanation = fails = FailsOnce()
    given_up = nats.request("test.silent", timeout_s=0.1)
    await eventually(lambda: getattr(fails, "asked", 0))
    answer = await asyncio.wait_for(nats.request("test.silent", timeout_s=0.1), 30.0)
    assert answer == Failed("NATS did not answer in time", sent=True)
    given_up.cancel()
    await nats.close()


async def test_time_is_measured_again_after_a_measurement_has_failed(
    shared_nats_server: NatsServer, open_store: OpenStore
) -> None:
    store = await open_store(shared_nats_server.url, timings=StoreTimings(measure_s=0.05))
    with failing(store.nats, lambda subject, _: subject.startswith("$JS.API.STREAM.INFO.")) as measured:
        await eventually(measured.went_on)


async def test_a_service_beats_again_after_a_beat_has_failed(shared_nats_server: NatsServer, open_store: OpenStore) -> None:
    store = await open_store(shared_nats_server.url, timings=StoreTimings(presence=PresenceTimings(beat_s=0.05)))
    with failing(store.nats, lambda subject, _: subject.startswith(store.config.record("service", ""))) as beaten:
        await eventually(beaten.went_on)


class FailingReader(EventReader):
    """Its tail fails the first time."""

    def __init__(self, nats: Connection, config: StoreConfig) -> None:
        super().__init__(nats, config)
        self.fails = FailingOnce()

    def follow(self, *arguments: Any, **named: Any) -> Any:
        self.fails()
        return super().follow(*arguments, **named)


async def test_live_events_come_after_their_tail_has_failed(store: Store) -> None:
    reader = FailingReader(store.bulk, store.config)
    hub = EventHub(reader, most=10, listens_s=2.0)
    subscription = await hub.subscribe(EventFilter())
    await eventually(lambda: reader.fails.calls)
    assert await subscription.next(0.1) is None  # what was stored before is read; what comes now is the tail's to bring
    body = b'{"specversion":"1.0","id":"one","type":"job.progress","source":"test","time":"2026-01-01T00:00:00Z"}'
    await store.nats.request(store.config.event("job.progress", "q", "one"), body)
    try:
        event = await subscription.next(30.0)
    finally:
        subscription.close()
    assert isinstance(event, StoredEvent)
    assert event.subject_id == "one"

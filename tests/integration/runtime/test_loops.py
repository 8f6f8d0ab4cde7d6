"""The loops that everything else leans on survive a failure that nobody expected."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from integration.conftest import OpenStore
from ojs_core.jetstream.connection import Failed
from ojs_core.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_core.store import store as store_module
from ojs_core.store.store import Store
from ojs_core.store.workers import presence
from ojs_gateway.hub import EventHub
from support.nats import NatsServer
from support.waiting import eventually


def failing(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[bool]:
    """Have the next call of something fail in a way that its caller doesn't expect; the list says of each call whether it
    went on.
    """
    original = getattr(owner, name)
    calls: list[bool] = []

    def fail_once(*arguments: Any, **named: Any) -> Any:
        calls.append(bool(calls))
        if len(calls) == 1:
            raise ValueError("nobody expects this")
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, fail_once)
    return calls


async def test_requests_time_out_after_the_sweep_has_failed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = await store.nats.listen("test.silent", lambda _message: None)
    counter = SimpleNamespace(inc=lambda: None)
    failing(monkeypatch, counter, "inc")
    monkeypatch.setattr(store.nats, "_timeouts", counter)
    for _ in range(2):
        answer = await asyncio.wait_for(store.nats.request("test.silent", timeout_s=0.1), 30.0)
        assert answer == Failed("NATS did not answer in time", sent=True)
    await stop()


async def test_time_is_measured_again_after_a_measurement_has_failed(
    shared_nats_server: NatsServer, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_MEASURE_S", 0.05)
    store = await open_store(shared_nats_server.url)
    calls = failing(monkeypatch, store.clock, "measure")
    await eventually(lambda: any(calls))


async def test_a_service_beats_again_after_a_beat_has_failed(
    shared_nats_server: NatsServer, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "BEAT_S", 0.05)
    await open_store(shared_nats_server.url)
    calls = failing(monkeypatch, presence, "put")
    await eventually(lambda: any(calls))


async def test_live_events_come_after_their_tail_has_failed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = EventHub(EventReader(store.bulk, store.config), most=10)
    calls = failing(monkeypatch, hub.reader, "follow")
    subscription = await hub.subscribe(EventFilter())
    await eventually(lambda: calls)
    assert await subscription.next(0.1) is None  # what was stored before is read; what comes now is the tail's to bring
    body = b'{"specversion":"1.0","id":"one","type":"job.progress","source":"test","time":"2026-01-01T00:00:00Z"}'
    await store.nats.request(store.config.event("job.progress", "q", "one"), body)
    try:
        event = await subscription.next(30.0)
    finally:
        subscription.close()
    assert isinstance(event, StoredEvent)
    assert event.subject_id == "one"

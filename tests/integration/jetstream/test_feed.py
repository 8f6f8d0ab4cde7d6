"""Following the records: what is passed on of all that a bucket holds."""

from __future__ import annotations

from typing import get_args

import pytest

from integration.conftest import OpenStore
from integration.samples import draft
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.feed import Feed
from ojs_engine.jetstream.subjects import Kind
from support.nats import NatsServer

READ: dict[str, str] = {
    "job": "job",
    "workflow": "workflow",
    "cron": "cron",
    "worker": "worker",
    "queue": "queue",
    "of_a_feature": "of_a_feature",
    "barrier": "barrier",
}
KINDS = (*get_args(Kind), "of_a_feature")
PARTED = {"of_a_feature", "barrier"}
"""Kinds whose names have several parts."""


@pytest.mark.parametrize("name", ["plain", "of.parts"])
async def test_what_is_followed_is_passed_on_and_nothing_else(
    open_store: OpenStore, nats_server: NatsServer, name: str
) -> None:
    """A note on a worker (`worker.<id>.directive`) isn't its record, and only `reset.epoch` says what is gone."""
    store = await open_store(nats_server.url)
    first = await store.enqueue.push(draft())
    nats = Connection("feed")
    await nats.connect(nats_server.url)
    feed = Feed(nats, store.config, "kinds", ["of_a_feature"])
    try:
        for kind in KINDS:
            await store.nats.request(store.config.record(kind, name), b"{}", "Nats-TTL: 60s\r\n")
        last = await store.enqueue.push(draft())
        found = (await feed.next(1.0)).records
        ids = [record.job_id for record in found]
        between = found[ids.index(first.id) + 1 : ids.index(last.id)]
        followed = set(READ) if name == "plain" else {*PARTED, "job"}
        kinds = [kind for kind in KINDS if kind in followed]
        assert [record.kind for record in between] == [READ[kind] for kind in kinds]
        assert [record.sequence for record in found] == sorted(record.sequence for record in found)
    finally:
        feed.close()
        await nats.close()


async def test_a_batch_of_nothing_that_is_followed_is_gone_past(open_store: OpenStore, nats_server: NatsServer) -> None:
    store = await open_store(nats_server.url)
    nats = Connection("feed")
    await nats.connect(nats_server.url)
    feed = Feed(nats, store.config, "nothing")
    try:
        for number in range(1_500):
            store.nats.publish(store.config.record("blob", f"{number}.op.result"), b"x")
        pushed = await store.enqueue.push(draft())
        found: list[str] = []
        for _ in range(3):
            found += [record.job_id for record in (await feed.next(1.0)).records]
        assert pushed.id in found
    finally:
        feed.close()
        await nats.close()

"""Who answers while an index is built, and what becomes of answers while it can't be written."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import patient, projecting
from integration.samples import draft, message, unreachable
from ojs_engine.base.errors import OjsError
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_features.all import FOLLOWED
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import JobsAsk
from ojs_index.sqlite.orders import Ordering
from ojs_projector.projector import Projector, ProjectorTimings
from support.nats import NatsServer
from support.waiting import eventually

ASKED = 30
LATE_S = 4.0
"""Longer than settings are waited for where a request needs them."""


class HeldOrdering(Ordering):
    """The end of a rebuild, which nothing reaches before `let_go` is set."""

    def __init__(self, path: Path, let_go: asyncio.Event) -> None:
        super().__init__(path)
        self._let_go = let_go

    async def run(self) -> None:
        await self._let_go.wait()
        await super().run()


async def test_one_that_builds_its_index_is_asked_only_where_no_other_has_a_whole_one(
    store: Store,
    start_projector: StartProjector,
    open_here: OpenStore,
    tmp_path: Path,
) -> None:
    first = await start_projector(in_memory=True)
    for _ in range(3):
        await store.enqueue.push(draft())
    held = asyncio.Event()
    ordering = partial(HeldOrdering, let_go=held)
    second = Projector(await open_here(role="projector"), tmp_path / "second", ordering=ordering, features=FOLLOWED)
    await second.start()
    queries = patient(store)
    try:
        await eventually(lambda: is_reading(second))
        pages = [await queries.jobs(JobsAsk()) for _ in range(ASKED)]
        assert {(page.partial, page.total) for page in pages} == {(False, 3)}

        await first.stop()
        page = await queries.jobs(JobsAsk())
        assert (page.partial, page.jobs) == (True, [])
        assert 0 < page.progress < 1
        totals = await queries.totals()
        assert (totals.partial, totals.counts.available) == (True, 3)

        held.set()
        await eventually(lambda: is_whole(queries))
        assert (await queries.jobs(JobsAsk())).total == 3
    finally:
        await second.stop()
    with pytest.raises(OjsError, match="no projector answers"):
        await queries.totals()


async def is_reading(started: Projector) -> bool:
    status = started.status()
    return status.partial and status.progress > 0.5


async def is_whole(queries: Queries) -> bool:
    return not (await queries.totals()).partial


@projecting(ProjectorTimings(full_s=0.05))
async def test_it_goes_on_when_its_full_disk_has_room_again(store: Store, start_projector: StartProjector) -> None:
    started = await start_projector()
    await store.enqueue.push(draft())
    queries = Queries(store)
    assert (await queries.jobs(JobsAsk())).total == 1
    assert started._model is not None
    db = started._model.db
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    for number in range(200):
        await store.enqueue.push(draft(type=f"type.{number}"))
    with pytest.raises(OjsError, match=r"behind|slow"):
        await queries.totals()
    db.execute("PRAGMA max_page_count = 1000000")
    await eventually(lambda: counts(queries, 201))
    page = await queries.jobs(JobsAsk(limit=200))
    assert (page.total, page.partial) == (201, False)


async def counts(queries: Queries, number: int) -> bool:
    try:
        return (await queries.totals()).counts.available == number
    except OjsError:
        return False


async def test_what_is_asked_from_elsewhere_than_an_inbox_is_not_answered(
    store: Store, start_projector: StartProjector
) -> None:
    await start_projector(in_memory=True)
    queries = patient(store)
    await eventually(lambda: is_whole(queries))
    refused = metrics.REPLIES_REFUSED.value
    for name in ("status", "relayed"):
        for reply in (store.config.job("any"), store.config.reset, "_INBOX.*"):
            store.nats.publish(store.config.query(name), b"{}", reply=reply)
    await eventually(lambda: metrics.REPLIES_REFUSED.value == refused + 6)
    assert (await queries.totals()).counts.available == 0
    assert await message(store, store.config.job("any")) is None


async def test_a_projector_waits_at_its_start_for_settings_that_nats_sends_late(
    nats_server: NatsServer, open_store: OpenStore, tmp_path: Path
) -> None:
    store = await open_store(nats_server.url, role="projector")
    projector = Projector(store, tmp_path / "late", features=FOLLOWED)
    late = asyncio.get_running_loop().time() + LATE_S
    with unreachable(store.nats, f"$JS.API.CONSUMER.CREATE.{store.config.records_stream}", times=1_000_000) as refused:
        starting = asyncio.create_task(projector.start())
        await eventually(lambda: refused and asyncio.get_running_loop().time() > late)
        assert not starting.done()
    await starting
    await projector.stop()

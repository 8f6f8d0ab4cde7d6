"""An index that is built from nothing over many records says how far it has come, and is right when it is done."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import State
from ojs_engine.jetstream.event_reader import EventReader
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import QueueAsk, QueuesAsk
from ojs_index.asking.numbers import Counts, Queue
from support.nats import NatsServer
from support.stored_records import QUEUES, records, store_records
from support.system import Command, Processes
from support.truth import all_jobs, counts_of
from support.waiting import answered, in_the_end

RECORDS = int(os.environ.get("TEST_RECORDS", "6000"))
"""Of a bucket that is read."""

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture
async def store(nats_server: NatsServer) -> AsyncIterator[Store]:
    store = await Store.open(nats_server.url, StoreConfig(), role="gateway", features=STORE_FEATURES)
    yield store
    await store.close()


def projector(processes: Processes) -> Command:
    return processes.start("projector", "--projector-data", str(processes.folder / "index"))


async def relayed(queries: Queries) -> bool:
    with contextlib.suppress(OjsError):
        await queries.until_relayed()
        return True
    return False


@pytest.mark.timeout(300)
async def test_a_rebuild_shows_its_progress_and_ends_with_exact_counts(processes: Processes, store: Store) -> None:
    queries = Queries(store)
    first = projector(processes)
    await asyncio.to_thread(first.ready)
    await store_records(store, records(RECORDS, store.clock.now()))
    # A successor that had all events to relay as well would be measured by these.
    await in_the_end(lambda: relayed(queries), EventReader(store.bulk, store.config).last_sequence)
    expected = counts_of(await all_jobs(store))
    assert sum(sum(numbers.values()) for numbers in expected.values()) == RECORDS
    first.kill()
    shutil.rmtree(processes.folder / "index")

    began = time.monotonic()
    projector(processes)
    seen: list[Queue] = []

    async def complete() -> bool:
        """Ask without a barrier, which an answer would wait for."""
        with contextlib.suppress(OjsError):
            seen.append(await queries._send("queue", QueueAsk(name=QUEUES[0]), Queue))
            return not seen[-1].partial
        return False

    async def shown_last() -> float:
        return seen[-1].progress if seen else 0.0

    await in_the_end(complete, shown_last, every=0.005)
    took = time.monotonic() - began
    partial = [queue for queue in seen if queue.partial]
    print(f"{RECORDS} records in {took:.1f} s with the start of the process, {len(partial)} answers meanwhile")  # noqa: T201
    assert partial, "nobody saw it at work"
    shown = [queue.progress for queue in partial]
    assert shown == sorted(shown)
    assert any(0 < progress < 1 for progress in shown), shown
    assert len({queue.counts.total for queue in partial}) > 1, "what is there is answered"
    assert all(within(queue.counts, expected[QUEUES[0]]) for queue in partial)

    page = await answered(queries.queues, QueuesAsk())
    assert (page.partial, page.progress) == (False, 1.0)
    assert {queue.name: {state: getattr(queue.counts, state) for state in State} for queue in page.queues} == expected
    stats = await answered(queries.dead_letter_stats)
    assert (stats.total, stats.partial) == (RECORDS // 10, False)


def within(counts: Counts, final: dict[str, int]) -> bool:
    """Each record is there once, so all that is counted along the way stays."""
    return all(getattr(counts, state) <= final[state] for state in State)

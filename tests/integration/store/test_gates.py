"""The engine passes a gate with those jobs alone that ask for it, whatever feature has brought it (docs/adr/014)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from types import FrameType
from typing import Any

import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.samples import draft, fetch
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.store.gates import FREE, Asks, Candidate, LaneRule, QueueGate, Start, Verdict, Verdicts
from ojs_engine.store.store import FeatureGates, Store, StoreFeatures
from support.nats import NatsServer
from support.outside import before

LIMITS = ("/ojs_features/", "/domain/rate_limits/")


@contextmanager
def entered() -> Iterator[set[str]]:
    """The files of limits in which a function is called within the block."""
    found: set[str] = set()

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in LIMITS):
            found.add(frame.f_code.co_filename.rpartition("/")[2])

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield found
    finally:
        sys.setprofile(before)


class Door:
    """A gate of nobody's: jobs with members of their own start while it is open."""

    def __init__(self, _store: Store) -> None:
        self.asks: Asks = attrgetter("extra")
        self.push = self.start = self
        self.open = False
        self.noted: list[str] = []
        self.emptied_by: list[str | None] = []
        self.unstarted: list[str] = []

    async def clear(self) -> None:
        return

    async def note(self, drafts: Sequence[Job]) -> None:
        self.noted += [draft.id for draft in drafts]

    def of_queue(self, _config: QueueConfig) -> None:
        return

    async def judge(self, _queue: str, _own: QueueGate | None, candidates: Sequence[Candidate]) -> Verdicts:
        return Verdicts([self._verdict(one) for one in candidates])

    def _verdict(self, one: Candidate) -> Verdict:
        if not self.asks(one.job):
            return FREE
        return Start(one.moment.now, ("door",)) if self.open else "back"

    async def turn_away(self, candidates: Sequence[Candidate]) -> Sequence[Verdict]:
        return ["back"] * len(candidates)

    async def refused(self, unstarted: Iterable[tuple[Candidate, Start]]) -> None:
        self.unstarted += [candidate.job.id for candidate, _ in unstarted]

    async def missed(self, _job: Job) -> None:
        return

    async def emptied(self, _queue: str, last: str | None) -> None:
        self.emptied_by.append(last)

    async def held(self, _jobs: Sequence[Job], _grace_ms: int) -> set[str]:
        return set()

    def held_under(self, _job: Job) -> None:
        return


@pytest.fixture
async def gated(open_store: OpenStore, store: Store, shared_nats_server: NatsServer) -> Store:
    """A store whose only gate is a door, in the namespace of `store`."""
    gates = FeatureGates(lanes=LaneRule(attrgetter("extra"), lambda _job: "key"), make=Door)
    return await open_store(shared_nats_server.url, namespace=store.config.namespace, features=StoreFeatures(gates=gates))


async def whole_life(store: Store, job: Job) -> None:
    await store.enqueue.push(job)
    [fetched] = await fetch(store, job.queue, worker="w", wait_ms=5_000)
    holder = transitions.JobHolder(worker="w", attempt=fetched.attempt)
    await store.jobs.change(fetched.id, lambda found, moment: transitions.ack(found, Raw(b"1"), holder, moment))


async def test_a_plain_job_enters_no_module_of_limits(store: Store, queue: str) -> None:
    await whole_life(store, draft(queue=queue))
    with entered() as files:
        for _ in range(20):  # by then its queue has a consumer of its own
            await whole_life(store, draft(queue=queue))
        await store.enqueue.push_all([draft(queue=queue) for _ in range(3)])
        assert len(await fetch(store, queue, count=3, wait_ms=5_000)) == 3
    assert not files


async def test_a_job_that_asks_for_a_limit_passes_it(store: Store, queue: str) -> None:
    with entered() as files:
        await whole_life(store, draft(queue=queue, rate_limit=Raw(b'{"key": "k", "concurrency": 1}')))
    assert {"limiter.py", "permits.py"} <= files


async def test_a_gate_sees_those_jobs_that_ask_for_it_and_decides_when_they_start(gated: Store, queue: str) -> None:
    door = gated.of(Door)
    plain = await gated.enqueue.push(draft(queue=queue))
    asking = await gated.enqueue.push(draft(queue=queue, extra={"vip": Raw(b"true")}))
    assert door.noted == [asking.id]
    assert await gated.dispatcher.stream.subjects(queue) == {
        gated.config.ready(queue, 0): 1,
        gated.config.ready(queue, 0, "key"): 1,
    }
    assert [job.id for job in await fetch(gated, queue, count=5, wait_ms=0)] == [plain.id]
    assert (await gated.jobs.get(asking.id)).state is State.AVAILABLE
    door.open = True
    [started] = await fetch(gated, queue, count=5, wait_ms=5_000)
    assert (started.id, started.permits) == (asking.id, ("door",))
    assert door.emptied_by == [asking.id]


async def test_a_leave_that_led_to_no_start_goes_back_to_its_gate(gated: Store, other: Store, queue: str) -> None:
    door = gated.of(Door)
    door.open = True
    asking = await gated.enqueue.push(draft(queue=queue, extra={"vip": Raw(b"true")}))

    async def is_cancelled() -> None:
        await other.jobs.change(asking.id, transitions.cancel)

    with before(gated.nats, gated.config.job(asking.id), is_cancelled):
        assert await fetch(gated, queue, wait_ms=0) == []
    assert door.unstarted == [asking.id]


async def test_a_store_without_features_pushes_spawns_and_retries_jobs(
    open_store: OpenStore, store: Store, shared_nats_server: NatsServer, queue: str
) -> None:
    bare = await open_store(shared_nats_server.url, namespace=store.config.namespace, features=StoreFeatures())
    pushed = await bare.enqueue.push_all([draft(queue=queue) for _ in range(2)])
    named = draft(queue=queue)
    assert await bare.spawner.missing([pushed[0].id, named.id], tend=False) == [named.id]
    async with bare.enqueue.places([named], lambda error, _index: error):
        assert await bare.spawner.ensure([named]) == []
    await bare.jobs.change(pushed[0].id, transitions.cancel)
    revived = (await bare.jobs.revive(pushed[0].id, transitions.retry_one)).after
    assert revived.state is State.AVAILABLE
    found = {job.id for job in await fetch(bare, queue, count=9, wait_ms=5_000)}
    assert found == {*(job.id for job in pushed), named.id}

"""WorkerNotes reach a worker through every gateway, and outlive those that gave them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.conftest import OpenStore
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.handlers import Handler
from ojs_engine.store.store import Store
from ojs_engine.store.workers.notes import Directive, WorkerNotes
from ojs_engine.store.workers.presence import WorkerRecord
from support.nats import NatsServer
from support.waiting import eventually

SECONDS = 30.0
Watching = Callable[[Store], WorkerNotes]


pytestmark = pytest.mark.usefixtures("own_stores")
"""A view of notes ends with its store."""


@pytest.fixture
def watching() -> Watching:
    """A gateway's view."""
    return lambda store: WorkerNotes(store.nats, store.clock, store.config, store.watches)


async def told(view: WorkerNotes, worker: WorkerRecord, wish: str | None) -> None:
    async def is_known() -> bool:
        directive = await view.of(worker)
        return (None if directive is None else directive.wish) == wish

    await eventually(is_known, SECONDS)


async def test_every_gateway_hears_of_a_directive_and_of_its_end(store: Store, other: Store, watching: Watching) -> None:
    here, there = watching(store), watching(other)
    worker = WorkerRecord(id="any text: *.>")
    assert await there.of(worker) is None
    await here.give(worker, "quiet")
    assert (await here.of(worker) or Directive("running", 0)).wish == "quiet", "who gave it need not wait"
    await told(there, worker, "quiet")
    assert await there.of(WorkerRecord(id="another")) is None
    await there.give(worker, "terminate")
    await told(here, worker, "terminate")
    await here.withdraw(worker.id)
    assert await here.of(worker) is None
    await told(there, worker, None)


async def test_a_directive_outlives_gateways_and_the_server(
    own_server: Callable[..., NatsServer], open_store: OpenStore, watching: Watching
) -> None:
    worker = WorkerRecord(id="w")
    with own_server() as server:
        store = await open_store(server.url)
        first = watching(store)
        await first.give(worker, "quiet")
        await store.watches.stop()
        server.kill()
        server.start()
        later = watching(await open_store(server.url))
        await told(later, worker, "quiet")


async def test_a_gateway_that_has_just_started_ends_a_directive(store: Store, other: Store, watching: Watching) -> None:
    worker = WorkerRecord(id="anew")
    first = watching(store)
    await first.give(worker, "terminate")
    await watching(other).withdraw(worker.id)
    await told(first, worker, None)


async def test_a_directive_is_for_one_life_of_a_worker(store: Store, watching: Watching) -> None:
    view = watching(store)
    first = WorkerRecord(id="life", pid=1, started_at="2027-01-01T00:00:00Z")
    await view.give(first, "terminate")
    assert await view.of(first) is not None
    assert await view.of(WorkerRecord(id="life", pid=1)) is not None, "a heartbeat needs not say it all"
    assert await view.of(WorkerRecord(id="life", pid=2)) is None
    assert await view.of(WorkerRecord(id="life", pid=1, started_at="2027-01-02T00:00:00Z")) is None


async def answered(view: WorkerNotes, state: str) -> str:
    """What a heartbeat that reports a state is answered, by what an operator wants."""
    directive = await view.unmet(WorkerRecord(id="met", state=state, pid=1))
    return state if directive is None else directive.wish


async def test_a_directive_ends_when_the_worker_reports_what_it_asks_for(
    store: Store, other: Store, watching: Watching
) -> None:
    here, there = watching(store), watching(other)
    worker = WorkerRecord(id="met", pid=1)
    await here.give(worker, "quiet")
    assert [await answered(here, state) for state in ("running", "running", "quiet")] == ["quiet", "quiet", "quiet"]
    await here.give(worker, "running")
    await told(there, worker, "running")
    assert [await answered(there, state) for state in ("quiet", "quiet", "running")] == ["running"] * 3
    assert await answered(there, "quiet") == "quiet", "what it does by itself later isn't undone"
    await told(here, worker, None)
    assert await answered(here, "quiet") == "quiet"


async def test_a_directive_that_is_met_does_not_end_the_one_that_came_after_it(
    store: Store, other: Store, watching: Watching
) -> None:
    here, there = watching(store), watching(other)
    worker = WorkerRecord(id="met", pid=1)
    await here.give(worker, "quiet")
    await told(here, worker, "quiet")
    await store.watches.stop()  # it hears no more, and goes by what it knows
    await there.give(worker, "running")
    assert await answered(here, "quiet") == "quiet"
    assert await answered(there, "quiet") == "running"


async def test_a_gateway_reads_what_a_worker_has_declared_through_another_before_it_has_heard_of_it(
    store: Store, other: Store, watching: Watching
) -> None:
    here, there = watching(store), watching(other)
    handlers = (Handler("a.b", ">=1.0"),)
    with pytest.raises(OjsError) as refusal:
        await there.declared("declares")
    assert refusal.value.code == "not_found"
    await other.watches.stop()  # it hears no more
    await here.withdraw("declares", handlers)
    assert await there.handled("declares") is None
    assert (await there.declared("declares")).declared == handlers
    await here.withdraw("declares")
    with pytest.raises(OjsError):
        await here.declared("declares")


async def test_a_heartbeat_does_not_wait_for_directives_without_nats(
    own_server: Callable[..., NatsServer], open_store: OpenStore, watching: Watching
) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        server.kill()
        await eventually(lambda: not store.connected, SECONDS)
        assert await watching(store).of(WorkerRecord(id="w")) is None


async def test_every_gateway_hears_that_a_worker_leaves_and_that_it_goes_on(
    store: Store, other: Store, watching: Watching
) -> None:
    here, there = watching(store), watching(other)

    async def settled(leaving: bool) -> None:
        async def is_known() -> bool:
            return await there.leaving("w.leaves") == leaving

        await eventually(is_known, SECONDS)

    assert not await there.leaving("w.leaves")
    for state, leaving, first in (
        ("quiet", True, True),
        ("running", False, False),
        ("drain", True, True),
        ("terminate", True, False),
    ):
        assert await here.heard(WorkerRecord(id="w.leaves", state=state)) is first
        assert await here.leaving("w.leaves") == leaving, "who heard it need not wait"
        await settled(leaving)
        assert not await there.leaving("w")
    await there.withdraw("w.leaves")
    assert not await there.leaving("w.leaves")

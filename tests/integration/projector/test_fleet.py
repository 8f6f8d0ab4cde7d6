"""Workers that fall silent, as operators see them."""

from __future__ import annotations

from typing import cast

import pytest

from integration.projector.conftest import StartProjector
from integration.projector.samples import patient
from integration.samples import draft, fetch
from ojs_engine.api.call import Call
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import STOPPED, WorkerRecord
from ojs_gateway.context import Context
from ojs_gateway.handlers.worker_admin import WorkerAdminHandlers
from ojs_index.asking.messages import WorkersAsk
from ojs_projector.projector import Projector
from ojs_runtime.settings import Settings
from support.call import answered
from support.outside import clock_of
from support.waiting import eventually


class Asked:
    """A request without a body."""

    def __init__(self, *parameters: str) -> None:
        self.parameters = parameters


def asked(*parameters: str) -> Call:
    return cast("Call", Asked(*parameters))


pytestmark = pytest.mark.usefixtures("own_stores")
"""What a context keeps ends with its store."""


@pytest.fixture
def context(store: Store, projector: Projector) -> Context:
    del projector  # it answers
    return Context(store, PayloadLimits(), Settings(), ())


async def test_a_silent_worker_is_stale_and_can_be_removed(
    store: Store, projector: Projector, context: Context, queue: str
) -> None:
    fleet = WorkerAdminHandlers(context)
    await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, worker="w")
    await store.workers.beat(WorkerRecord(id="w", hostname="box"))
    await context.worker_notes.give(WorkerRecord(id="w"), "quiet")
    with pytest.raises(OjsError, match="last 30 s"):
        await fleet.remove(asked("w"))
    for one in (store, projector._store):
        clock_of(one).ahead_ms = 60_000
    view = answered(await fleet.read(asked("w")))
    assert (view["state"], view["directive"], view["active_jobs"], view["hostname"]) == ("stale", "quiet", 1, "box")
    page = await context.queries.workers(WorkersAsk(state="stale"))
    assert (page.total, page.summary.stale, page.summary.running) == (1, 1, 0)
    assert (await fleet.remove(asked("w"))).status == 200
    assert (await context.queries.workers(WorkersAsk())).workers == []
    assert (await context.worker_notes.of(WorkerRecord(id="w"))) is None
    record = await store.workers.get("w")
    assert record is not None
    assert record.state == STOPPED, "the reaper still finds out whose jobs they were"


async def test_a_projector_that_starts_late_knows_the_workers(store: Store, start_projector: StartProjector) -> None:
    for number in range(3):
        await store.workers.beat(WorkerRecord(id=f"w{number}", queues=("q",)))
    await store.workers.remove("w1")
    await start_projector(in_memory=True)
    queries = patient(store)

    async def complete() -> bool:
        return not (await queries.workers(WorkersAsk())).partial

    await eventually(complete)
    page = await queries.workers(WorkersAsk())
    assert [(row.record.id, row.record.queues) for row in page.workers] == [("w0", ("q",)), ("w2", ("q",))]

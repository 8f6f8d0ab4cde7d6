"""What decides or acts by the index of jobs waits until it is whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import State
from ojs_features.bulk.selection import Filter, Selection
from ojs_features.bulk.targets import BulkTargets
from ojs_features.dead_letters.handlers import DeadLetterHandlers
from ojs_features.pools.handlers import PoolHandlers
from ojs_gateway.handlers.queues import QueueHandlers
from ojs_gateway.handlers.worker_admin import WorkerAdminHandlers
from ojs_index.asking.messages import JobPage, WorkerPage, WorkerSummary
from ojs_index.asking.numbers import Counts, Queue
from support.call import Request

HALF: dict[str, Any] = {"partial": True, "progress": 0.5}
JOBS = JobPage(jobs=[], total=None, **HALF)
WORKERS = WorkerPage(workers=[], total=0, summary=WorkerSummary(total=0, running=0, quiet=0, terminate=0, stale=0), **HALF)

QUEUE = Queue(name="q", counts=Counts(), dead_letter=0, **HALF)


class Index:
    """One that is being built and has found nothing yet."""

    async def jobs(self, _ask: object) -> JobPage:
        return JOBS

    async def dead_letters(self, _ask: object) -> JobPage:
        return JOBS

    async def queue(self, _name: str) -> Queue:
        return QUEUE

    async def workers(self, _ask: object) -> WorkerPage:
        return WORKERS


class OnePool:
    """The pools: there is one."""

    async def all(self) -> list[object]:
        return [object()]


class NoRecords:
    """Settings of queues: nobody has made any."""

    async def get(self, _name: str) -> None:
        return None


def context() -> Any:
    store = SimpleNamespace(
        queues=NoRecords(), of=lambda _make: OnePool(), clock=SimpleNamespace(now=lambda: 1_800_000_000_000)
    )
    return SimpleNamespace(store=store, queries=Index(), limits=PayloadLimits(), worker_notes=None, features=())


def request(body: object = None) -> Request:
    return Request(body, parameters=("q",))


async def purge() -> object:
    return await QueueHandlers(context()).purge(request({"states": ["available"], "confirm": True}))


async def delete_queue() -> object:
    return await QueueHandlers(context()).delete(request({"strategy": "discard"}))


async def retry_dead_letters() -> object:
    return await DeadLetterHandlers(context()).retry_all(request({"filter": {}, "confirm": True}))


async def match() -> object:
    return await BulkTargets(context().store, context().queries).of(
        Selection(filter=Filter(states=(State.AVAILABLE,)), job_ids=(), limit=10, cursor=None)
    )


async def read_queue() -> object:
    return await QueueHandlers(context()).read(request())


async def read_worker() -> object:
    return await WorkerAdminHandlers(context()).read(request())


async def direct_all_workers() -> object:
    return await WorkerAdminHandlers(context()).direct_all(request({"directive": "quiet"}))


async def list_pools() -> object:
    return await PoolHandlers(context()).list(request())


DECIDING = [purge, delete_queue, retry_dead_letters, match, read_queue, read_worker, direct_all_workers, list_pools]


@pytest.mark.parametrize("ask", DECIDING)
async def test_it_is_refused_for_the_time_being(ask: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(OjsError, match="is being built") as refused:
        await ask()
    assert (refused.value.code, refused.value.retry_after) == ("backend_unavailable", 5)

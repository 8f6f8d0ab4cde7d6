"""What decides or acts by the index of jobs waits until it is whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ojs_gateway.dead_letter import DeadLetter
from ojs_gateway.fleet import Fleet
from ojs_gateway.matches import Matches
from ojs_gateway.queues import Queues
from ojs_nats.errors import OjsError
from ojs_nats.job import State
from ojs_nats.queries import Counts, JobPage, Queue, WorkerPage, WorkerSummary
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.selection import Filter, Selection

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


class NoRecords:
    """Settings of queues: nobody has made any."""

    async def get(self, _name: str) -> None:
        return None


def context() -> Any:
    store = SimpleNamespace(queues=NoRecords(), clock=SimpleNamespace(now=lambda: 1_800_000_000_000))
    return SimpleNamespace(store=store, queries=Index(), limits=Limits(), directives=None)


def request(body: object = None) -> Any:
    async def read() -> bytes:
        return b"" if body is None else msgspec.json.encode(body)

    return SimpleNamespace(
        parameters=("q",), queries={}, query=lambda _name: None, body=read, dialect=SimpleNamespace(queue_as_text=False)
    )


async def purge() -> object:
    return await Queues(context()).purge(request({"states": ["available"], "confirm": True}))


async def delete_queue() -> object:
    return await Queues(context()).delete(request({"strategy": "discard"}))


async def retry_dead_letters() -> object:
    return await DeadLetter(context()).retry_all(request({"filter": {}, "confirm": True}))


async def match() -> object:
    return await Matches(context()).of(Selection(filter=Filter(states=(State.AVAILABLE,)), job_ids=(), limit=10, cursor=None))


async def read_queue() -> object:
    return await Queues(context()).read(request())


async def read_worker() -> object:
    return await Fleet(context()).read(request())


@pytest.mark.parametrize("ask", [purge, delete_queue, retry_dead_letters, match, read_queue, read_worker])
async def test_it_is_refused_for_the_time_being(ask: Callable[[], Awaitable[object]]) -> None:
    with pytest.raises(OjsError, match="is being built") as refused:
        await ask()
    assert (refused.value.code, refused.value.retry_after) == ("backend_unavailable", 5)

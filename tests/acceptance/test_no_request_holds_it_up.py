"""The worst requests that the limits allow, and whether others are answered meanwhile (docs/adr/031)."""

from __future__ import annotations

import asyncio
import gzip
import io
import itertools
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from support.examples import amount
from support.system import Services
from support.waiting import eventually

pytestmark = pytest.mark.slow

Session = aiohttp.ClientSession
Work = Callable[[], Coroutine[Any, Any, None]]

MEBIBYTE = 1_048_576
PATIENCE_S = 0.25
"""How long the gateway may compute while another request waits for it. That is what others wait on a machine that has nothing
else to do; here, where tests run side by side, the time on the clock says little of the gateway.
"""
SOON_S = 0.005
"""So long is a pause between two questions. Without one, they cost as much as what they are asked beside."""
TRIES = 4
"""Its other threads take turns with the loop, and more of them while the machine is busy: the quickest of some tries counts."""
TICKS = os.sysconf("SC_CLK_TCK")
JSON = {"Content-Type": "application/json"}
NUMBERS = itertools.count()
WHOLE = amount() == "all"
UNIQUE_JOBS = 1_000 if WHOLE else 400
"""Reading 400 of 3 KB takes twice as long as others may be held up."""
PUSHED_ALONE = 1_000 if WHOLE else 100
"""Of a bulk push, where each costs more than reading its bytes. Fewer are larger: together they take as long to be read."""
STEPS = 10_000 if WHOLE else 5_000


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A gateway in a process of its own, which nothing is asked for in the background. It isn't emptied in between."""
    with Services.started(tmp_path_factory.mktemp("gateway"), "gateway") as services:
        yield services


@pytest.fixture
def telling(tmp_path: Path) -> Iterator[Services]:
    """One with the projector that tells it of events."""
    with Services.started(tmp_path, "gateway", "projector") as services:
        yield services


@pytest.fixture
async def http(system: Services) -> AsyncIterator[Session]:
    async with aiohttp.ClientSession(system.url) as session:
        yield session


def nested(size: int) -> str:
    """A list of empty lists, of about so many bytes: the most objects that a parser can be made to make."""
    return "[" + "[]," * (size // 3 - 1) + "[]]"


def job(args: str, **options: Any) -> str:
    return f'{{"type":"worst.case","args":{args},"options":{json.dumps({"queue": f"worst-{next(NUMBERS)}", **options})}}}'


UNIQUE = {"unique": {"keys": ["args"], "on_conflict": "replace"}}


def batch(jobs: list[str]) -> str:
    return f'{{"jobs":[{",".join(jobs)}]}}'


def steps(number: int, needs: Callable[[int], list[str]]) -> str:
    made = [{"id": f"s{at}", "type": "a", "args": [], "depends_on": needs(at)} for at in range(number)]
    return json.dumps({"steps": made})


def callbacks(members: int, called: int) -> str:
    made: list[dict[str, Any]] = [{"id": f"s{at}", "type": "a", "args": []} for at in range(members)]
    made += [{"id": f"c{at}", "type": "a", "args": [], "callback_type": "on_success"} for at in range(called)]
    return json.dumps({"steps": made})


def numbers(size: int) -> str:
    return "[" + "1," * (size // 2 - 1) + "1]"


CASES: dict[str, tuple[str, Callable[[], str | bytes], dict[str, str], int]] = {
    "gzip of 200,000 members": ("jobs", lambda: gzip.compress(b"") * 200_000, {"Content-Encoding": "gzip"}, 400),
    "a gzip bomb": ("jobs", lambda: gzip.compress(b" " * 100_000_000), {"Content-Encoding": "gzip"}, 413),
    "a job of empty lists": ("jobs", lambda: job(nested(MEBIBYTE - 1_000)), {}, 201),
    "a unique job of numbers": ("jobs", lambda: job(numbers(MEBIBYTE - 1_000), **UNIQUE), {}, 201),
    "a batch of empty lists": ("jobs/batch", lambda: f'{{"jobs":{nested(4 * MEBIBYTE - 100)}}}', {}, 413),
    "a batch of numbers": ("jobs/batch", lambda: f'{{"jobs":{numbers(4 * MEBIBYTE - 100)}}}', {}, 413),
    "a batch of big unique jobs": (
        "jobs/batch",
        lambda: batch([job(f"[{at},{numbers(MEBIBYTE - 20_000)}]", **UNIQUE) for at in range(2)]),
        {},
        201,
    ),
    "a batch of many unique jobs": (
        "jobs/batch",
        lambda: batch([job(f'["{at}",{nested(3_000)}]', **UNIQUE) for at in range(UNIQUE_JOBS)]),
        {},
        201,
    ),
    "a batch of as many jobs as there may be": ("jobs/batch", lambda: batch(['{"type":"a","args":[]}'] * 10_000), {}, 201),
    "a bulk push of unique jobs": (
        "jobs/bulk",
        lambda: batch([job(f'["{at}",{nested(3_000 * UNIQUE_JOBS // PUSHED_ALONE)}]', **UNIQUE) for at in range(PUSHED_ALONE)]),
        {},
        201,
    ),
    "a workflow of 9,000 steps in a row": ("workflows", lambda: steps(9_000, lambda at: [f"s{at - 1}"] if at else []), {}, 201),
    "a workflow of 9,000 steps in a circle": ("workflows", lambda: steps(9_000, lambda at: [f"s{(at + 1) % 9_000}"]), {}, 400),
    "a workflow of many steps": ("workflows", lambda: steps(STEPS, lambda _at: []), {}, 201),
    "a workflow of many callbacks": ("workflows", lambda: callbacks(5_000, 5_000), {}, 400),
    "a workflow of many dependencies": ("workflows", lambda: steps(700, lambda at: [f"s{i}" for i in range(at)]), {}, 201),
    "a workflow of empty lists": ("workflows", lambda: f'{{"type":"group","jobs":{nested(4 * MEBIBYTE - 100)}}}', {}, 400),
    "a heartbeat of labels": (
        "workers/heartbeat",
        lambda: f'{{"worker_id":"w","active_jobs":[],"labels":{nested(4 * MEBIBYTE - 100)}}}',
        {},
        413,
    ),
    "a small heartbeat of labels": (
        "workers/heartbeat",
        lambda: f'{{"worker_id":"w","active_jobs":[],"labels":{nested(262_000)}}}',
        {},
        200,
    ),
    "a fetch from a million queues": ("workers/fetch", lambda: json.dumps({"queues": ["a"] * 1_000_000}), {}, 413),
    "ids of a million jobs": ("jobs/bulk/cancel", lambda: json.dumps({"job_ids": ["a"] * 1_000_000}), {}, 413),
}


def computed(pid: int) -> float:
    """The CPU time of a process so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def slowest_beside(system: Services, work: Work) -> float:
    """The most that the gateway computed from the answer to one /healthz to that of the next, which follows soon, while
    something else was done, in seconds.
    """
    task = asyncio.create_task(work())
    pid = system.running["gateway"].pid
    slowest, before = 0.0, computed(pid)
    async with aiohttp.ClientSession(system.url) as other:
        while not task.done():
            async with other.get("/healthz") as answer:
                assert answer.status == 200
            now = computed(pid)
            slowest, before = max(slowest, now - before), now
            await asyncio.sleep(SOON_S)
    await task
    return slowest


async def assert_others_are_answered(system: Services, work: Work) -> None:
    found = []
    for _ in range(TRIES):
        found.append(await slowest_beside(system, work))
        if found[-1] < PATIENCE_S:
            return
    pytest.fail(f"others waited while the gateway computed for {', '.join(f'{seconds:.2f}' for seconds in found)} s")


@pytest.mark.parametrize("name", CASES)
async def test_the_worst_that_a_client_may_send_leaves_others_their_answers(system: Services, http: Session, name: str) -> None:
    path, made, headers, status = CASES[name]
    body = made()

    async def send() -> None:
        data = io.BytesIO(body if isinstance(body, bytes) else body.encode())
        async with http.post(f"/ojs/v1/{path}", data=data, headers=JSON | headers) as answer:
            assert answer.status == status, await answer.text()

    await assert_others_are_answered(system, send)


async def test_metrics_are_served_while_many_large_workflows_are_read(http: Session) -> None:
    body = steps(9_000, lambda at: [f"s{(at + 1) % 9_000}"])

    async def send() -> None:
        async with http.post("/ojs/v1/workflows", data=body, headers=JSON) as answer:
            assert answer.status == 400

    many = [asyncio.create_task(send()) for _ in range(4)]
    served = 0
    while not all(task.done() for task in many):
        async with http.get("/metrics") as answer:
            assert answer.status == 200
        served += not all(task.done() for task in many)
    await asyncio.gather(*many)
    assert served > 0


async def test_an_acknowledgement_with_a_large_result_leaves_others_their_answers(system: Services, http: Session) -> None:
    async def run() -> None:
        async with http.post("/ojs/v1/jobs", json={"type": "a.b", "args": [], "options": {"queue": "results"}}) as answer:
            assert answer.status == 201
        async with http.post("/ojs/v1/workers/fetch", json={"queues": ["results"], "wait_ms": 10_000}) as answer:
            held = (await answer.json(content_type=None))["jobs"][0]["id"]
        body = f'{{"job_id":"{held}","result":{nested(MEBIBYTE - 1_000)}}}'
        async with http.post("/ojs/v1/workers/ack", data=body, headers=JSON) as answer:
            assert answer.status == 200, await answer.text()

    await assert_others_are_answered(system, run)


async def test_events_for_as_many_subscriptions_as_there_may_be_leave_others_their_answers(telling: Services) -> None:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(telling.url))
        sockets = [await stack.enter_async_context(http.ws_connect("/ojs/v1/ws")) for _ in range(20)]
        received = [0]

        async def read(socket: aiohttp.ClientWebSocketResponse) -> None:
            async for message in socket:
                received[0] += '"action":"event"' in message.data

        for socket in sockets:
            for _ in range(50):
                await socket.send_json({"action": "subscribe"})
            for _ in range(50):
                assert (await socket.receive_json(timeout=20))["action"] == "subscribed"
        async with http.get("/ojs/v1/events/stream") as answer:
            assert answer.status == 503
            assert "Retry-After" in answer.headers
        readers = [asyncio.create_task(read(socket)) for socket in sockets]

        async def push() -> None:
            before = received[0]
            for _ in range(10):
                async with http.post("/ojs/v1/jobs", json={"type": "a.b", "args": []}) as answer:
                    assert answer.status == 201
            await eventually(lambda: received[0] >= before + 10 * 1_000, 60)

        await assert_others_are_answered(telling, push)
        for reader in readers:
            reader.cancel()

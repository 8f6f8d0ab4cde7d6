"""Very many control calls at once over two gateways: all are carried out, and pushes go on meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

import aiohttp
import pytest

from support.examples import amount
from support.nats import NatsServer
from support.system import Processes
from support.waiting import PATIENCE_S

pytestmark = pytest.mark.slow

CALLS: Final = 1_000 if amount() == "all" else 60


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("flood")
    with NatsServer(folder / "nats") as server:
        processes = Processes(folder / "processes", server.url)
        try:
            processes.start("projector").ready()  # which the deletion of a queue asks for its jobs
            two = [processes.start("gateway") for _ in range(2)]
            yield [f"{command.ready()['url']}/ojs/v1" for command in two]
        finally:
            processes.stop()


async def status(session: aiohttp.ClientSession, method: str, url: str, body: object = None) -> int:
    """Return the status of a call, which is sent again while a projector is behind, as it may be on a busy machine."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        async with session.request(method, url, json=body) as answer:
            said = await answer.text()
            if answer.status < 500:
                return answer.status
        assert "the projector is" in said, said
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.2)


async def flooded(gateways: list[str], method: str, path: str, body: str = "") -> tuple[Counter[int], Counter[int]]:
    """Send a call for each number at once; return its statuses, and those of the pushes that went on meanwhile."""
    limits = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=limits, timeout=aiohttp.ClientTimeout(total=200)) as session:
        calls = [
            asyncio.ensure_future(
                status(
                    session,
                    method,
                    gateways[number % 2] + path.format(number),
                    {"name": f"tick-{number}", "expression": "0 0 1 1 *", "type": "tick"} if body else None,
                )
            )
            for number in range(CALLS)
        ]
        pushes: Counter[int] = Counter()
        while not all(call.done() for call in calls):
            pushes[await status(session, "POST", f"{gateways[0]}/jobs", {"type": "tick", "args": []})] += 1
        return Counter(call.result() for call in calls), pushes


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/queues/queue-{}/pause", "", 200),
        ("POST", "/queues/queue-{}/resume", "", 200),
        ("POST", "/cron", "entry", 201),
        ("DELETE", "/cron/tick-{}", "", 200),
        ("DELETE", "/queues/queue-{}", "", 200),
    ],
)
async def test_calls_at_once_are_all_carried_out(gateways: list[str], method: str, path: str, body: str, expected: int) -> None:
    if method == "DELETE":
        await flooded(gateways, "POST", *(("/cron", "entry") if "cron" in path else ("/queues/queue-{}/pause",)))
    calls, pushes = await flooded(gateways, method, path, body)
    assert (calls, set(pushes)) == (Counter({expected: CALLS}), {201})

"""A key that is revoked ends everywhere: four gateways under load of that key and of others.

Two figures count, both from the moment at which the revocation is sent: when the last request began that was let in, and when
the last answer came to one. They are logged: `--log-cli-level INFO` shows them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from statistics import median
from typing import Final, NamedTuple

import aiohttp
import pytest

from support.cli import Cli
from support.examples import examples
from support.guarded import API
from support.nats import NatsServer
from support.system import Processes
from support.waiting import eventually

pytestmark = pytest.mark.slow

GATEWAYS: Final = 4
PUSHING: Final = 8
PUSHING_WITH_IT: Final = 2
"""With the key that is revoked, to each gateway."""
STAYS: Final = 2
"""How often a key has to be refused. Each refusal of an address waits longer than the one before."""
JOB: Final = {"type": "a.b", "args": []}
ROUNDS: Final = examples(5, least=1)
MOST_S: Final = 10.0
"""What a machine with other work may need; a second is promised for one without."""


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[str], str]]:
    """Their addresses, and the token of an admin's key that all of them know."""
    folder = tmp_path_factory.mktemp("gateways")
    with NatsServer(folder / "nats") as server:
        token = Cli(folder).asked("keys", "create", "--name", "first", "--role", "admin", "--nats", server.url_by_role).strip()
        processes = Processes(folder, server.url)
        try:
            started = [processes.start("gateway") for _ in range(GATEWAYS)]
            yield [str(command.ready()["url"]) + API for command in started], token
        finally:
            processes.stop()


@asynccontextmanager
async def under_load(urls: Sequence[str], admin: aiohttp.ClientSession) -> AsyncIterator[list[float]]:
    """Clients that push one job after the other, to all gateways; how long each has taken stands in the list."""
    taken: list[float] = []

    async def push(url: str) -> None:
        while True:
            began = time.monotonic()
            async with admin.post(f"{url}/jobs", json=JOB) as answer:
                assert answer.status == 201, await answer.text()
            taken.append(time.monotonic() - began)

    tasks = [asyncio.create_task(push(url)) for url in itertools.islice(itertools.cycle(urls), PUSHING)]
    try:
        yield taken
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


def session_with(token: str) -> aiohttp.ClientSession:
    """One of as many connections as there are requests, so that no client waits for another."""
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}, connector=aiohttp.TCPConnector(limit=0))


class LetIn(NamedTuple):
    """The last request that a client's key was good for: when it began, and when its answer came."""

    began: float
    answered: float


class Client:
    """Asks one thing again and again until its key is refused, and some times more: it has to stay refused."""

    def __init__(self, session: aiohttp.ClientSession, method: str, url: str, body: object = None) -> None:
        self._session = session
        self._asked = (method, url, body)
        self.last: LetIn | None = None

    async def run(self) -> None:
        refused = 0
        method, url, body = self._asked
        while refused < STAYS:
            began = time.monotonic()
            async with self._session.request(method, url, json=body) as answer:
                await answer.read()
            if answer.status == 401:
                refused += 1
            else:
                assert (answer.status, refused) in {(200, 0), (201, 0)}, (answer.status, refused)
                self.last = LetIn(began, time.monotonic())


async def test_a_revoked_key_ends_on_four_gateways_under_load(gateways: tuple[list[str], str]) -> None:
    urls, token = gateways
    began: list[float] = []
    answered: list[float] = []
    async with (
        session_with(token) as admin,
        under_load(urls, admin) as taken,
    ):
        for turn in range(ROUNDS):
            asked = urls[turn % GATEWAYS]
            body = {"name": f"passing{turn}", "role": "custom", "permissions": ["enqueue", "read"]}
            async with admin.post(f"{asked}/admin/keys", json=body) as answer:
                made = await answer.json()
            async with asyncio.timeout(120), session_with(made["token"]) as session:

                async def known(session: aiohttp.ClientSession = session) -> bool:
                    answers = [await session.get(f"{url}/session") for url in urls]
                    return [answer.status for answer in answers] == [200] * GATEWAYS

                await eventually(known)
                streams = [await session.get(f"{url}/events/stream") for url in urls]
                clients = [Client(session, "GET", f"{url}/session") for url in urls]
                clients += [Client(session, "POST", f"{url}/jobs", JOB) for url in urls for _ in range(PUSHING_WITH_IT)]

                def all_are_let_in(clients: Sequence[Client] = clients) -> bool:
                    return all(client.last is not None for client in clients)

                running = [asyncio.create_task(client.run()) for client in clients]
                await eventually(all_are_let_in)
                sent = time.monotonic()
                async with admin.delete(f"{asked}/admin/keys/{made['key']['id']}") as answer:
                    assert answer.status == 200
                await asyncio.gather(*running)
                for client in clients:
                    assert client.last is not None
                    began.append(max(0.0, client.last.began - sent))
                    answered.append(max(0.0, client.last.answered - sent))
                for stream in streams:
                    with suppress(aiohttp.ClientError):  # it is cut off
                        while await stream.content.readany():
                            pass
                    stream.close()
    logging.getLogger(__name__).info(
        "from the revocation on, the last request let in began after %s, the last answer to one came after %s; "
        "a push took %.0f ms of %d",
        _figures(began),
        _figures(answered),
        median(taken) * 1_000,
        len(taken),
    )
    assert max(answered) <= MOST_S, _figures(answered)


def _figures(seconds: Sequence[float]) -> str:
    return f"{median(seconds) * 1_000:.0f} ms in the median, {max(seconds) * 1_000:.0f} ms at most, of {len(seconds)}"

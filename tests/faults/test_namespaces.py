"""Two systems on one nats-server, both under load, while processes of both and nats-server itself are killed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from ojs_nats import App, Client, Retry, Worker
from ojs_nats.client import JobHandle
from ojs_nats.jobs import JobRequest
from ojs_nats.options import Options
from ojs_nats.worker._lifecycle import Trigger
from support.nats import NatsServer
from support.system import Services
from support.waiting import eventually, in_the_end

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

NAMES: Final = ("shop", "shop-test")
KILLED: Final = ("gateway", "projector", "scheduler", "reaper")
ROUNDS: Final = 2
PUSH_EVERY_S: Final = 0.15
LONG_S: Final = 120.0
OPTIONS: Final[Options] = {"queue": "shared", "retry": Retry(20, initial_interval=0.1, max_interval=1.0)}


class Tenant:
    """One system, its client, and what has run in it: the namespace and the number that each job was pushed with."""

    def __init__(self, name: str, system: Services, nats_url: str) -> None:
        self.name = name
        self.system = system
        self.url = f"{nats_url}?namespace={name}"
        self.pushed: list[JobHandle[Any]] = []
        self.ran: set[tuple[str, int]] = set()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Jobs are run in here, one in ten at its second attempt."""
        app = App(self.url)

        @app.job("mark.down", queue="shared")
        async def mark_down(namespace: str, number: int) -> None:
            if number % 10 == 0 and (namespace, -number - 1) not in self.ran:
                self.ran.add((namespace, -number - 1))
                raise RuntimeError("once more")
            self.ran.add((namespace, number))

        worker = Worker(app)
        running = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.notify(Trigger.SIGTERM)
            await running

    async def push(self, until: asyncio.Event) -> None:
        """Push one job after the other; each is taken in the end, or the test fails."""
        async with Client(self.url, retry_for=LONG_S) as client:
            while not until.is_set():
                self.pushed.append(await client.push(JobRequest("mark.down", (self.name, len(self.pushed)), OPTIONS)))
                await asyncio.sleep(PUSH_EVERY_S)

    async def all_done(self) -> bool:
        return {number for _, number in self.ran if number >= 0} == set(range(len(self.pushed)))

    async def counted(self) -> bool:
        """Whether the system itself says so, of its own jobs."""
        async with Client(self.url, retry_for=LONG_S) as client:
            jobs = (await client.system.stats()).jobs
        return (jobs.completed, jobs.available, jobs.active) == (len(self.pushed), 0, 0)


@pytest.fixture
def tenants(nats_server: NatsServer, tmp_path: Path) -> Iterator[list[Tenant]]:
    with ExitStack() as stack:
        systems = [
            stack.enter_context(Services.started(tmp_path / name, server=nats_server, arguments=("--namespace", name)))
            for name in NAMES
        ]
        yield [Tenant(name, system, nats_server.url) for name, system in zip(NAMES, systems, strict=True)]


async def test_each_runs_its_own_jobs_alone_through_kills_of_both(
    tenants: list[Tenant], nats_server: NatsServer, seed: int
) -> None:
    chance = random.Random(seed)
    over = asyncio.Event()
    one, other = tenants
    async with one.working(), other.working():
        pushing = [asyncio.create_task(tenant.push(over)) for tenant in tenants]
        try:
            await eventually(lambda: all(len(tenant.pushed) > 10 for tenant in tenants), LONG_S)
            for victims in zip(*(chance.sample(KILLED, ROUNDS) for _ in tenants), strict=True):
                killed = zip(tenants, victims, strict=True)
                await asyncio.gather(*(asyncio.to_thread(tenant.system.restart, service) for tenant, service in killed))
            await asyncio.to_thread(nats_server.kill)
            await asyncio.to_thread(nats_server.start)
            taken = [len(tenant.pushed) for tenant in tenants]
            await eventually(
                lambda: all(len(tenant.pushed) > before + 10 for tenant, before in zip(tenants, taken, strict=True)), LONG_S
            )
        finally:
            over.set()
            await asyncio.gather(*pushing)
        for tenant in tenants:

            async def progress(asked: Tenant = tenant) -> int:
                return len(asked.ran)

            await in_the_end(tenant.all_done, progress, LONG_S)
    for tenant in tenants:
        assert {namespace for namespace, _ in tenant.ran} == {tenant.name}, "jobs of the other system have run here"
        await eventually(tenant.counted, LONG_S)

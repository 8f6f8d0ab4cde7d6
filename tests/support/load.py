"""A mixed load of recorded clients: what a system should live through while its processes are killed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import aiohttp

from ojs_engine.domain.job import TERMINAL
from support.history import History, Plan, Seen
from support.recorder import Recorder

LEASE_S: Final = 2.0
QUEUES: Final = ("load-a", "load-b")
RETRY_S: Final = 0.2
_PUSH_EVERY_S: Final = 0.05
_FINALS_AT_ONCE: Final = 16


class Load:
    """Producers, workers and meddlers of one run. `seed` decides what they do, the system decides in what order."""

    def __init__(self, http: aiohttp.ClientSession, seed: int, *, producers: int = 8, workers: int = 12) -> None:
        self.history = History()
        self._http = http
        self._random = random.Random(seed)
        self._producers = producers
        self._workers = workers
        self._stopping = False
        self._draining = False
        self._recent: list[str] = []

    async def run(self, disturb: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Keep the system busy while `disturb` runs, then let every client come to its end; workers leave what they hold."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._producers):
                group.create_task(self._produce(self._client(f"producer-{number}")))
            for number in range(self._workers):
                group.create_task(self._work(self._client(f"worker-{number}")))
            group.create_task(self._meddle(self._client("meddler")))
            await disturb()
            self._stopping = True

    async def drain(self, patience_s: float) -> dict[str, dict[str, Any] | None]:
        """Fetch and acknowledge until every job is terminal, or none has become so for `patience_s`.

        Returns all jobs as they then stand.
        """
        reader = self._client("reader")
        unfinished = set(self.history.plans)
        finals: dict[str, dict[str, Any] | None] = {}
        progress = time.monotonic()
        self._draining = True
        drainers = [asyncio.create_task(self._finish_all(self._client(f"drainer-{number}"))) for number in range(3)]
        try:
            while True:
                finals |= await self._read(reader, sorted(unfinished))
                still = {job_id for job_id in unfinished if (job := finals[job_id]) and job["state"] not in TERMINAL}
                if len(still) < len(unfinished):
                    progress = time.monotonic()
                unfinished = still
                if not unfinished or time.monotonic() - progress > patience_s:
                    return finals
                await asyncio.sleep(1.0)
        finally:
            self._draining = False
            await asyncio.gather(*drainers)

    def _client(self, name: str) -> Recorder:
        return Recorder(self._http, self.history, name, random.Random(self._random.getrandbits(64)))

    def _chance(self) -> random.Random:
        return random.Random(self._random.getrandbits(64))

    async def _produce(self, client: Recorder) -> None:
        chance = self._chance()
        while not self._stopping:
            plan = _plan(chance)
            job_id = await client.push(plan, careless=chance.random() < 0.3)
            if job_id is not None:
                self._recent.append(job_id)
                if plan.pending:
                    await client.activate(job_id)
            await asyncio.sleep(chance.uniform(0, 2 * _PUSH_EVERY_S))

    async def _meddle(self, client: Recorder) -> None:
        """Cancel a job here, read one there."""
        chance = self._chance()
        while not self._stopping:
            if self._recent:
                job_id = chance.choice(self._recent[-50:])
                await (client.cancel(job_id) if chance.random() < 0.3 else client.get(job_id))
            await asyncio.sleep(chance.uniform(0.02, 0.2))

    async def _work(self, client: Recorder) -> None:
        chance = self._chance()
        while not self._stopping:
            queues = QUEUES if chance.random() < 0.5 else QUEUES[::-1]
            hurried = chance.random() < 0.1
            patience_s = chance.uniform(0.001, 0.02) if hurried else 8.0
            jobs = await client.fetch(queues, chance.randint(1, 4), LEASE_S, chance.choice([0, 0.5, 2.0]), patience_s)
            for job in jobs:
                await self._handle(client, job, chance)

    async def _handle(self, client: Recorder, job: Seen, chance: random.Random) -> None:
        drawn = chance.random()
        if drawn < 0.62:
            await client.finish(job, "ack")
        elif drawn < 0.80:
            await client.finish(job, "nack")
        elif drawn < 0.86:
            await client.finish(job, "requeue")
        elif drawn < 0.90:
            return  # forgotten: its lease ends it
        elif drawn < 0.97:
            await self._hold(client, job, chance)
        else:
            await asyncio.sleep(LEASE_S + 0.2)  # too late
            await client.finish(job, "ack")

    async def _hold(self, client: Recorder, job: Seen, chance: random.Random) -> None:
        """Work that takes longer than a beat."""
        for _ in range(chance.randint(1, 4)):
            await asyncio.sleep(LEASE_S / 4)
            await client.heartbeat([job], LEASE_S)
        await client.finish(job, "ack")

    async def _finish_all(self, client: Recorder) -> None:
        while self._draining:
            jobs = await client.fetch(QUEUES, 20, LEASE_S, 0.5)
            await asyncio.gather(*(client.finish(job, "ack") for job in jobs))

    async def _read(self, client: Recorder, ids: list[str]) -> dict[str, dict[str, Any] | None]:
        limit = asyncio.Semaphore(_FINALS_AT_ONCE)

        async def read(job_id: str) -> dict[str, Any] | None:
            async with limit:
                job = await client.get(job_id)
            if job is not None and job["state"] == "pending":
                await client.activate(job_id)  # its producer stopped between push and activation
            return job

        return dict(zip(ids, await asyncio.gather(*map(read, ids)), strict=True))


def _plan(chance: random.Random) -> Plan:
    drawn = chance.random()
    queue = chance.choice(QUEUES)
    attempts = chance.randint(1, 5)
    if drawn < 0.25:
        return Plan(queue=queue, delay_s=round(chance.uniform(0.2, 1.0), 3), max_attempts=attempts, retry_s=RETRY_S)
    if drawn < 0.31:
        return Plan(queue=queue, pending=True, max_attempts=attempts, retry_s=RETRY_S)
    if drawn < 0.37:
        return Plan(queue=queue, expires_s=round(chance.uniform(0.3, 1.5), 3), max_attempts=attempts, retry_s=RETRY_S)
    return Plan(queue=queue, max_attempts=attempts, retry_s=RETRY_S)

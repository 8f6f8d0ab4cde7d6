"""nats-server stands still and gateways are killed while workflows are created, by clients that repeat what wasn't answered:
whatever was acknowledged, or called existing, runs to its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter, defaultdict
from typing import Any

import aiohttp
import pytest

from ojs_engine.base.ids import new_job_id
from support.examples import examples
from support.processes import stopped
from support.recorder import session
from support.system import Services
from support.waiting import eventually

WORKFLOWS = int(os.environ.get("OJS_WORKFLOWS", examples(320, least=80)))
"""More of them take as much longer."""
A_SECOND = 6
"""Slow enough for three faults at least, and quick enough for each of them to meet some."""
WORKERS = 4
LEASE_MS = 5_000
CLIENT_S = 15.0
"""A client gives an answer up after that."""

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300 + WORKFLOWS // 2)]


def job(name: str) -> dict[str, Any]:
    return {"type": name, "args": [], "options": {"queue": "wf", "retry": {"max_attempts": 20}}}


def definition(number: int) -> tuple[dict[str, Any], int]:
    """A workflow and the number of its jobs."""
    jobs = [job(f"j{index}") for index in range(3)]
    kinds: list[tuple[dict[str, Any], int]] = [
        ({"type": "chain", "steps": jobs}, 3),
        ({"type": "group", "jobs": jobs}, 3),
        ({"type": "batch", "jobs": jobs, "callbacks": {"on_complete": job("done")}}, 4),
        ({"steps": [jobs[0] | {"id": "a"}, jobs[1] | {"id": "b", "depends_on": ["a"]}]}, 2),
    ]
    return kinds[number % len(kinds)]


class Client:
    """Asks until it is answered; a connection that breaks, or an answer that doesn't come, is no answer (status 0)."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.jobs: defaultdict[str, set[str]] = defaultdict(set)
        """The jobs that were fetched, by workflow."""

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        try:
            timeout = aiohttp.ClientTimeout(total=CLIENT_S)
            async with self._http.request(method, f"/ojs/v1{path}", json=body, timeout=timeout) as answer:
                return answer.status, json.loads(await answer.read() or b"null")
        except (aiohttp.ClientError, TimeoutError):
            return 0, None

    async def create(self, body: dict[str, Any], chance: random.Random) -> list[int]:
        """Create a workflow, repeating until it is said to be there; every status on the way."""
        told: list[int] = []
        while not told or told[-1] not in {201, 409}:
            if told:
                await asyncio.sleep(chance.uniform(0.1, 1.0))
            status, answer = await self.ask("POST", "/workflows", body)
            assert status in {0, 201, 409, 503}, answer
            told.append(status)
        return told

    async def work(self) -> None:
        """Fetch and finish, for ever."""
        wanted = {"queues": ["wf"], "count": 5, "wait_ms": 500, "visibility_timeout_ms": LEASE_MS}
        while True:
            status, found = await self.ask("POST", "/workers/fetch", wanted)
            for one in found["jobs"] if status == 200 else ():
                self.jobs[one["workflow_id"]].add(one["id"])
                await self.ask("POST", "/workers/ack", {"job_id": one["id"], "result": 1})
            if status != 200:
                await asyncio.sleep(0.2)


async def test_what_is_said_to_exist_runs_to_its_end(system: Services, seed: int) -> None:
    chance = random.Random(seed)
    async with session(system.url) as http:
        client = Client(http)
        workers = [asyncio.create_task(client.work()) for _ in range(WORKERS)]
        creating: dict[str, asyncio.Task[list[int]]] = {}
        expected: dict[str, int] = {}

        async def create_all() -> None:
            for number in range(WORKFLOWS):
                body, jobs = definition(number)
                body["id"] = name = new_job_id(int(time.time() * 1000))
                expected[name] = jobs
                creating[name] = asyncio.create_task(client.create(body, random.Random(chance.random())))
                await asyncio.sleep(chance.uniform(0, 2 / A_SECOND))

        load = asyncio.create_task(create_all())
        faults = 0
        while not load.done():
            faults += 1
            await asyncio.sleep(chance.uniform(0.5, 2.0))
            if faults % 3 != 2:
                with stopped(system.children["nats-server"]):
                    await asyncio.sleep(chance.uniform(3.0, 8.0))
            else:
                await asyncio.to_thread(system.restart, "gateway")
        await load
        assert faults > 1, "nothing was killed"
        told = {name: await asyncio.wait_for(task, 120.0) for name, task in creating.items()}
        states: dict[str, str] = {}

        async def all_have_completed() -> bool:
            for name in expected.keys() - states.keys():
                status, found = await client.ask("GET", f"/workflows/{name}")
                if status == 200 and (state := found["workflow"]["state"]) != "running":
                    states[name] = state
            return states.keys() == expected.keys()

        try:
            await eventually(all_have_completed, 90.0, every=0.5)
        except AssertionError:
            lost = {name: told[name] for name in expected.keys() - states.keys()}
            pytest.fail(f"{len(lost)} of {len(expected)} workflows that were said to exist do not run: {lost}")
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        assert Counter(states.values()) == {"completed": len(expected)}
        assert {name: len(jobs) for name, jobs in client.jobs.items()} == expected, "each step once"
        repeated = sum(len(statuses) > 1 for statuses in told.values())
        print(  # noqa: T201  # with -s: what the run amounted to
            f"{len(expected)} workflows, {faults} faults, {repeated} repeated, last answers "
            f"{Counter(statuses[-1] for statuses in told.values())}"
        )

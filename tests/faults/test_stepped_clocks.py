"""A machine's date is set forth and back by an hour under every service: nothing is early, doubled, past a limit, or stuck."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ojs_engine.base.times import parse_timestamp
from support.dates import STEPPED, set_date, told
from support.examples import examples
from support.recorder import session
from support.system import Services, environment
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

SERVICES = ("gateway", "scheduler", "reaper", "coordinator", "projector")
DATES_S = (3_600, 0, -3_600, 0) * examples(2, least=1)
APART_S = 0.6
EARLY_MS = 250
"""What a job may be early by: as services know nats-server's clock, and it ours."""
RETRY_S = 1.0
RATE, CONCURRENCY = 5, 2
SLACK_S = 4
"""The window that the first job began, and by how much its answer may be later than others'."""
LIMITED = {
    "rated": {"key": "rated", "rate": {"limit": RATE, "period": "PT1S"}},
    "narrow": {"key": "narrow", "concurrency": CONCURRENCY},
}
QUEUES = ("plain", "ticks", "steps", *LIMITED)
CRON_GAP_S = 20
"""Ticks may be missed while a service is away for more than five seconds, which a busy machine may amount to."""


@pytest.fixture
def dates(tmp_path: Path) -> Path:
    folder = tmp_path / "dates"
    folder.mkdir()
    return folder


@pytest.fixture
def stepped(tmp_path: Path, dates: Path) -> Iterator[Services]:
    """A server whose services are told the date of their machine by files in `dates`; nats-server's is right."""
    with Services.started(tmp_path / "system", *SERVICES, env=environment(**told(dates)), program=STEPPED) as system:
        yield system


class Load:
    """Clients that push, and workers that keep account of what they are given."""

    def __init__(self, http: aiohttp.ClientSession, chance: random.Random) -> None:
        self._http = http
        self._chance = chance
        self.wrong: list[str] = []
        self.pushed: dict[str, str] = {}
        """Queue by job id."""
        self.workflows: list[str] = []
        self.done: set[str] = set()
        self._due: dict[str, float] = {}
        """Not before this moment (this machine's Unix ms)."""
        self._held: set[str] = set()
        self._nacked: set[str] = set()
        self.rated: list[float] = []
        self.ticks: list[int] = []

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        async with self._http.request(method, f"/ojs/v1{path}", json=body) as answer:
            assert answer.status < 300, f"{path}: {answer.status} {await answer.text()}"
            return await answer.json(content_type=None)

    async def push(self, queue: str, **options: Any) -> None:
        retry = {"max_attempts": 3, "initial_interval_ms": 1_000 * RETRY_S, "backoff_strategy": "constant", "jitter": False}
        body = {"type": queue, "args": [], "options": {"queue": queue, "retry": retry} | options}
        job = (await self.ask("POST", "/jobs", body))["job"]
        self.pushed[job["id"]] = queue
        if "delay_until" in options:
            self._due[job["id"]] = parse_timestamp(job["scheduled_at"])

    async def push_all(self) -> None:
        """For ever, some of everything."""
        for number in itertools.count():
            await self.push("plain", delay_until="+PT2S")
            await self.push("plain")
            await self.push("narrow", rate_limit=LIMITED["narrow"])
            if number % 2:
                await self.push("rated", rate_limit=LIMITED["rated"])
            if number % 5 == 0:
                steps: list[dict[str, Any]] = [{"type": name, "args": [], "options": {"queue": "steps"}} for name in ("a", "b")]
                made = await self.ask("POST", "/workflows", {"type": "chain", "steps": steps})
                self.workflows.append(made["workflow"]["id"])
            await asyncio.sleep(0.2)

    async def work(self, queue: str) -> None:
        """Fetch and finish, for ever. Half of the plain jobs fail the first time."""
        wanted = {"queues": [queue], "count": 2, "wait_ms": 1_000, "visibility_timeout_ms": 30_000}
        while True:
            jobs = (await self.ask("POST", "/workers/fetch", wanted))["jobs"]
            now = time.time() * 1_000
            for job in jobs:
                self._take(job, now)
            await asyncio.sleep(self._chance.uniform(0.05, 0.4))
            for job in jobs:
                await self._finish(job)

    def _take(self, job: dict[str, Any], now: float) -> None:
        name, queue = job["id"], job["queue"]
        if name in self._held or name in self.done:
            self.wrong.append(f"job {name} of {queue} was given to two")
        if job["attempt"] != (2 if name in self._nacked else 1):
            self.wrong.append(f"job {name} of {queue} has attempt {job['attempt']}")
        if now < self._due.get(name, 0) - EARLY_MS:
            self.wrong.append(f"job {name} of {queue} was {self._due[name] - now:.0f} ms early")
        self._held.add(name)
        if sum(self.pushed.get(held) == "narrow" for held in self._held) > CONCURRENCY:
            self.wrong.append(f"more than {CONCURRENCY} jobs at once")
        if queue == "rated":
            self.rated.append(now)
        if queue == "ticks":
            self.ticks.append(parse_timestamp(job["meta"]["cron_triggered_at"]))

    async def _finish(self, job: dict[str, Any]) -> None:
        name = job["id"]
        fails = job["queue"] == "plain" and name not in self._nacked and self._chance.random() < 0.5
        self._held.discard(name)
        if fails:
            self._nacked.add(name)
            self._due[name] = (time.time() + RETRY_S) * 1_000
            await self.ask("POST", "/workers/nack", {"job_id": name, "error": {"code": "no", "message": "on purpose"}})
        else:
            self.done.add(name)
            await self.ask("POST", "/workers/ack", {"job_id": name})


async def test_nobody_heeds_a_date_that_is_set(stepped: Services, dates: Path, seed: int) -> None:
    async with session(stepped.url) as http:
        load = Load(http, random.Random(seed))
        entry = {"name": "tick", "cron": "* * * * * *", "type": "tick", "args": [], "options": {"queue": "ticks"}}
        await load.ask("POST", "/cron", entry)
        pushing = asyncio.create_task(load.push_all())
        workers = [asyncio.create_task(load.work(queue)) for queue in QUEUES for _ in range(2)]
        for service in SERVICES:
            for date in DATES_S:
                set_date(dates, stepped.children[service], date)
                await asyncio.sleep(APART_S)
                failed = [task for task in (pushing, *workers) if task.done()]
                assert not failed, failed
        pushing.cancel()
        await asyncio.gather(pushing, return_exceptions=True)

        def everything_is_done() -> bool:
            return load.pushed.keys() <= load.done

        async def the_workflows_are_done() -> bool:
            states = [(await load.ask("GET", f"/workflows/{name}/progress"))["workflow"]["state"] for name in load.workflows]
            return set(states) == {"completed"}

        try:
            await eventually(everything_is_done, 60.0)
        except AssertionError:
            left = Counter(queue for name, queue in load.pushed.items() if name not in load.done)
            pytest.fail(f"of {len(load.pushed)} jobs these are left: {left}; and {load.wrong}")
        await eventually(the_workflows_are_done)
        so_far = len(load.ticks)
        await eventually(lambda: len(load.ticks) > so_far + 1, 30.0)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    assert load.wrong == []
    assert load.workflows
    assert len(set(load.ticks)) == len(load.ticks), "each tick once"
    gaps = [after - before for before, after in itertools.pairwise(sorted(load.ticks))]
    assert max(gaps) <= CRON_GAP_S * 1_000
    first = load.rated[0]
    for number, at in enumerate(load.rated, 1):  # late answers make it less, but for the first of them
        assert number <= RATE * ((at - first) // 1_000 + SLACK_S)

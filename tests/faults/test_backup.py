"""The drill: a system under load is backed up, destroyed and restored; all of it is there, and what was done stays done."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from ojs_command.services import SERVICES
from ojs_engine.base.ids import new_job_id
from support.figures import tell
from support.nats import NatsServer
from support.operator_commands import run
from support.system import Processes
from support.waiting import eventually
from support.webhook_target import WebhookTarget

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

V1: Final = "/ojs/v1"
QUEUES: Final = ("drill-a", "drill-b")
PUSH_EVERY_S: Final = 0.02
WORK_S: Final = 0.03
"""More comes than workers get done, so some jobs wait at any moment."""
LEASE_MS: Final = 5_000
"""Of the jobs that are in the hands of workers which don't outlive the backup: they run again when it is over."""
IN_HAND: Final = 8
"""Deliveries that a process of webhooks has in hand at a time."""


class Clients:
    """Producers and workers, and their own ledger."""

    def __init__(self, url: str, lease_ms: int = 600_000) -> None:
        self.url = url
        self._lease_ms = lease_ms
        self.pushed: set[str] = set()
        self.acked: set[str] = set()
        self.fetched: Counter[str] = Counter()
        self.first_fetch: float | None = None
        self._stopping = asyncio.Event()

    async def run(self, producers: int, workers: int) -> None:
        async with aiohttp.ClientSession(self.url) as http, asyncio.TaskGroup() as group:
            for number in range(producers):
                group.create_task(self._produce(http, number))
            for number in range(workers):
                group.create_task(self._work(http, f"worker-{number}"))

    def stop(self) -> None:
        self._stopping.set()

    async def _produce(self, http: aiohttp.ClientSession, number: int) -> None:
        for count in itertools.count():
            if self._stopping.is_set():
                return
            job_id = new_job_id(time.time_ns() // 1_000_000)
            options: dict[str, Any] = {"queue": QUEUES[(number + count) % 2]}
            if not count % 7:
                options["delay"] = "2s"
            body = {"id": job_id, "type": "drill.job", "args": [count], "options": options}
            with suppress(aiohttp.ClientError, TimeoutError):
                async with http.post(f"{V1}/jobs", json=body) as answer:
                    if answer.status == 201:
                        self.pushed.add(job_id)
            await asyncio.sleep(PUSH_EVERY_S)

    async def _work(self, http: aiohttp.ClientSession, worker: str) -> None:
        while not self._stopping.is_set():
            with suppress(aiohttp.ClientError, TimeoutError):
                await self._round(http, worker)

    async def _round(self, http: aiohttp.ClientSession, worker: str) -> None:
        asked = {
            "queues": list(QUEUES),
            "worker_id": worker,
            "count": 3,
            "wait_ms": 200,
            "visibility_timeout_ms": self._lease_ms,
        }
        async with http.post(f"{V1}/workers/fetch", json=asked) as answer:
            jobs = (await answer.json()).get("jobs", []) if answer.status == 200 else []
        for job in jobs:
            self.first_fetch = self.first_fetch or time.monotonic()
            self.fetched[job["id"]] += 1
            await asyncio.sleep(WORK_S)
            async with http.post(f"{V1}/workers/ack", json={"job_id": job["id"], "result": 1}) as answer:
                if answer.status == 200:
                    self.acked.add(job["id"])


@asynccontextmanager
async def at_work(clients: Clients, producers: int, workers: int) -> AsyncIterator[None]:
    running = asyncio.create_task(clients.run(producers, workers))
    try:
        yield
    finally:
        clients.stop()
        await running


def services(folder: Path, nats_url: str) -> tuple[Processes, str]:
    """One of each, and the gateway's address."""
    processes = Processes(folder, nats_url)
    for entry in SERVICES:
        local = ("--webhook-insecure", "--webhook-private") if entry.name in {"gateway", "webhooks"} else ()
        own = ("--projector-data", str(folder / "index")) if entry.kind == "projector" else ()
        processes.start(entry.name, *local, *own)
    ready = {command.arguments[0]: command.ready() for command in processes.commands}
    return processes, str(ready["gateway"]["url"])


async def test_what_was_backed_up_under_load_is_all_there_and_what_was_done_stays_done(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with WebhookTarget.started() as target:
        with NatsServer(tmp_path / "first") as first:
            processes, url = await asyncio.to_thread(services, tmp_path / "before", first.url)
            async with aiohttp.ClientSession(url) as http:
                wanted = {"url": target.url, "events": ["job.completed"]}
                async with http.post(f"{V1}/webhooks/subscriptions", json=wanted) as answer:
                    assert answer.status == 201
                every = {"name": "tick", "cron": "* * * * * *", "type": "drill.tick", "args": [], "options": {"queue": "ticks"}}
                async with http.post(f"{V1}/cron", json=every) as answer:
                    assert answer.status == 201
            before = Clients(url, LEASE_MS)
            async with at_work(before, 3, 2):
                await eventually(lambda: len(before.acked) > 100)
                there, done = set(before.pushed), set(before.acked)
                heard = {got.event["id"] for got in list(target.got)}
                taken = await asyncio.to_thread(run, "backup", str(kept), "--nats", first.url)
                for command in processes.commands:
                    command.kill()
            first.kill()
        shutil.rmtree(tmp_path / "first")
        with NatsServer(tmp_path / "second") as second:
            began = time.monotonic()
            restored = await asyncio.to_thread(run, "restore", str(kept), "--nats", second.url)
            processes, url = await asyncio.to_thread(services, tmp_path / "after", second.url)
            try:
                after = Clients(url)
                async with at_work(after, 0, 3):
                    await _check_lists(url, there)
                assert after.first_fetch is not None
                tell(
                    f"{taken['records']:,} records in {taken['seconds']:.1f} s; restored in {restored['seconds']:.1f} s, "
                    f"the first job ran {after.first_fetch - began:.1f} s after the beginning"
                )
                assert not done & after.fetched.keys(), "what was done by the time of the backup ran again"
                assert set(after.fetched.values()) == {1}
                await _check_events(url, there)
                repeated = Counter(got.event["id"] for got in list(target.got))
                assert sum(repeated[event] > 1 for event in heard) <= IN_HAND
                assert [line for command in processes.commands for line in command.events("a lost hint was issued again")] == []
            finally:
                processes.stop()


async def _check_lists(url: str, there: set[str]) -> None:
    """Each job is in the index that is built anew, and completes."""
    async with aiohttp.ClientSession(url) as http:

        async def listed() -> bool:
            found: set[str] = set()
            cursor = ""
            while True:
                async with http.get(f"{V1}/jobs", params={"limit": "100", "type": "drill.job", **cursor_of(cursor)}) as answer:
                    page = await answer.json()
                if answer.status != 200:
                    return False
                found |= {job["id"] for job in page["jobs"] if job["state"] == "completed"}
                cursor = page["pagination"].get("next_cursor") or ""
                if not page["pagination"]["has_more"]:
                    return there <= found

        await eventually(listed, 180.0)


async def _check_events(url: str, there: set[str]) -> None:
    """Each job has completed once, as far as events tell: those from before the backup are in it, and none comes again."""
    async with aiohttp.ClientSession(url) as http:
        completed: Counter[str] = Counter()
        after = "0"
        while True:
            params = {"types": "job.completed", "limit": "500", "after": after}
            async with http.get(f"{V1}/events", params=params) as answer:
                page = await answer.json()
            completed.update(event["subject"] for event in page["events"])
            after = page["cursor"]
            if not page["has_more"]:
                break
        assert {number for job_id, number in completed.items() if job_id in there} == {1}


def cursor_of(cursor: str) -> dict[str, str]:
    return {"cursor": cursor} if cursor else {}

"""Limits while services and nats-server are killed: never exceeded, nothing leaks, everything runs."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Any

import pytest

from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from support.nats import NatsServer
from support.system import Gateway, Processes, Services, send
from support.truth import all_jobs
from support.waiting import eventually, until

pytestmark = pytest.mark.faults

JOBS = 40
LIMIT = 3
KILLED = ("gateway", "scheduler", "nats-server", "gateway")
"""One after the other, while the jobs run."""


class Runs:
    """Jobs in workers' hands as the workers know it: from the answer of a fetch until an ack is sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.held: set[str] = set()
        self.done: list[str] = []
        self.most = 0

    def began(self, job_id: str) -> None:
        with self._lock:
            self.held.add(job_id)
            self.most = max(self.most, len(self.held))

    def ends(self, job_id: str) -> None:
        with self._lock:
            self.held.discard(job_id)

    def ended(self, job_id: str) -> None:
        with self._lock:
            self.done.append(job_id)


def work(system: Services, runs: Runs, over: threading.Event) -> None:
    chance = random.Random()
    while not over.is_set():
        try:
            body = {"queues": ["limited", "plain"], "count": 2, "wait_ms": 500, "visibility_timeout_ms": 20_000}
            jobs: list[Any] = send("POST", f"{system.url}/ojs/v1/workers/fetch", body, seconds=10).body.get("jobs", [])
        except (OSError, ValueError, AttributeError):
            time.sleep(0.1)
            continue
        limited = [job for job in jobs if job["queue"] == "limited"]
        for job in limited:
            runs.began(job["id"])
        time.sleep(chance.random() * 0.05)
        for job in jobs:
            runs.ends(job["id"])
            while not over.is_set():
                try:
                    answer = send("POST", f"{system.url}/ojs/v1/workers/ack", {"job_id": job["id"]}, seconds=10)
                except (OSError, ValueError):
                    time.sleep(0.1)
                    continue
                if answer.status < 500:
                    break
            if job in limited:
                runs.ended(job["id"])


@pytest.mark.timeout(600)
def test_a_limit_holds_and_leaks_nothing_through_kills(system: Services) -> None:
    policy = {"key": "k", "concurrency": LIMIT}
    ids = set()
    for _ in range(JOBS):
        answer = system.request(
            "POST", "/ojs/v1/jobs", {"type": "test.limit", "args": [], "options": {"queue": "limited", "rate_limit": policy}}
        )
        assert answer.status == 201, answer
        ids.add(answer.body["job"]["id"])
    runs, over = Runs(), threading.Event()
    workers = [threading.Thread(target=work, args=(system, runs, over)) for _ in range(4)]
    for worker in workers:
        worker.start()
    try:
        for number, victim in enumerate(KILLED, 1):
            due = JOBS * number // (len(KILLED) + 1)
            until(lambda due=due: len(runs.done) >= due)  # type: ignore[misc]
            system.restart(victim)
        until(lambda: set(runs.done) == ids, 90)
    finally:
        over.set()
        for worker in workers:
            worker.join()
    assert 0 < runs.most <= LIMIT

    def known() -> Any:  # a gateway that has just found NATS again may answer 503
        answer = system.request("GET", "/ojs/v1/rate-limits/k")
        assert answer.status in {200, 503}, answer
        return answer.body if answer.status == 200 else None

    view = until(known)
    assert (view["concurrency"]["active"], view["waiting_count"]) == (0, 0)


def next_of(url: str, queue: str) -> str | None:
    """Fetch one job and finish it."""
    body = {"queues": [queue], "wait_ms": 0, "visibility_timeout_ms": 60_000}
    answer = send("POST", f"{url}/ojs/v1/workers/fetch", body, seconds=10)
    if answer.status != 200 or not answer.body["jobs"]:
        return None
    job_id = str(answer.body["jobs"][0]["id"])
    assert send("POST", f"{url}/ojs/v1/workers/ack", {"job_id": job_id}).status == 200
    return job_id


@pytest.mark.timeout(600)
def test_a_key_at_its_limit_holds_up_nobody_else_and_keeps_its_order_through_kills(system: Services) -> None:
    key = {"key": "slow", "concurrency": 1}
    holder = system.push("test.limit", queue="mixed", rate_limit=key)["id"]
    assert [job["id"] for job in system.fetch("mixed", wait_ms=0, visibility_timeout_ms=100_000)] == [holder]
    limited, plain = [], []
    for number in range(16):
        if number % 2:
            plain.append(system.push("test.limit", queue="mixed")["id"])
        else:
            limited.append(system.push("test.limit", queue="mixed", rate_limit=key)["id"])

    def one() -> str | None:
        return next_of(system.url, "mixed")

    done: list[str] = []
    for number in range(len(plain)):
        if victim := {1: "gateway", 5: "scheduler"}.get(number):
            system.restart(victim)
        found = until(one)
        assert found is not None
        done.append(found)
    assert done == plain
    assert one() is None
    assert system.request("GET", "/ojs/v1/rate-limits/slow").body["waiting_count"] == len(limited)
    assert until(lambda: system.request("POST", "/ojs/v1/workers/ack", {"job_id": holder}).status == 200)
    freed: list[str] = []
    while len(freed) < len(limited):
        if victim := {2: "scheduler", 4: "gateway"}.get(len(freed)):
            system.restart(victim)
        found = until(one)
        assert found is not None
        freed.append(found)
    assert freed == limited
    view = system.request("GET", "/ojs/v1/rate-limits/slow").body
    assert (view["concurrency"]["active"], view["waiting_count"]) == (0, 0)


@pytest.mark.timeout(600)
async def test_a_rate_holds_over_two_gateways_that_are_killed(processes: Processes, nats_server: NatsServer) -> None:
    period_ms, limit, jobs = 1_000, 8, 32
    gateways = [processes.start("gateway") for _ in range(2)]
    urls = [str(gateway.ready()["url"]) for gateway in gateways]
    processes.start("scheduler").ready()
    processes.start("reaper").ready()
    rate = {"key": "api", "rate": {"limit": limit, "period": "PT1S"}}
    ids = {
        Gateway(urls[n % 2]).push("test.limit", queue="rated", rate_limit=rate, visibility_timeout_ms=2_000)["id"]
        for n in range(jobs)
    }
    over = threading.Event()

    def work(place: int) -> None:
        while not over.is_set():
            try:
                body = {"queues": ["rated"], "count": 3, "wait_ms": 300, "visibility_timeout_ms": 2_000}
                for job in send("POST", f"{urls[place]}/ojs/v1/workers/fetch", body, seconds=5).body["jobs"]:
                    send("POST", f"{urls[place]}/ojs/v1/workers/ack", {"job_id": job["id"]}, seconds=5)
            except (OSError, ValueError, KeyError):
                over.wait(0.05)

    workers = [threading.Thread(target=work, args=(place,)) for place in (0, 0, 1, 1)]
    for worker in workers:
        worker.start()
    store = await Store.open(nats_server.url, StoreConfig(), role="test", features=STORE_FEATURES)

    async def all_done() -> list[Job]:
        found = await all_jobs(store)
        return found if {job.id for job in found if job.state is State.COMPLETED} == ids else []

    try:
        for place in (0, 1, 0):
            await asyncio.sleep(0.7)
            gateways[place].kill()
            gateways[place] = processes.start("gateway")
            urls[place] = str(gateways[place].ready()["url"])
        found: list[Job] = await eventually(all_done, 40, every=0.5)
    finally:
        over.set()
        for worker in workers:
            worker.join()
        await store.close()
    starts = sorted(entry.at for job in found for entry in job.transitions if entry.event == "claimed")
    # A claim's time is taken just before its permit.
    spans = [later - first for first, later in zip(starts, starts[limit:], strict=False)]
    assert min(spans) >= period_ms - 150

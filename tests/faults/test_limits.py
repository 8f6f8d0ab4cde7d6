"""Limits while services and nats-server are killed: never exceeded, nothing leaks, everything runs."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest

from support.system import System, send

pytestmark = pytest.mark.faults

JOBS = 60
LIMIT = 3


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


def work(system: System, runs: Runs, over: threading.Event) -> None:
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


@pytest.mark.timeout(180)
@pytest.mark.parametrize("victim", ["gateway", "scheduler", "nats-server"])
def test_a_limit_holds_and_leaks_nothing_through_kills(system: System, victim: str) -> None:
    policy = {"key": "k", "concurrency": LIMIT}
    ids = set()
    for _ in range(JOBS):
        body = {"type": "test.limit", "args": [], "options": {"queue": "limited", "rate_limit": policy}}
        answer = system.request("POST", "/ojs/v1/jobs", body)
        assert answer.status == 201, answer
        ids.add(answer.body["job"]["id"])
    runs, over = Runs(), threading.Event()
    workers = [threading.Thread(target=work, args=(system, runs, over)) for _ in range(6)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(3):
            time.sleep(0.4)
            system.wait_restarted(victim, system.kill_child(victim))
        deadline = time.monotonic() + 90
        while set(runs.done) != ids and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        over.set()
        for worker in workers:
            worker.join()
    assert set(runs.done) == ids
    assert 0 < runs.most <= LIMIT
    view = system.request("GET", "/ojs/v1/rate-limits/k").body
    assert (view["active"], view["waiting"]) == (0, 0)

"""Schedulers are killed around the ticks of entries that run every second; each tick still has exactly one job."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from datetime import datetime
from typing import Any

import pytest

from ojs_features.crons.ticks import GRACE_MS
from support.nats import NatsServer
from support.system import Command, Gateway, Processes, send
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

SECONDS = 10
"""For how long schedulers are killed at least."""
KILLS = 8
"""How often at least. What was killed has to be replaced first, and on a busy machine that takes longer than a tick."""
LONG_S = 120.0
"""How long a busy machine may take for what is waited for."""
SCHEDULERS = 3
ENTRIES = 5
AROUND_S = 0.03
"""A tick takes a few milliseconds, so this is when a scheduler has one in its hands."""


def register(url: str, name: str) -> None:
    body = {"name": name, "cron": "* * * * * *", "type": "test.tick", "options": {"queue": name}, "overlap_policy": "allow"}
    assert send("POST", f"{url}/ojs/v1/cron", body).status == 201


def runs(url: str, name: str) -> list[dict[str, Any]]:
    """The last fifty runs of the entry's log, oldest first."""
    executions: list[dict[str, Any]] = send("GET", f"{url}/ojs/v1/cron/{name}/history").body["executions"]
    return executions[::-1]


def created(done: list[dict[str, Any]]) -> bool:
    """Whether every run has its job."""
    return all("job_state" in run for run in done if run["status"] == "triggered")


def fetched(url: str, name: str) -> list[str]:
    found: list[str] = []
    while jobs := Gateway(url).fetch(name, count=100, wait_ms=0):
        found += [job["id"] for job in jobs]
    return found


async def test_each_tick_has_one_job_while_schedulers_are_killed(processes: Processes, seed: int) -> None:
    chance = random.Random(seed)
    url = processes.start("gateway").ready()["url"]
    schedulers = [processes.start("scheduler") for _ in range(SCHEDULERS)]
    for scheduler in schedulers:
        scheduler.ready()
    names = [f"tick-{number}" for number in range(ENTRIES)]
    for name in names:
        register(url, name)

    kills = 0
    began = int(time.time())
    logs: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in names}
    """All runs that were ever in the log of an entry, by number."""

    def reads_logs() -> None:
        for name, log in logs.items():
            log.update((run["number"], run) for run in runs(url, name))

    while time.time() < began + SECONDS or kills < KILLS:
        assert time.time() < began + LONG_S, f"{kills} kills"
        tick = int(time.time()) + 1
        await asyncio.sleep(max(0.0, tick - time.time() + chance.uniform(-AROUND_S, AROUND_S)))
        # One at least goes on, as in any deployment; a new one takes a moment to start.
        ready = [scheduler for scheduler in schedulers if scheduler.process.poll() is None and scheduler.events("ready")]
        for victim in chance.sample(ready, max(0, len(ready) - 1)):
            os.kill(victim.pid, signal.SIGKILL)
            kills += 1
        schedulers = [scheduler for scheduler in schedulers if scheduler.process.poll() is None]
        while len(schedulers) < SCHEDULERS:
            schedulers.append(processes.start("scheduler"))
        reads_logs()

    end = int(time.time())
    until(lambda: all(seconds(runs(url, name)[-1]["scheduled_at"]) >= end for name in names), LONG_S)
    for name in names:
        send("POST", f"{url}/ojs/v1/cron/{name}/pause")
    until(lambda: all(created(runs(url, name)) for name in names), LONG_S)
    reads_logs()
    for name, log in logs.items():
        assert list(log) == list(range(1, len(log) + 1)), "a part of the log was not read"
        done = list(log.values())
        assert {run["status"] for run in done} <= {"triggered", "skipped"}
        ticks = [seconds(run["scheduled_at"]) for run in done]
        assert ticks == sorted(set(ticks)), f"{name} ran twice"
        for before, tick, run in zip([began, *ticks], ticks, done, strict=False):
            # Ticks that nobody could look at in time are dropped but for the last (docs/cron.md).
            in_time = tick <= before + 1
            assert in_time or seconds(run["triggered_at"]) - before - 1 >= GRACE_MS // 1_000, f"{name} left ticks out"
        ids = [run["job_id"] for run in done if run["status"] == "triggered"]
        assert sorted(fetched(url, name)) == sorted(ids), "one job for each run, and no other"


def seconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp())


async def test_ticks_go_on_when_the_only_scheduler_is_replaced(processes: Processes, nats_server: NatsServer) -> None:
    url = processes.start("gateway").ready()["url"]
    only: Command = processes.start("scheduler")
    only.ready()
    register(url, "tick")
    until(lambda: runs(url, "tick"), LONG_S)
    only.kill()
    nats_server.restart()
    until(lambda: send("GET", f"{url}/readyz").status == 200, LONG_S)
    before = len(runs(url, "tick"))
    processes.start("scheduler").ready()
    until(lambda: len(runs(url, "tick")) >= before + 3, LONG_S)
    send("POST", f"{url}/ojs/v1/cron/tick/pause")
    until(lambda: created(runs(url, "tick")), LONG_S)
    ids = [run["job_id"] for run in runs(url, "tick") if run["status"] == "triggered"]
    assert len(ids) == len(set(ids))
    assert sorted(fetched(url, "tick")) == sorted(ids)

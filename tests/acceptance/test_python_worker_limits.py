"""Workers of many places, handlers that use up what they share, and operators that send a worker away and back."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support.examples import amount
from support.processes import stopped
from support.proxy import Proxy
from support.python_worker import WorkerProcess, completed, exits, pushed
from support.system import System
from support.waiting import until

Start = Callable[..., WorkerProcess]
QUEUE = "hostile"
PATIENCE_S = 14.0
"""Longer than a worker waits for the answer to a fetch."""
ALL = amount() == "all"
both_ways = pytest.mark.parametrize("address", ["http", "nats"], indirect=True)


@pytest.fixture
def module() -> str:
    return "hostile"


def count(system: System, state: str) -> int:
    return int(system.call("GET", f"/jobs?queue={QUEUE}&state={state}&limit=1")["pagination"]["total"])


# Many places


@pytest.mark.slow
@pytest.mark.parametrize("address", ["nats", *(["http"] if ALL else [])], indirect=True)
def test_more_jobs_than_a_heartbeat_names_run_once_each(system: System, start: Start) -> None:
    """They take longer than their lease lasts without a heartbeat."""
    jobs = [
        {"type": "hostile.sleep", "args": [number, 16.0], "options": {"queue": QUEUE, "visibility_timeout_ms": 12_000}}
        for number in range(1_100)
    ]
    for first in range(0, len(jobs), 550):
        system.call("POST", "/jobs/batch", {"jobs": jobs[first : first + 550]}, 201)
    worker = start("--concurrency", "1200")
    until(lambda: count(system, "completed") == len(jobs), 180)
    assert Counter(worker.notes()) == Counter(f"{number} runs" for number in range(len(jobs)))


@pytest.mark.parametrize("address", ["nats", pytest.param("http", marks=pytest.mark.slow)], indirect=True)
def test_a_worker_of_more_queues_than_a_fetch_names_serves_all(system: System, start: Start) -> None:
    queues = [f"hostile.{number}" for number in range(120)]
    worker = start("--queues", ",".join(queues))
    for queue in (queues[0], queues[60], queues[-1]):
        waiting = [pushed(system, "hostile.well", queue=queue) for _ in range(2)]
        assert [completed(system, job_id)["attempt"] for job_id in waiting] == [1, 1]
    assert not worker.events("a fetch failed")


# What handlers share with their worker


@pytest.mark.slow
@both_ways
def test_handlers_that_fill_the_loop_s_own_threads_hold_up_nothing_else(
    system: System, address: str, start: Start, folder: Path
) -> None:
    """Each request is made on a connection of its own, so that the server's name is looked up again and again."""
    through = address.startswith("http")
    with Proxy.before(system.url, keeps_connections=False) as proxy:
        worker = start("--concurrency", "14", url=(proxy.url if through else address).replace("127.0.0.1", "localhost"))
        full = [pushed(system, "hostile.fill", "open", visibility_timeout_ms=6_000) for _ in range(12)]
        until(lambda: worker.notes().count("filling") == len(full))
        late = time.monotonic() + (PATIENCE_S if through else 0.0)  # what is known of names is forgotten meanwhile
        turns = 0

        def another_job_runs() -> bool:
            nonlocal turns
            completed(system, pushed(system, "hostile.well"), 10)
            turns += 1
            return turns >= 3 and time.monotonic() > late

        until(another_job_runs, every=1.5)
        (folder / "open").touch()
        assert [completed(system, job_id)["result"] for job_id in full] == [1] * len(full)
        assert not worker.events("progress could not be reported")
        with exits(worker):
            worker.signal(signal.SIGTERM)


def test_progress_that_the_server_refuses_is_a_warning(system: System, start: Start) -> None:
    worker = start("--processes", "1")
    kinds = [f"hostile.tell_{kind}" for kind in ("coroutine", "thread", "process")]
    for kind in kinds:
        told = completed(system, pushed(system, kind, 5_000_000), 60)
        assert (told["attempt"], told["result"]) == (1, "told"), kind
    assert {line["job_type"] for line in worker.events("progress could not be reported")} == set(kinds)


# What this worker can't run

OTHERS = [
    pytest.param("nats", "by an operator", marks=pytest.mark.slow),
    pytest.param("http", "with all that the server knew", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    ("address", "forgotten"),
    [
        ("http", "by an operator"),
        ("nats", "with all that the server knew"),
        *(OTHERS if ALL else []),
    ],
    indirect=["address"],
)
def test_a_worker_that_is_forgotten_takes_its_own_jobs_alone(system: System, start: Start, forgotten: str) -> None:
    worker = start("--concurrency", "4")
    completed(system, pushed(system, "hostile.well"))
    if forgotten == "by an operator":
        [known] = system.request("GET", "/ojs/v1/admin/workers").body["items"]
        system.call("DELETE", f"/workers/{known['id']}")
    else:
        system.reset()
    stranger = pushed(system, "other.team")
    for _ in range(3):
        assert completed(system, pushed(system, "hostile.well"))["attempt"] == 1
    until(lambda: worker.state(system) == "running")
    completed(system, pushed(system, "hostile.well"))
    assert (system.job(stranger)["state"], system.job(stranger).get("attempt", 0)) == ("available", 0)
    assert not system.job(stranger).get("errors")


def test_a_job_of_a_newer_producer_is_handed_back_for_a_while(system: System, start: Start) -> None:
    start()
    newer = pushed(system, "hostile.coroutine", "a value", "one argument more")

    def has_been_handed_back() -> bool:
        found = system.job(newer)
        return bool(found["state"] != "active" and found.get("uncounted_attempts", 0) == 1)

    until(has_been_handed_back)
    assert system.job(newer)["state"] == "retryable", system.job(newer)
    completed(system, pushed(system, "hostile.well"))


# Sent away and back


@both_ways
def test_an_operator_sends_a_worker_away_and_back(system: System, start: Start) -> None:
    worker = start()
    pushed(system, "hostile.beat", "never")
    until(worker.notes)
    [known] = system.request("GET", "/ojs/v1/admin/workers").body["items"]

    def told(directive: str, state: str) -> None:
        system.call("POST", f"/admin/workers/{known['id']}/directive", {"directive": directive})
        until(lambda: worker.state(system) == state)

    told("quiet", "quiet")
    told("resume", "running")
    completed(system, pushed(system, "hostile.well"))


@both_ways
def test_a_worker_that_its_machine_sends_away_stays_away(system: System, start: Start) -> None:
    worker = start()
    pushed(system, "hostile.beat", "never")
    until(worker.notes)
    worker.signal(signal.SIGTSTP)
    until(lambda: worker.state(system) == "quiet")

    def seen() -> str:
        [known] = system.request("GET", "/ojs/v1/admin/workers").body["items"]
        return str(known["last_heartbeat_at"])

    beats = {seen()}

    def it_has_beaten_three_times() -> bool:
        beats.add(seen())
        return len(beats) > 3

    until(it_has_beaten_three_times)
    waits = pushed(system, "hostile.well")
    assert worker.state(system) == "quiet"
    assert system.job(waits)["state"] == "available"
    worker.signal(signal.SIGCONT)
    completed(system, waits)


@both_ways
@pytest.mark.slow
def test_an_idle_worker_that_stood_still_leaves_no_job_active(system: System, start: Start) -> None:
    """What it was given meanwhile lies in its socket."""
    worker = start()
    until(lambda: worker.state(system) == "running")
    with stopped(worker.pid):
        jobs = [pushed(system, "hostile.well") for _ in range(5)]
        time.sleep(PATIENCE_S)  # what is tested is that this much has gone by
    for job_id in jobs:
        completed(system, job_id, 90)
    assert Counter(worker.notes()) == Counter(f"{job_id} runs" for job_id in jobs)

"""NATS is away for long, and clients go on calling: no process grows meanwhile, and each still ends in its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import linear_regression
from typing import Final

import pytest

from bench.processes import resident_mib
from ojs_runtime.service import CUT_OFF
from support.examples import amount
from support.figures import tell
from support.nats import NatsServer
from support.python_worker import WorkerProcess, installed
from support.system import Answer, Command, Gateway, KeptConnection, Processes
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

WARM_UP_S: Final = {"few": 20.0, "many": 20.0, "all": 150.0}[amount()]
"""What an outage needs for the first time is there afterwards: most of it after 20 s, all of it after two minutes."""
SAMPLED_S: Final = {"few": 30.0, "many": 40.0, "all": 300.0}[amount()]
EVERY_S: Final = 0.25
MOST_KIB_S: Final = 24.0
"""A process that keeps each failed attempt to connect grows by 52 KiB a second (a gateway) or 240 (the services), a
gateway that keeps what failed questions leave by 1,700. A thousand refused requests a second raise the highest use of
memory between two runs of the garbage collector by some 100 KiB now and then, which is up to 12 KiB a second here.
"""
GRACE_S: Final = 2
WORKER_ENDS_S: Final = GRACE_S + 8.0
"""What docs/python/workers.md promises."""
SERVICE_ENDS_S: Final = 5.0
LATE_S: Final = 5.0
"""How much later a process may be seen to have ended, on a machine that is busy."""
LINES: Final = 60
"""Lines of the log that a process may write in such an outage; it has up to 40 kinds of work that wait."""


class Site:
    """A gateway, all other services in one process, and a worker of the Python package."""

    def __init__(self, folder: Path) -> None:
        self.server = NatsServer(folder / "nats").start()
        self._processes = Processes(folder / "processes", self.server.url)
        self.services = self._start()
        installed("handlers", folder)
        self.worker = WorkerProcess.started(folder, "handlers", "--grace-period", f"{GRACE_S}s", url=self.api.url)

    def _start(self) -> dict[str, Command]:
        started = {name: self._processes.start(name) for name in ("gateway", "services")}
        self.api = Gateway(str(started["gateway"].ready()["url"]))
        started["services"].ready()
        return started

    @property
    def processes(self) -> Mapping[str, Command]:
        return {**self.services, "worker": self.worker}

    def start_anew(self) -> None:
        """Start nats-server and services again, and no worker."""
        self.server.start()
        self.services = self._start()

    def close(self) -> None:
        self.worker.end()
        self._processes.stop()
        self.server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    opened = Site(tmp_path)
    yield opened
    opened.close()


def test_no_process_grows_while_nats_is_away_and_each_ends_in_its_time(site: Site) -> None:
    waiting = [site.api.push("a.b", number, queue="waits")["id"] for number in range(20)]
    delayed = [site.api.push("a.b", queue="delayed", delay_until="2100-01-01T00:00:00Z")["id"] for _ in range(20)]
    gated = {"queue": "py.wait", "visibility_timeout": "30m"}
    held = [site.api.push("py.wait", f"job-{number}", "gate", **gated)["id"] for number in range(3)]
    until(lambda: len(site.worker.notes()) == len(held))
    site.server.kill()
    for name in ("gateway", "services"):
        until(lambda name=name: site.services[name].events("nats connection lost"))  # type: ignore[misc]
    until(lambda: site.worker.events("a heartbeat wasn't answered"))
    with caller(site.api.url) as call:
        during(WARM_UP_S, call)
        before = {name: len(command.output.splitlines()) for name, command in site.processes.items()}
        samples = sampled(site.processes, call)
    said = {name: len(command.output.splitlines()) - before[name] for name, command in site.processes.items()}
    slopes = {name: linear_regression(*zip(*found, strict=True)).slope * 1_024 for name, found in samples.items()}
    for name, slope in slopes.items():
        size = samples[name][0][1]
        tell(f"{name}: {size:.1f} MiB, {slope:+.1f} KiB a second over {SAMPLED_S:.0f} s, {said[name]} lines")
    assert {name: slope for name, slope in slopes.items() if slope > MOST_KIB_S} == {}
    assert {name: lines for name, lines in said.items() if lines > LINES} == {}
    for name, seconds in (("worker", WORKER_ENDS_S), ("gateway", SERVICE_ENDS_S), ("services", SERVICE_ENDS_S)):
        ends(site.processes[name], seconds)
    site.start_anew()
    until(lambda: site.api.request("GET", "/readyz").status == 200)
    states = {job_id: site.api.job(job_id)["state"] for job_id in (*waiting, *delayed, *held)}
    expected = (("available", waiting), ("scheduled", delayed), ("active", held))
    assert states == {job_id: state for state, jobs in expected for job_id in jobs}
    assert {job["id"] for job in site.api.fetch("waits", count=30)} == set(waiting)


@contextmanager
def caller(url: str) -> Iterator[Callable[[], None]]:
    """In here what this gives asks the gateway for all that clients ask for, once, and is told that NATS is away."""
    way = KeptConnection()
    job = {"type": "a.b", "args": [1], "options": {"queue": "waits"}}
    asked = (
        ("POST", "/jobs", job),
        ("POST", "/jobs/batch", {"jobs": [job] * 3}),
        ("POST", "/workers/fetch", {"queues": ["waits"], "worker_id": "w", "wait_ms": 100}),
        ("POST", "/workers/heartbeat", {"worker_id": "w", "active_job_ids": []}),
        ("GET", "/admin/jobs", None),
        ("GET", "/queues/waits/stats", None),
        ("POST", "/workflows", {"type": "group", "jobs": [job]}),
        ("GET", "/admin/findings", None),
        ("GET", "/events?after=0", None),
        ("POST", "/queues/waits/pause", None),
    )

    def call() -> None:
        answers: dict[str, Answer] = {}
        for method, path, body in asked:
            answers[path] = way(method, f"{url}/ojs/v1{path}", body, 30.0, {})
        refused = {path: answer.status for path, answer in answers.items() if path != "/admin/findings"}
        assert set(refused.values()) == {503}, refused

    try:
        yield call
    finally:
        way.close()


def during(seconds: float, call: Callable[[], None]) -> None:
    """Go on calling for so many seconds."""
    late = time.monotonic() + seconds
    while time.monotonic() < late:
        call()


def sampled(processes: Mapping[str, Command], call: Callable[[], None]) -> dict[str, list[tuple[float, float]]]:
    """Return the resident memory of each process (MiB) at times (seconds), while calls go on."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    begun = time.monotonic()
    while (at := time.monotonic() - begun) < SAMPLED_S:
        for name, command in processes.items():
            assert command.process.poll() is None, command.output
            found[name].append((at, resident_mib(command.pid)))
        during(EVERY_S, call)
    return found


def ends(command: Command, seconds: float) -> None:
    """See a process end in order at SIGTERM, in the time that it has for that."""
    begun = time.monotonic()
    assert command.stop() == 0, command.output
    took = time.monotonic() - begun
    assert (CUT_OFF in command.output, took < seconds + LATE_S) == (False, True), (took, command.output)

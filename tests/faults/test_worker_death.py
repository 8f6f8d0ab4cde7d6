"""A worker process dies while it holds jobs: they run elsewhere, and the dead one's late word counts for nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

import support.worker
from support import modules
from support.processes import end
from support.system import Services
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

JOBS = 5
LIVENESS_S = 30.0
TOLERANCE_S = 6.0
"""What may come on top of a deadline: a loaded machine. The last beat may have been a while ago, and have left half a lease."""


class Case(NamedTuple):
    """One way for the jobs of a dead worker to come back, `early` to `late` seconds after its last sign of life."""

    queue: str
    lease_s: float
    error: str
    early: float
    late: float


SHORT = Case("short-lease", 6.0, "visibility_timeout", 1.5, 6.0 + TOLERANCE_S)
LONG = Case("long-lease", 600.0, "worker_death", LIVENESS_S - 1.0, LIVENESS_S + TOLERANCE_S)
HELD_S = 7 * support.worker.BEAT_S
"""How long the worker of the short lease lives: longer than that, so that only its beats can have kept it."""


class Worker:
    """A running `support/worker.py`; its output tells what it holds."""

    def __init__(self, system: Services, case: Case, output: IO[str]) -> None:
        self.id = f"worker-{case.queue}"
        arguments = (system.url, self.id, case.queue, str(JOBS), str(round(case.lease_s * 1000)))
        self.process = modules.started("support.worker", *arguments, output=output)
        self._output = Path(output.name)

    def lines(self, key: str) -> list[Any]:
        """What it has said under `key` so far."""
        said = (
            json.loads(line) for line in self._output.read_text(encoding="utf-8").splitlines(keepends=True) if line[-1] == "\n"
        )
        return [line[key] for line in said if key in line]


@contextmanager
def worker(system: Services, case: Case, folder: Path) -> Iterator[Worker]:
    with (folder / f"{case.queue}.out").open("w", encoding="utf-8") as output:
        started = Worker(system, case, output)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def test_jobs_of_a_dead_worker_run_elsewhere(system: Services, tmp_path: Path) -> None:
    for case in (SHORT, LONG):
        for number in range(JOBS):
            system.push("held", number, queue=case.queue)
    with worker(system, SHORT, tmp_path) as short, worker(system, LONG, tmp_path) as long:
        held = {SHORT: until(lambda: short.lines("held"))[0], LONG: until(lambda: long.lines("held"))[0]}
        died = {}
        for case, dying, beats in ((LONG, long, 2), (SHORT, short, HELD_S / support.worker.BEAT_S)):
            until(lambda dying=dying, beats=beats: len(dying.lines("extended")) > beats)  # type: ignore[misc]
            for job in held[case]:
                assert shown(system, job["id"])["state"] == "active", "its beats must have kept the lease"
            died[case] = time.time()
            assert end_by_kill(dying) == -9

    for case in (SHORT, LONG):
        taken = take_over(system, case, died[case])
        assert sorted(job["id"] for job in taken) == sorted(job["id"] for job in held[case])
        for job in held[case]:
            late_word_is_refused(system, f"worker-{case.queue}", job["id"])
        for job in taken:
            assert job["attempt"] == 2
            finish(system, job["id"])
            final = shown(system, job["id"])
            assert (final["state"], final["attempt"]) == ("completed", 2)
            assert [(error["code"], error["type"], error["attempt"]) for error in final["errors"]] == [
                (case.error, case.error, 1)
            ]


def end_by_kill(dying: Worker) -> int:
    return end(dying.process, 9)


def take_over(system: Services, case: Case, died_at: float) -> list[dict[str, Any]]:
    """Fetch with another worker until all jobs came, within the time that the case allows; a fetch waits for them."""
    taken: list[dict[str, Any]] = []

    def all_came() -> bool:
        came = system.fetch(case.queue, count=JOBS, worker_id="heir", wait_ms=1_000, visibility_timeout_ms=60_000)
        assert not came or time.time() - died_at >= case.early, f"{case.queue}: taken from a worker that may have lived"
        taken.extend(came)
        return len(taken) == JOBS

    until(all_came, died_at + case.late - time.time())
    return taken


def late_word_is_refused(system: Services, worker_id: str, job_id: str) -> None:
    before = shown(system, job_id)
    for path, more in (("ack", {"result": "late"}), ("nack", {"error": {"message": "late"}})):
        answer = system.request("POST", f"/ojs/v1/workers/{path}", {"job_id": job_id, "worker_id": worker_id} | more)
        assert answer.status == 409
        assert answer.body["error"]["code"] == "conflict"
    assert shown(system, job_id) == before
    beat = {"worker_id": worker_id, "active_jobs": [job_id], "visibility_timeout_ms": 600_000}
    assert system.request("POST", "/ojs/v1/workers/heartbeat", beat).body["jobs_extended"] == []
    assert shown(system, job_id) == before


def finish(system: Services, job_id: str) -> None:
    assert system.request("POST", "/ojs/v1/workers/ack", {"job_id": job_id, "worker_id": "heir"}).status == 200


def shown(system: Services, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = system.job(job_id)
    return job

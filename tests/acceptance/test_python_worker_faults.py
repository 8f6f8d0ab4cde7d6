"""Workers that stop, freeze, or lose their server: no job is lost, none runs twice by that."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ojs_nats import App
from ojs_nats.jobs import JobRequest
from support.python_worker import WorkerProcess, completed, exits, installed
from support.system import Services, System
from support.waiting import eventually, until

Start = Callable[..., WorkerProcess]
JOBS = 240
RESTARTS = 3


def runs(notes: list[str]) -> Counter[int]:
    """How often each job has begun."""
    return Counter(int(note.partition(" ")[0]) for note in notes)


@pytest.mark.slow
async def test_workers_are_restarted_in_turn_under_load(system: System, tmp_path: Path) -> None:
    """As a deployment does it: a new one starts, an old one is told to stop; meanwhile jobs keep coming."""
    installed("ledger", tmp_path)
    workers: list[WorkerProcess] = []

    def start() -> None:
        worker = WorkerProcess.started(tmp_path, "ledger", "--concurrency", "5", url=system.url, label=f"worker-{len(workers)}")
        workers.append(worker)

    try:
        async with App(system.url) as app:
            ids: list[str] = []

            async def push(count: int) -> None:
                numbers = range(len(ids), len(ids) + count)
                new = [JobRequest[None]("ledger.note", (number,), {"queue": "ledger"}) for number in numbers]
                ids.extend([handle.id for handle in await app.client.push_all(new)])

            await push(JOBS // (RESTARTS + 1))
            start()
            start()
            for restarted in range(RESTARTS):
                start()
                await push(JOBS // (RESTARTS + 1))  # so that the old one has some in hand
                with exits(workers[restarted]):
                    workers[restarted].signal(signal.SIGTERM)

            def noted() -> list[str]:
                return (tmp_path / "notes").read_text(encoding="utf-8").splitlines()

            await eventually(lambda: len(noted()) >= JOBS, 120)
        ran = [(int(number), int(attempt)) for number, attempt in map(str.split, noted())]
        assert Counter(number for number, _ in ran) == Counter(range(JOBS)), "each once"
        # What came while its worker was told to stop was handed back.
        for number, attempt in ran:
            assert attempt == 1 or system.job(ids[number])["uncounted_attempts"] == attempt - 1, (
                "at its first attempt that counts"
            )

        def completed() -> bool:
            found = system.call("GET", "/jobs?queue=ledger&state=completed&limit=1")
            return bool(found["pagination"]["total"] == JOBS)

        await eventually(completed)
    finally:
        for worker in workers:
            worker.end()


@pytest.mark.slow
def test_a_frozen_worker_loses_its_jobs_and_finds_out(system: System, start: Start, folder: Path) -> None:
    frozen = start("--concurrency", "1")
    job_id = system.push("py.wait", "a", "go", queue="py.wait", visibility_timeout_ms=5_000)["id"]
    until(lambda: frozen.notes() == ["a began 1"])
    frozen.signal(signal.SIGSTOP)
    start()
    until(lambda: frozen.notes() == ["a began 1", "a began 2"], 90)
    frozen.signal(signal.SIGCONT)
    until(lambda: "a stopped 1" in frozen.notes(), 60)
    (folder / "go").touch()
    assert completed(system, job_id)["result"] == 2
    with exits(frozen):
        frozen.signal(signal.SIGTERM)


@pytest.mark.slow
async def test_a_server_that_is_away_costs_no_job(
    own_services: Services, jobs: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two jobs, one ends while it is away, the other when it is back."""
    monkeypatch.setattr(jobs.app, "url", own_services.url)
    worker = WorkerProcess.started(folder, "handlers", url=own_services.url)
    gateway = own_services.running["gateway"].pid
    try:
        early, late = await jobs.wait.push("a", "early"), await jobs.wait.push("b", "late")
        until(lambda: sorted(worker.notes()) == ["a began 1", "b began 1"])
        os.kill(gateway, signal.SIGSTOP)
        until(lambda: worker.events("a heartbeat wasn't answered"))
        (folder / "early").touch()
        until(lambda: worker.events("how a job ended is reported again"))
        os.kill(gateway, signal.SIGCONT)
        (folder / "late").touch()
        assert (await early.result("60s"), await late.result("60s")) == (1, 1)
        assert sorted(worker.notes()) == ["a began 1", "b began 1"]
        until(lambda: worker.events("heartbeats are answered again"))
    finally:
        os.kill(gateway, signal.SIGCONT)
        worker.end()


async def test_a_short_lease_is_renewed_in_time(system: System, tmp_path: Path) -> None:
    """The server's pause between heartbeats is longer than what this job may be without one."""
    installed("ledger", tmp_path)
    worker = WorkerProcess.started(tmp_path, "ledger", url=system.url)
    try:
        options = {"queue": "ledger", "visibility_timeout_ms": 1_500}
        job_id = system.push("ledger.hold", 3.5, **options)["id"]
        until(lambda: system.job(job_id)["state"] == "completed", 30)
        assert system.job(job_id)["result"] == 1
    finally:
        worker.end()

"""How workers end: by signals, by Ctrl-C in a handler, in a program of somebody's own, by SIGKILL with all that is theirs."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from ojs_nats import App, JobContext, Retry, Worker
from support.examples import amount
from support.processes import runs, stopped
from support.python_worker import WorkerProcess, pushed
from support.system import System
from support.waiting import eventually, until

Start = Callable[..., WorkerProcess]
ALL: Final = amount() == "all"
QUEUE: Final = "hostile"
SECONDS: Final = 15.0
"""What "in seconds" means on a machine that is busy: none of what is waited for would end by itself before."""
both_ways = pytest.mark.parametrize("address", ["http", "nats"], indirect=True)


@pytest.fixture
def module() -> str:
    return "hostile"


def assert_handed_back(system: System, *job_ids: str) -> None:
    """See that they are there for another worker, and that their only attempt isn't used up."""
    for job_id in job_ids:
        found = system.job(job_id)
        assert found["state"] == "available", found
        assert found["uncounted_attempts"] == found["attempt"], found


def ends_in_seconds(worker: WorkerProcess) -> None:
    assert worker.process.wait(timeout=SECONDS) == 0, worker.output
    assert "Traceback" not in worker.output


# Signals

OTHER_THREADS: Final = [
    pytest.param("nats", "to_thread", signal.SIGINT, marks=pytest.mark.slow),
    pytest.param("http", "to_thread", signal.SIGTERM, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    ("address", "job_type", "number"),
    [
        ("http", "to_thread", signal.SIGINT),
        ("nats", "to_thread", signal.SIGTERM),
        ("http", "provided", signal.SIGINT),
        pytest.param("nats", "provided", signal.SIGINT, marks=pytest.mark.slow),  # it waits for three seconds as the others do
        *(OTHER_THREADS if ALL else []),
    ],
    indirect=["address"],
)
def test_a_thread_that_goes_on_keeps_no_process(system: System, start: Start, job_type: str, number: signal.Signals) -> None:
    worker = start("--grace-period", "100ms")
    held = pushed(system, f"hostile.{job_type}", 300.0)
    until(lambda: "the thread begins" in worker.notes())
    worker.signal(number)
    ends_in_seconds(worker)
    assert_handed_back(system, held)


@both_ways
def test_a_handler_that_panicked_is_waited_for_by_nobody(system: System, start: Start) -> None:
    worker = start("--concurrency", "1", "--grace-period", "1h")
    panicked = pushed(system, "hostile.coroutine", "raises a BaseException")
    numbered = pushed(system, "hostile.thread", "raises a number as text")

    def both_have_failed() -> bool:
        return [system.job(job_id)["state"] for job_id in (panicked, numbered)] == ["discarded"] * 2

    until(both_have_failed)
    worker.signal(signal.SIGTERM)
    ends_in_seconds(worker)


@both_ways
def test_ctrl_c_shortens_the_grace_period_that_sigterm_began(system: System, start: Start) -> None:
    worker = start("--grace-period", "1h")
    waits = pushed(system, "hostile.wait", "a", "never")
    until(lambda: worker.notes() == ["a runs"])
    worker.signal(signal.SIGTERM)
    until(lambda: worker.state(system) == "terminate")
    worker.signal(signal.SIGINT)
    ends_in_seconds(worker)
    assert_handed_back(system, waits)


@pytest.mark.parametrize("scheme", ["http", "nats"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_whose_registration_nobody_answers_hears_signals(folder: Path, number: signal.Signals, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://127.0.0.1:{silent.getsockname()[1]}"
        worker = WorkerProcess(folder, "worker", "hostile", env=WorkerProcess.surroundings(folder, url))
        try:
            silent.settimeout(60)
            connection, _ = silent.accept()
            with connection:
                worker.signal(number)
                ends_in_seconds(worker)
        finally:
            worker.end()


# Ctrl-C in a handler

OTHER_INTERRUPTS: Final = [
    pytest.param("nats", "coroutine", marks=pytest.mark.slow),
    pytest.param("http", "thread", marks=pytest.mark.slow),
    pytest.param("nats", "task", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("http", "coroutine"),
        ("nats", "thread"),
        ("http", "task"),
        *(OTHER_INTERRUPTS if ALL else []),
    ],
    indirect=["address"],
)
def test_ctrl_c_in_a_handler_hands_its_neighbours_back(system: System, start: Start, kind: str) -> None:
    worker = start("--concurrency", "9", "--grace-period", "1h")
    neighbours = [pushed(system, "hostile.wait", str(number), "never") for number in range(8)]
    until(lambda: len(worker.notes()) == len(neighbours))
    interrupted = pushed(system, f"hostile.interrupt_{kind}")
    ends_in_seconds(worker)
    assert_handed_back(system, *neighbours)
    found = system.job(interrupted)
    assert (found["state"], found["errors"][-1]["type"]) == ("discarded", "KeyboardInterrupt")


# In a program of one's own


class Program:
    """An app with a worker beside whatever else the program does."""

    def __init__(self, url: str) -> None:
        self.app = App(url)
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

        @self.app.job("hostile.embedded", queue=QUEUE, retry=Retry(1))
        async def embedded(ctx: JobContext) -> int:
            self.begun.set()
            await self.open.wait()
            return ctx.attempt

        self.embedded = embedded
        self.worker = Worker(self.app, concurrency=1, grace_period="1h", fetch_timeout="200ms")
        self.running = asyncio.create_task(self.worker.run())


@both_ways
async def test_an_embedded_worker_is_stopped_and_lets_its_job_end(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    program = Program(address)
    async with program.app, asyncio.timeout(60):
        handle = await program.embedded.push()
        await program.begun.wait()
        stopping = asyncio.create_task(program.worker.stop())
        late = await program.embedded.push()
        program.open.set()
        await stopping
        await program.running
        assert await handle.result("10s") == 1
        assert (await late.job()).state == "available"
    assert capfd.readouterr().out == "", "its lines go where the program's logging sends them"


@both_ways
async def test_an_embedded_worker_that_is_stopped_without_grace_hands_its_job_back(system: System, address: str) -> None:
    program = Program(address)
    async with program.app, asyncio.timeout(60):
        handle = await program.embedded.push()
        await program.begun.wait()
        async with asyncio.timeout(SECONDS):
            await program.worker.stop(0)
        await program.running
        assert_handed_back(system, handle.id)


@both_ways
async def test_an_embedded_worker_that_is_cancelled_hands_its_job_back(system: System, address: str) -> None:
    program = Program(address)
    async with program.app, asyncio.timeout(60):
        handle = await program.embedded.push()
        await program.begun.wait()
        program.running.cancel()
        async with asyncio.timeout(SECONDS):
            with pytest.raises(asyncio.CancelledError):
                await program.running
        assert_handed_back(system, handle.id)
        workers = system.request("GET", "/ojs/v1/admin/workers").body["items"]
        assert workers == [], "it has signed off"


@pytest.mark.parametrize("address", ["http", pytest.param("nats", marks=pytest.mark.slow)], indirect=True)
async def test_a_program_that_ends_with_its_worker_running_hands_its_job_back(system: System, address: str) -> None:
    """As `asyncio.run` does it: whatever is left in the loop is cancelled."""
    found: list[str] = []

    async def main() -> None:
        program = Program(address)
        async with program.app:
            found.append((await program.embedded.push()).id)
            await program.begun.wait()

    async with asyncio.timeout(60):
        await asyncio.to_thread(asyncio.run, main())
    await eventually(lambda: system.job(found[0])["state"] == "available")
    assert_handed_back(system, *found)
    assert system.request("GET", "/ojs/v1/admin/workers").body["items"] == [], "it has signed off"
    assert "ojs-nats-heartbeats" not in {thread.name for thread in threading.enumerate()}


# SIGKILL


@pytest.mark.parametrize("job_type", ["hostile.talk", "hostile.rest", "hostile.linger"])
def test_a_process_of_the_pool_ends_in_silence_with_its_killed_worker(
    system: System, start: Start, folder: Path, job_type: str
) -> None:
    """The worker hasn't read all that the process has said."""
    worker = start("--processes", "1")
    pushed(system, job_type)
    pid = int(until(lambda: re.findall(r"pid (\d+)", "\n".join(worker.notes())))[0])
    with stopped(worker.pid):
        (folder / "go on").touch()
        if job_type == "hostile.linger":
            until(lambda: "said" in worker.notes())
        worker.end()
    until(lambda: not runs(pid))
    for word in ("Traceback", "BrokenPipe", "ConnectionReset"):
        assert word not in worker.output

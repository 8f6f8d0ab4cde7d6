"""What `ojs-nats worker` does around its handlers: middleware, dependencies, processes, time-outs, health, reload."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ojs_nats import JobFailed, batch, chain, group
from ojs_nats.errors import JobCancelled
from ojs_nats.workflows import Dag
from support.examples import amount
from support.python_worker import WorkerProcess, completed, exits, imported, installed
from support.system import System, environment
from support.waiting import eventually, until

Start = Callable[..., WorkerProcess]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    installed("features", tmp_path)
    return tmp_path


@pytest.fixture
async def jobs(system: System, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The module `features`, to push its jobs."""
    monkeypatch.setenv("OJS_URL", system.url)
    module = imported("features", monkeypatch)
    async with module.app:
        yield module


@pytest.fixture
def start(system: System, folder: Path) -> Iterator[Start]:
    """Starts a worker of `features`, with more arguments and variables of its environment."""
    begun: list[WorkerProcess] = []

    def start(*arguments: str, **variables: str) -> WorkerProcess:
        label = f"worker-{len(begun)}"
        begun.append(WorkerProcess.started(folder, "features", *arguments, url=system.url, label=label, **variables))
        return begun[-1]

    yield start
    for worker in begun:
        worker.end()


def begun(worker: WorkerProcess) -> list[int]:
    """The ids of the processes that a handler has noted."""
    return [int(pid) for line in worker.notes() if line.startswith("burning") for pid in line.split()[1:]]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it has ended, maybe since the file was opened
        return False


async def test_a_verbose_worker_shows_each_job_and_the_traceback_of_a_failure(jobs: Any, start: Start) -> None:
    worker = start("--verbose")
    with pytest.raises(JobFailed, match="boom"):
        await (await jobs.query.push("boom")).result("30s")
    [failed] = worker.events("the job failed")
    assert (failed["error"], failed["reason"]) == ("ValueError", "boom")
    assert "features.py:" in failed["where"]
    assert failed["exception"].endswith("ValueError: boom")
    assert worker.events("the job begins")


async def test_a_worker_that_must_not_log_payloads_names_class_and_place_alone(jobs: Any, start: Start) -> None:
    worker = start("--verbose", "--log-payloads", "off")
    with pytest.raises(JobFailed, match="boom"):
        await (await jobs.query.push("boom")).result("30s")
    [failed] = worker.events("the job failed")
    assert failed["error"] == "ValueError"
    assert "features.py:" in failed["where"]
    assert not {"reason", "exception"} & failed.keys()


# Dependencies


async def test_dependencies_are_made_for_a_job_and_cleaned_up_behind_it(jobs: Any, start: Start) -> None:
    worker = start()
    assert await (await jobs.query.push("a row")).result("30s") == "a row from the worker's own 1, locked"
    assert worker.notes() == ["the worker begins", "opened", "unlocked", "closed"]
    with pytest.raises(JobFailed, match="boom"):
        await (await jobs.query.push("boom")).result("30s")
    assert worker.notes()[4:] == ["opened", "met boom", "closed", "reported ValueError of ft.query"]
    with exits(worker):
        worker.signal(signal.SIGTERM)
    assert worker.notes()[-1] == "the worker ends"


async def test_what_a_thread_uses_is_cleaned_up_when_it_has_done(jobs: Any, start: Start) -> None:
    worker = start()
    handle = await jobs.patient.push()
    until(lambda: any(line.startswith("begun") for line in worker.notes()))
    await handle.cancel()
    worker.beats()
    until(lambda: "closed" in worker.notes())
    assert worker.notes()[-2:] == ["done with the connection", "closed"]


# Middleware


async def test_lines_of_a_job_have_its_id_and_its_trace(jobs: Any, start: Start) -> None:
    worker = start()
    handle = await jobs.chain.push(1)
    await handle.result("30s")
    [begins] = [line for line in worker.events("the job begins") if line["job_id"] == handle.id]
    [ends] = [line for line in worker.events("the job ends") if line["job_id"] == handle.id]
    [elsewhere] = [line for line in worker.events("a line from elsewhere") if line["job_id"] == handle.id]
    assert (begins["job_type"], ends["ending"], elsewhere["job_type"]) == ("ft.chain", "completed", "ft.chain")
    assert ends["seconds"] >= 0
    assert elsewhere["trace_id"] == begins["trace_id"]


async def test_an_error_is_reported_and_a_report_that_fails_harms_nobody(jobs: Any, start: Start) -> None:
    worker = start()
    with pytest.raises(JobFailed, match="boom"):
        await (await jobs.query.push("boom")).result("30s")
    assert "reported ValueError of ft.query" in worker.notes()
    assert worker.events("an error could not be reported")


async def test_the_server_sees_neither_arguments_nor_results(
    system: System, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.setenv("KEYS", "a")
    monkeypatch.setenv("OJS_URL", system.url)
    jobs: Any = imported("features", monkeypatch)
    async with jobs.app:
        handle = await jobs.query.push("Ada's secret")
        [many] = await jobs.app.client.push_all([jobs.query.job("Bob's secret")])
        start(KEYS="ab")  # the key has been changed since
        assert await handle.result("30s") == "Ada's secret from the worker's own 1, locked"
        stored = system.job(handle.id)
        assert stored["args"][0]["ojs_encoded"] is True
        assert stored["result"]["key_id"] == "a"
        assert stored["meta"]["ojs.codec.key_id"] == "a"
        assert "Ada's secret" not in str(stored)
        assert "Bob's secret" not in str(system.request("GET", f"/ojs/v1/jobs/{many.id}").body)
        until(lambda: system.job(many.id)["state"] == "completed")


async def test_nor_those_of_bulk_pushes_workflows_and_cron_entries(
    system: System, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.setenv("KEYS", "a")
    monkeypatch.setenv("OJS_URL", system.url)
    jobs: Any = imported("features", monkeypatch)
    secret = jobs.query.job("a secret")
    async with jobs.app:
        client = jobs.app.client
        start(KEYS="a")
        flow = Dag()
        first = flow.add(chain(secret, group(secret, secret)))
        flow.add(secret, after=[first], id="last")
        handle = await client.workflows.start(flow)
        result = await handle.result("30s")
        assert result["last"].startswith("a secret from")
        assert [each[:8] for each in result["0"]] == ["a secret"] * 2
        [pushed] = await client.push_each([secret])
        callback = await client.workflows.start(batch(jobs.query.job("a secret"), on_success=jobs.query.job("a secret")))
        await callback.result("30s")
        entry = await client.crons.register("nightly", "0 3 * * *", secret)
        ids = [pushed.id] + [job.id for each in (handle, callback) async for job in each.jobs()]
        assert len(ids) == 7
        stored = [system.request("GET", f"/ojs/v1/jobs/{job_id}").body for job_id in ids]
        assert all(each["job"]["args"][0]["ojs_encoded"] for each in stored)
        assert "a secret" not in f"{stored}{entry}"


# Time-outs


async def test_a_handler_whose_time_is_nearly_over_saves_and_ends(jobs: Any, start: Start) -> None:
    start()
    told = await (await jobs.soft.push()).result("30s")
    assert told == {"said": "the job's soft time-out of 0.3 s is over", "stopping": True, "left": True}


async def test_a_coroutine_that_won_t_be_cancelled_fails_and_keeps_its_place(jobs: Any, start: Start) -> None:
    worker = start("--grace-period", "100ms")
    with pytest.raises(JobFailed, match=r"time-?out|300 ms"):
        await (await jobs.stubborn.push()).result("30s")
    until(lambda: worker.events("the handler goes on though it has been told to stop"))
    with exits(worker):
        worker.signal(signal.SIGTERM)


async def test_a_coroutine_that_computes_hears_by_its_heartbeats_that_it_is_cancelled(jobs: Any, start: Start) -> None:
    worker = start()
    handle = await jobs.beats.push()
    until(lambda: "begun" in worker.notes())
    await handle.cancel()
    until(lambda: "cancelled: True" in worker.notes())


# Processes


async def test_a_process_computes_saves_tells_logs_and_hears_that_its_time_is_nearly_over(jobs: Any, start: Start) -> None:
    worker = start("--processes", "1")
    handle = await jobs.compute.push(21, by=2.0)
    first = await handle.result("60s")
    assert (first["result"], first["saved"]) == (42.0, 21)
    assert first["pid"] != worker.pid
    assert await (await jobs.save_in_time.push()).result("110s") == "saved"
    assert (await (await jobs.compute.push(1)).result("60s"))["pid"] == first["pid"], "it is kept"
    job = await handle.job()
    assert job.attempt == 2
    [line] = [line for line in worker.events("computing") if line["job_id"] == handle.id]
    assert line["number"] == 21
    assert worker.events("a library speaks")[0]["job_id"]
    [line] = [line for line in worker.events("structlog speaks") if line["job_id"] == handle.id]
    assert line["number"] == 21


CRASHES = {
    "segv": "ended by SIGSEGV",
    "kill": "by SIGKILL: the system may be out of memory",
    "exit": r"called exit\(5\)",
    "result": "object",
}
"""What a handler does in its process, and what is said of it."""
MORE_CRASHES = {"_exit": "with exit code 5", "discard": "never", "dead": "look"}
"""The same, which are tried with many examples."""


async def test_a_process_that_crashes_fails_its_job_alone(jobs: Any, start: Start) -> None:
    start("--processes", "2")
    crashes = CRASHES if amount() == "few" else CRASHES | MORE_CRASHES
    all_of_them = [jobs.crash.job(how) for crash in crashes for how in ("no", crash)]
    handles = await jobs.app.client.push_all([*all_of_them, jobs.crash.job("no")])
    for well in handles[::2]:
        assert await well.result("60s")
    for crashed, said in zip(handles[1::2], crashes.values(), strict=True):
        with pytest.raises(JobFailed, match=said):
            await crashed.result("60s")
    assert await (await jobs.crash.push("no")).result("60s")


async def test_a_process_that_runs_too_long_or_whose_job_is_cancelled_is_killed_with_its_own(jobs: Any, start: Start) -> None:
    worker = start("--processes", "1")
    assert await (await jobs.crash.push("no")).result("60s"), "its time is not that of the start of a process"
    with pytest.raises(JobFailed, match=r"time-?out|1500 ms"):
        await (await jobs.burn.push()).result("60s")
    until(lambda: begun(worker) and not any(alive(pid) for pid in begun(worker)))
    burnt = len(begun(worker))
    handle = await jobs.endless.push()  # another has taken its place
    until(lambda: len(begun(worker)) > burnt)
    await handle.cancel()
    worker.beats()
    with pytest.raises(JobCancelled):
        await handle.result("10s")
    until(lambda: not any(alive(pid) for pid in begun(worker)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_processes_end_with_their_worker(jobs: Any, start: Start, number: signal.Signals) -> None:
    worker = start("--processes", "1", "--grace-period", "100ms")
    handle = await jobs.endless.push()
    until(lambda: begun(worker))
    worker.signal(number)
    assert worker.process.wait(timeout=60) == (0 if number is signal.SIGTERM else -number)
    until(lambda: not alive(begun(worker)[0]))
    if number is signal.SIGTERM:
        assert (await handle.job()).state in {"available", "retryable"}


async def test_a_soft_time_out_that_comes_before_the_handler_begins_is_told_to_it(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process imports the module for longer than the time-out."""
    installed("slow_start", tmp_path)
    monkeypatch.setenv("OJS_URL", system.url)
    module = imported("slow_start", monkeypatch)
    worker = WorkerProcess.started(tmp_path, "slow_start", "--processes", "1", url=system.url)
    try:
        async with module.app:
            assert await (await module.count.push()).result("110s") == "stopped, stopping=True"
    finally:
        worker.end()


# Health


async def asked(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_it_tells_how_it_is_and_what_it_has_done(jobs: Any, start: Start, unused_tcp_port: int) -> None:
    worker = start("--health-port", str(unused_tcp_port))
    url = f"http://127.0.0.1:{unused_tcp_port}"
    for path in ("/healthz", "/readyz"):
        status, text = await asked(url + path)
        assert (status, json.loads(text)["state"]) == (200, "running")
    assert await (await jobs.query.push("a row")).result("30s")
    with pytest.raises(JobFailed):
        await (await jobs.query.push("boom")).result("30s")
    _, metrics = await asked(f"{url}/metrics")
    for line in (
        'ojs_worker_jobs_started_total{queue="ft",type="ft.query"} 2.0',
        'ojs_worker_jobs_ended_total{ending="completed",queue="ft",type="ft.query"} 1.0',
        'ojs_worker_jobs_ended_total{ending="failed",queue="ft",type="ft.query"} 1.0',
        'ojs_worker_job_duration_seconds_count{queue="ft",type="ft.query"} 2.0',
        'ojs_worker_fetch_duration_seconds_count{found="jobs"} ',
        "ojs_worker_active 0.0",
        "ojs_worker_concurrency 10.0",
        "ojs_worker_loop_turns 1.0",
        "process_open_fds ",
    ):
        assert line in metrics
    worker.signal(signal.SIGTSTP)
    until(lambda: worker.events("the worker changes its state"))
    assert [(await asked(url + path))[0] for path in ("/healthz", "/readyz")] == [200, 503]


@pytest.mark.slow
async def test_a_blocked_loop_shows_in_its_health_is_told_of_and_its_job_is_kept(
    system: System, start: Start, unused_tcp_port: int
) -> None:
    worker = start("--health-port", str(unused_tcp_port))
    job_id = system.push("ft.block", 25.0, queue="ft", visibility_timeout_ms=10_000)["id"]

    async def unwell() -> bool:
        status, text = await asked(f"http://127.0.0.1:{unused_tcp_port}/healthz")
        return status == 503 and json.loads(text)["loop_turns"] is False

    await eventually(unwell)
    assert completed(system, job_id)["attempt"] == 1
    assert worker.events("the event loop is blocked: a handler calls what should run in a thread")
    await eventually(lambda: asked_well(unused_tcp_port))


async def asked_well(port: int) -> bool:
    return (await asked(f"http://127.0.0.1:{port}/healthz"))[0] == 200


def test_a_port_that_is_taken_is_one_sentence(system: System, folder: Path) -> None:
    port = system.url.rpartition(":")[2]
    worker = WorkerProcess(folder, "worker", "features", "--health-port", port, env=environment(FOLDER=str(folder)))
    assert worker.process.wait(timeout=60) == 1
    assert "Address already in use" in worker.output
    assert "Traceback" not in worker.output


# Development


@pytest.mark.slow
async def test_a_change_begins_the_worker_anew_and_loses_no_job(jobs: Any, start: Start, folder: Path) -> None:
    worker = start("--reload")
    handle = await jobs.patient_enough.push()
    until(lambda: "waiting" in worker.notes())
    features = folder / "features.py"
    features.write_text(features.read_text(encoding="utf-8").replace('"the first version"', '"the second version"'))
    until(lambda: worker.events("the worker begins anew"))
    (folder / "go").touch()
    assert await handle.result("30s") == "the first version"
    assert await (await jobs.patient_enough.push()).result("30s") == "the second version"
    features.write_text(features.read_text(encoding="utf-8") + "\nthis is no Python\n")
    until(lambda: "SyntaxError" in worker.output)
    features.write_text(features.read_text(encoding="utf-8").replace("\nthis is no Python\n", ""))
    assert await (await jobs.patient_enough.push()).result("30s") == "the second version"
    with exits(worker):
        worker.signal(signal.SIGTERM)
    assert worker.notes()[-1] == "the worker ends"

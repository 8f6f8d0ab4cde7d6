"""`ojs-nats worker`, as a process under signals, and pushes from Python."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ojs_nats import JobFailed, Unique
from ojs_nats.errors import ConflictError, DuplicateError, JobCancelled, NotFoundError, UnavailableError, WaitTimeoutError
from ojs_nats.jobs import JobRequest
from support.python_worker import WorkerProcess, completed, exits
from support.system import Services, System, environment
from support.waiting import eventually, until

Start = Callable[..., WorkerProcess]
both_ways = pytest.mark.parametrize("address", ["http", "nats"], indirect=True)


@both_ways
async def test_from_a_push_to_its_result(jobs: ModuleType, start: Start) -> None:
    start()
    handle = await jobs.greet.push("Ada", greeting="Good morning")
    assert await handle.result(timeout="30s") == {"said": "Good morning, Ada"}
    assert await (await jobs.add.push(1)).result("30s") == 2
    shipped = await jobs.ship.push(jobs.Address("Elm", 5), day=date(2026, 11, 23))
    assert await shipped.result("30s") == "Elm 5 on Monday"
    many = await jobs.app.client.push_all([jobs.add.job(n, n, n) for n in range(20)])
    assert [await handle.result("30s") for handle in many] == [3 * n for n in range(20)]
    assert await (await jobs.add.later("100ms").push(4)).result("30s") == 5


@both_ways
async def test_what_failed_runs_again_and_knows_what_was_saved(jobs: ModuleType, start: Start) -> None:
    start()
    handle = await jobs.flaky.push()
    assert await handle.result("30s") == 2
    assert (await handle.job()).attempt == 3


async def test_a_handler_says_when_its_job_goes_on(system: System, jobs: ModuleType, start: Start) -> None:
    start()
    put_off, later = await jobs.snoozing.push(2), await jobs.later.push()
    assert await put_off.result("30s") == 3, "with a single attempt by its policy"
    assert await later.result("30s") == 2, "not after the hour of its policy"
    assert "errors" not in system.job(put_off.id)
    assert (await later.job()).errors[0].message == "the other side asks for it"


@pytest.mark.parametrize(
    ("how", "attempts", "said"), [("discard", 1, "it makes no sense"), ("boom", 3, "boom"), ("exit", 3, "exit.3.")]
)
async def test_what_fails_for_good_says_why(jobs: ModuleType, start: Start, how: str, attempts: int, said: str) -> None:
    start()
    handle = await jobs.fail.push(how)
    with pytest.raises(JobFailed, match=said):
        await handle.result("30s")
    assert (await handle.job()).attempt == attempts


async def test_a_handler_sends_its_job_to_the_dead_letters(system: System, jobs: ModuleType, start: Start) -> None:
    start()
    handle = await jobs.fail.push("dead_letter")
    with pytest.raises(JobFailed, match="somebody should look"):
        await handle.result("30s")

    def dead() -> list[str]:
        return [job["id"] for job in system.request("GET", "/ojs/v1/dead-letter").body["jobs"]]

    await eventually(lambda: dead() == [handle.id])


async def test_a_job_that_takes_too_long_is_stopped(jobs: ModuleType, start: Start) -> None:
    start()
    with pytest.raises(JobFailed, match=r"time-?out|300 ms"):
        await (await jobs.slow.push()).result("30s")


async def test_arguments_that_don_t_fit_fail_once_and_are_named(jobs: ModuleType, start: Start) -> None:
    start()
    handle = await jobs.app.client.push(JobRequest("py.add", ("one",), {"queue": "py"}))
    with pytest.raises(JobFailed, match="Expected `int`, got `str`"):
        await handle.result("30s")
    assert (await handle.job()).attempt == 1
    with pytest.raises(TypeError):
        await jobs.greet.push()


@both_ways
async def test_a_result_that_the_server_refuses_fails_its_job(jobs: ModuleType, start: Start) -> None:
    start()
    with pytest.raises(JobFailed, match="the limit is"):
        await (await jobs.large.push(20_000_000)).result("60s")


async def test_jobs_of_types_that_it_doesn_t_know_stay_for_others(jobs: ModuleType, start: Start) -> None:
    start()
    assert await (await jobs.add.push(1)).result("30s") == 2
    stranger = await jobs.app.client.push(JobRequest("py.stranger", (), {"queue": "py"}))
    assert await (await jobs.add.push(2)).result("30s") == 3
    assert (await stranger.job()).state == "available"


@both_ways
async def test_refusals_are_types(jobs: ModuleType) -> None:
    client = jobs.app.client
    new = jobs.add.job(1)
    first = await client.push(new)
    assert (await client.push(new)).id == first.id, "the same push, once more"
    [again] = await client.push_all([new])
    assert again.id == first.id
    with pytest.raises(DuplicateError):
        await client.push_all([new, (other := jobs.add.job(2))])
    with pytest.raises(NotFoundError):
        await client.jobs.get(other.id)
    only = jobs.greet.options(unique=Unique(keys=["type", "args"], period="1m"))
    one = await only.push("Ada")
    with pytest.raises(DuplicateError) as refused:
        await only.push("Ada")
    assert refused.value.existing_job_id == one.id
    with pytest.raises(NotFoundError):
        await client.jobs.get("019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f")
    with pytest.raises(WaitTimeoutError):
        await one.result("100ms")
    await one.cancel()
    with pytest.raises(JobCancelled):
        await one.result("10s")
    with pytest.raises(ConflictError):
        await one.cancel()


async def test_nobody_there(unused_tcp_port: int) -> None:
    from ojs_nats import Client  # noqa: PLC0415

    async with Client(f"http://127.0.0.1:{unused_tcp_port}", retry_for="200ms") as client:
        said = (
            rf"no server answers at http://127\.0\.0\.1:{unused_tcp_port} \(connection refused; getJob was tried\): "
            "start one with 'ojs-nats dev', or name another by OJS_URL"
        )
        with pytest.raises(UnavailableError, match=said) as error:
            await client.jobs.get("a")
        assert error.value.__cause__ is None, "nothing of aiohttp's in the traceback"
        assert error.value.__suppress_context__


async def test_a_client_that_waits_for_a_server_says_so(unused_tcp_port: int, caplog: pytest.LogCaptureFixture) -> None:
    from ojs_nats import Client  # noqa: PLC0415

    async with Client(f"http://127.0.0.1:{unused_tcp_port}", retry_for="3s") as client:
        with pytest.raises(UnavailableError, match=r"was tried, \d s long"):
            await client.jobs.get("a")
    [line] = [record.getMessage() for record in caplog.records if record.name == "ojs_nats._transport"]
    assert line.startswith("no server answers yet url='http://127.0.0.1:")
    assert "reason='connection refused'" in line
    assert re.search(r" gives_up_in_s=[0-3]$", line), line


@both_ways
def test_without_a_loop(jobs: ModuleType, start: Start) -> None:
    start()
    handle = jobs.add.push_sync(20, 22)
    assert handle.result("30s") == 42
    assert handle.job().state == "completed"
    jobs.app.sync.close()


# Signals and directives


@both_ways
async def test_sigterm_lets_jobs_end(system: System, jobs: ModuleType, start: Start, folder: Path) -> None:
    worker = start()
    handle = await jobs.wait.push("a", "go")
    until(lambda: worker.notes() == ["a began 1"])
    with exits(worker):
        worker.signal(signal.SIGTERM)
        until(lambda: worker.state(system) == "terminate")
        late = await jobs.wait.push("b", "go")
        (folder / "go").touch()
    assert await handle.result("10s") == 1
    assert (await late.job()).state == "available"
    assert worker.state(system) == ""


async def test_what_doesn_t_end_within_the_grace_period_is_handed_back(jobs: ModuleType, start: Start, folder: Path) -> None:
    worker = start("--grace-period", "200ms")
    waiting, held = await jobs.wait.push("a", "go"), await jobs.hold.push("b")
    until(lambda: sorted(worker.notes()) == ["a began 1", "b began 1"])
    with exits(worker):
        worker.signal(signal.SIGTERM)
    assert sorted(worker.notes()[2:]) == ["a stopped 1", "b stopped 1"]
    assert {(await handle.job()).state for handle in (waiting, held)} <= {"available", "retryable"}
    (folder / "go").touch()
    start("--queues", "py.wait")
    assert await waiting.result("30s") >= 1


async def test_ctrl_c_hands_back_at_once_and_a_thread_can_t_keep_the_process(jobs: ModuleType, start: Start) -> None:
    worker = start("--grace-period", "1h")
    handle = await jobs.stuck.push("a")
    until(lambda: worker.notes() == ["a began"])
    with exits(worker):
        worker.signal(signal.SIGINT)
    assert (await handle.job()).state in {"available", "retryable"}


async def test_quiet_and_back(system: System, jobs: ModuleType, start: Start, folder: Path) -> None:
    (folder / "go").touch()
    worker = start()
    worker.signal(signal.SIGTSTP)
    until(lambda: worker.state(system) == "quiet")
    handle = await jobs.wait.push("a", "go")
    with pytest.raises(WaitTimeoutError):
        await handle.result("1s")
    worker.signal(signal.SIGCONT)
    assert await handle.result("30s") == 1


async def test_the_server_tells_a_worker_to_end(system: System, start: Start) -> None:
    worker = start()
    [known] = system.request("GET", "/ojs/v1/admin/workers").body["items"]
    system.call("POST", f"/admin/workers/{known['id']}/directive", {"directive": "terminate"})
    worker.beats()
    assert worker.process.wait(timeout=60) == 0


@both_ways
async def test_a_job_that_is_cancelled_is_stopped(jobs: ModuleType, start: Start) -> None:
    worker = start()
    handle = await jobs.wait.push("a", "never")
    until(lambda: worker.notes() == ["a began 1"])
    await handle.cancel()
    worker.beats()
    until(lambda: worker.notes() == ["a began 1", "a stopped 1"])
    assert (await handle.job()).state == "cancelled"


@both_ways
@pytest.mark.slow
def test_a_worker_that_is_killed_has_its_jobs_run_elsewhere(system: System, start: Start, folder: Path) -> None:
    worker = start("--concurrency", "1")
    job_id = system.push("py.wait", "a", "go", queue="py.wait", visibility_timeout_ms=5_000)["id"]
    until(lambda: worker.notes() == ["a began 1"])
    start()
    worker.process.kill()
    (folder / "go").touch()
    assert completed(system, job_id, 90)["result"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no module nowhere"),
        (["json"], "json has no App"),
        (["handlers", "--concurrency", "0"], "at least one job at a time"),
        (["handlers", "--grace-period", "soon"], "a duration is written like 30s"),
    ],
)
def test_what_keeps_a_worker_from_starting_is_one_sentence(folder: Path, arguments: list[str], said: str) -> None:
    worker = WorkerProcess(folder, "worker", *arguments, env=environment(FOLDER=str(folder)))
    assert worker.process.wait(timeout=60) == 1
    assert said in worker.output
    assert "Traceback" not in worker.output


def test_a_worker_takes_the_names_that_an_operator_sets(system: System, folder: Path) -> None:
    names = {"OJS_QUEUES": "one, two", "OJS_JOB_TYPES": "py.greet", "OJS_CONCURRENCY": "3"}
    env = environment(FOLDER=str(folder), OJS_URL=system.url, **names)
    worker = WorkerProcess(folder, "worker", "handlers", env=env)
    job_id = system.push("py.greet", "Ada", "hello", queue="two")["id"]
    until(lambda: system.job(job_id)["state"] == "completed", 60)
    [listed] = system.call("GET", "/admin/workers")["items"]
    assert (sorted(listed["queues"]), listed["concurrency"]) == (["one", "two"], 3)
    worker.end()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OJS_CONCURRENCY", "many", "OJS_CONCURRENCY is a number of jobs, not 'many'"),
        ("OJS_JOB_TYPES", "py.greet,nowhere", "there is no job of type nowhere (--types, OJS_JOB_TYPES)"),
    ],
)
def test_a_variable_that_no_worker_can_take_is_one_sentence(folder: Path, name: str, value: str, said: str) -> None:
    worker = WorkerProcess(folder, "worker", "handlers", env=environment(FOLDER=str(folder), **{name: value}))
    assert worker.process.wait(timeout=60) == 1
    assert said in worker.output
    assert "Traceback" not in worker.output


@pytest.mark.parametrize("url", ["ftp://host", "http://[::1", "http://host:99999", "nats://"])
def test_an_address_that_no_server_has_is_one_sentence(folder: Path, url: str) -> None:
    worker = WorkerProcess(folder, "worker", "handlers", env=environment(FOLDER=str(folder), OJS_URL=url))
    assert worker.process.wait(timeout=60) == 1
    assert "ojs-nats worker: OJS_URL: " in worker.output
    assert "Traceback" not in worker.output


@pytest.mark.parametrize("way", ["http", pytest.param("nats", marks=pytest.mark.slow)])
def test_a_gateway_that_is_killed_costs_a_worker_nothing(own_services: Services, folder: Path, way: str) -> None:
    worker = WorkerProcess.started(folder, "handlers", url=own_services.nats_url if way == "nats" else own_services.url)

    def runs(greeting: str) -> None:
        body: dict[str, Any] = {"type": "py.greet", "args": ["Ada", greeting], "options": {"queue": "py"}}
        job_id = own_services.call("POST", "/jobs", body, 201)["job"]["id"]
        until(lambda: own_services.job(job_id)["state"] == "completed", 60)

    runs("before")
    own_services.restart("gateway")
    runs("after")
    worker.signal(signal.SIGTERM)
    assert worker.process.wait(timeout=60) == 0

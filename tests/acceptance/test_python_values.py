"""What Python says in a push, a result and between the steps of a workflow: it arrives as it is, or is refused."""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ojs_api.work import FETCH
from ojs_nats import App, Client, Worker, chain
from ojs_nats._handed_on import with_results
from ojs_nats._lookups import Loop
from ojs_nats._operations import Request
from ojs_nats.errors import DuplicateError, InvalidRequestError
from ojs_nats.jobs import Job, JobRequest
from ojs_nats.sync import SyncClient
from ojs_nats.worker._lifecycle import Trigger
from support.python_worker import WorkerProcess
from support.system import System, environment

MEBIBYTE: Final = 2**20


class Fetched(msgspec.Struct):
    jobs: list[Job]


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@pytest.fixture(params=["HTTP", "NATS"])
def url(system: System, request: pytest.FixtureRequest) -> str:
    return system.url if request.param == "HTTP" else system.nats_url


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with Client(url) as client:
        yield client


def new(*args: Any, **meta: Any) -> JobRequest[Any]:
    return JobRequest("t.one", args, {"queue": "q", "meta": meta})


async def count(client: Client) -> int:
    return len([job async for job in client.jobs.list(queue="q")])


# Pushes


async def test_a_job_that_is_twice_in_a_push_is_refused_before_it_is_sent(client: Client, url: str) -> None:
    twin = new()
    with SyncClient(url) as other:
        for jobs in ([twin, twin], [twin, new(), twin.with_options(priority=5)]):
            for push in (client.push_all, client.push_each):
                with pytest.raises(ValueError, match=rf"the job {twin.id} \(t.one\) is there twice: a JobRequest is one job"):
                    await push(jobs)
            with pytest.raises(ValueError, match="is there twice"):
                await asyncio.to_thread(other.push_all, jobs)
    assert await count(client) == 0


async def test_a_job_that_is_pushed_again_is_there_once(client: Client) -> None:
    job = new()
    first, again = await client.push(job), await client.push(job)
    assert first.id == again.id == (await again.job()).id
    assert await count(client) == 1


async def test_another_job_of_the_same_id_is_a_duplicate(client: Client) -> None:
    job = new()
    await client.push(job)
    with pytest.raises(DuplicateError):
        await client.push(JobRequest("t.other", (), {"queue": "q"}, id=job.id))
    with pytest.raises(DuplicateError):
        await client.push_all([new(), JobRequest("t.other", (), {"queue": "q"}, id=job.id)])
    assert await count(client) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        new(float("nan")),
        new({"deep": [float("inf")]}),
        new("\udce9"),
        new({1: "a", "1": "b"}),
    ],
    ids=["NaN", "infinity", "half a surrogate pair", "one key twice"],
)
async def test_what_json_can_t_hold_is_refused_by_a_push(client: Client, wrong: JobRequest[Any]) -> None:
    for push in (client.push(wrong), client.push_all([new(), wrong]), client.push_each([wrong])):
        with pytest.raises(ValueError, match=r"args\S* (is|has) "):
            await push
    with pytest.raises(ValueError, match=r"meta\['a'\] is nan"):
        new(a=float("nan"))
    with pytest.raises(ValueError, match="args"):
        await client.workflows.start(chain(new(float("nan")), new()))
    with pytest.raises(ValueError, match="args"):
        await client.crons.register("nightly", "0 3 * * *", new(float("nan")))
    assert await count(client) == 0


async def test_what_a_call_can_t_say_is_refused_before_it_is_sent(client: Client, url: str) -> None:
    async with App(url) as app:

        @app.job(queue="q")
        async def echo(x: Any) -> Any:
            return x

        with pytest.raises(ValueError, match="x is nan, which JSON can't hold"):
            await asyncio.to_thread(echo.push_sync, float("nan"))
        with pytest.raises(ValueError, match="x is nan"):
            await echo.push(float("nan"))
        await asyncio.to_thread(app.sync.close)
    assert await count(client) == 0


async def test_jobs_that_can_be_read_once_are_pushed(client: Client) -> None:
    for push in (client.push_all, client.push_each):
        assert len(await push(new(number) for number in range(3))) == 3  # type: ignore[arg-type]
    assert await count(client) == 6


async def test_a_name_that_no_queue_has_is_refused_over_every_way(client: Client) -> None:
    with pytest.raises(InvalidRequestError, match=r"^.*lower-case letters"):
        await client.queues.pause("My Queue")
    with pytest.raises(InvalidRequestError):
        await client.push(JobRequest("t.one", id="none"))
    assert (await client.system.health()).status == "ok"


async def test_keys_that_aren_t_texts_come_back_as_they_were(url: str) -> None:
    app = App(url, retry_for="10s")

    @app.job(queue="q")
    async def in_loop(names: dict[int, str], sizes: dict[Size, int]) -> dict[int, dict[Size, str]]:
        return {number: dict.fromkeys(sizes, name) for number, name in names.items()}

    @app.job(queue="q")
    def in_thread(names: dict[int, str], sizes: dict[Size, int]) -> dict[int, dict[Size, str]]:
        return {number: dict.fromkeys(sizes, name) for number, name in names.items()}

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with app:
        for job in (in_loop, in_thread):
            handle = await job.push({1: "a", 2: "b"}, {Size.LARGE: 5})
            assert await handle.result("30s") == {1: {Size.LARGE: "a"}, 2: {Size.LARGE: "b"}}
            other = await asyncio.to_thread(job.push_sync, {1: "a"}, {Size.SMALL: 0})
            assert await asyncio.to_thread(other.result, "30s") == {1: {Size.SMALL: "a"}}
            with pytest.raises(
                TypeError, match=r"'names' isn't what the worker could read by its hint: Expected `int`, got `str`"
            ):
                await job.push({"one": "a"}, {})  # type: ignore[dict-item]
        await asyncio.to_thread(app.sync.close)
    worker.notify(Trigger.SIGINT)
    await running


# Workflows


async def test_results_for_which_a_job_has_no_room_are_read(system: System, client: Client) -> None:
    letters = "abcdef"
    handle = await client.workflows.start(chain(*(new(letter) for letter in letters), new("last")))
    job = Job("", "", "")
    for letter in [*letters, None]:
        body = {"queues": ["q"], "worker_id": "w", "wait_ms": 10_000}
        answer = await client._inside.transport.send(Request(FETCH, body=body, queue="q", answer_s=20.0))
        [job] = msgspec.json.decode(answer, type=Fetched).jobs
        if letter is not None:
            system.call("POST", "/workers/ack", {"job_id": job.id, "result": letter * (MEBIBYTE - 2)})
    assert any(isinstance(result, dict) for result in job.parent_results), "there is no room for all of them"
    found = await with_results(job, client._inside.transport.send)
    assert [(result[0], len(result)) for result in found.parent_results] == [(letter, MEBIBYTE - 2) for letter in letters]
    await handle.cancel()


# Workers


def test_a_worker_that_no_server_would_serve_says_so_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text("from ojs_nats import App\napp = App()\n@app.job\ndef nothing() -> None: ...\n")
    worker = WorkerProcess(tmp_path, "worker", "named", "--queues", "My Queue", env=environment(), label="worker")
    assert worker.process.wait(timeout=60) == 1
    assert "a queue's name has lower-case letters" in worker.output
    assert "Traceback" not in worker.output


# The way to the server


@pytest.mark.parametrize(("way", "make"), [("HTTP", asyncio.new_event_loop), ("HTTP", Loop), ("NATS", Loop)])
def test_a_program_that_takes_all_threads_keeps_nobody_from_the_server(
    system: System, way: str, make: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    address = (system.url if way == "HTTP" else system.nats_url).replace("127.0.0.1", "localhost")
    over = threading.Event()

    async def asked() -> str:
        loop = asyncio.get_running_loop()
        waiting = [loop.run_in_executor(None, over.wait) for _ in range(64)]
        try:
            async with asyncio.timeout(60), Client(address) as client:
                return (await client.system.health()).status
        finally:
            over.set()
            await asyncio.gather(*waiting)

    with asyncio.Runner(loop_factory=make) as runner:
        assert runner.run(asked()) == "ok"

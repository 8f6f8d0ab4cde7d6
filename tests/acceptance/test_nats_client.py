"""Python's client over NATS: what a user may do, and what becomes of requests when something dies."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest

from ojs_nats import App, Client, JobContext, Worker
from ojs_nats._requests import envelope
from ojs_nats.client import JobHandle
from ojs_nats.errors import RefusedError, UnavailableError
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._lifecycle import Trigger
from support.binding import guarded_nats, url_of
from support.cluster import monitored
from support.nats import NatsServer
from support.system import Processes, System, environment, send
from support.waiting import eventually, until


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NatsServer, str]]:
    """A nats-server with the users of the page on the binding, and the address of a gateway."""
    folder = tmp_path_factory.mktemp("guarded")
    with guarded_nats(folder / "nats") as server:
        processes = Processes(folder / "processes", url_of(server, "ojs"))
        try:
            gateway = processes.start("gateway", "--nats-api-url", url_of(server, "gateway"))
            yield server, gateway.ready()["url"]
        finally:
            processes.stop()


@pytest.fixture
def guarded(answered: tuple[NatsServer, str]) -> NatsServer:
    """The same, emptied."""
    server, url = answered
    assert send("POST", f"{url}/ojs/v1/admin/reset").status < 300
    return server


def job_for(queue: str) -> JobRequest[int]:
    return JobRequest("email.send", (1,), {"queue": queue})


async def test_a_user_pushes_to_its_queue_and_does_nothing_else(guarded: NatsServer) -> None:
    async with Client(url_of(guarded, "shop"), retry_for=5.0) as client:
        handle = await client.push(job_for("email"))
        assert len(await client.push_all([job_for("email"), job_for("email")])) == 2
        mixed = client.push_all([job_for("email"), job_for("billing")])
        assert (await handle.job()).id == handle.id
        for refused in (client.push(job_for("billing")), mixed, client.jobs.get(handle.id)):
            with pytest.raises(RefusedError, match="doesn't let this user") as said:
                await refused
            assert said.value.code == "permission_denied"


@pytest.mark.parametrize("queue", ["a b", "*", "email.>", "", "a\r\nPUB ojs.ready.x 0\r\n"])
async def test_a_queue_that_no_subject_can_name_is_refused_by_the_server(system: System, queue: str) -> None:
    async with Client(system.nats_url, retry_for=2.0) as client:
        with pytest.raises(RefusedError) as said:
            await client.queues.pause(queue)
    assert said.value.status in {400, 422}, "not a matter of NATS"


async def test_the_gateway_holds_a_user_to_the_queue_that_nats_let_it_name(guarded: NatsServer) -> None:
    link = await nats.connect(f"nats://shop:secret@127.0.0.1:{guarded.port}", inbox_prefix="_INBOX_shop")
    body = json.dumps(envelope(job_for("billing"))).encode()
    answer = await link.request("ojs.api.createJob.email", body, timeout=60)
    assert answer.headers is not None
    assert answer.headers["OJS-Status"] == "403"
    assert json.loads(answer.data)["error"]["code"] == "permission_denied"
    await link.close()


async def test_a_worker_of_one_queue_needs_no_more_than_its_permissions(
    guarded: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(url_of(guarded, "mailer"))
    ran: list[int] = []

    @app.job("email.send", queue="email")
    async def send_mail(ctx: JobContext, number: int) -> int:
        await ctx.progress(0.5)
        await ctx.save({"sent": number})
        ran.append(number)
        return number

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with Client(url_of(guarded, "shop")) as client:
        handles = await client.push_all([JobRequest("email.send", (number,), {"queue": "email"}) for number in range(10)])
        assert [await handle.result("30s") for handle in handles] == list(range(10))
    await eventually(lambda: len(ran) == 10)
    worker.notify(Trigger.SIGTERM)
    await running
    async with Client(url_of(guarded, "admin")) as client:
        assert sorted(ran) == list(range(10))
        elsewhere = await client.jobs.get(handles[0].id, queue="another")
        assert elsewhere.queue == "email", "it is looked for where it may have been moved to"
        with pytest.raises(RefusedError):
            await client.jobs.get("nothing")
    assert "secret" not in caplog.text


async def test_jobs_whose_answer_the_gateway_may_not_publish_are_back_at_once(guarded: NatsServer) -> None:
    async with Client(url_of(guarded, "shop")) as client:
        pushed = await client.push(job_for("email"))
    link = await nats.connect(f"nats://mailer:secret@127.0.0.1:{guarded.port}", inbox_prefix="_INBOX_mailer")
    wanted = {"queues": ["email"], "worker_id": "w1", "wait_ms": 20_000}
    await link.publish("ojs.api.fetchJobs.email", json.dumps(wanted).encode(), reply="_INBOX_unknown.a")
    wanted["worker_id"] = "w2"
    answer = await link.request("ojs.api.fetchJobs.email", json.dumps(wanted).encode(), timeout=60)
    [job] = json.loads(answer.data)["jobs"]
    assert (job["id"], job["worker_id"]) == (pushed.id, "w2")
    assert job["attempt"] == 2, "the first is not counted, and has its number"
    await link.close()


async def test_a_gateway_that_is_killed_amid_pushes_doubles_and_loses_none(processes: Processes) -> None:
    gateways = [processes.start("gateway") for _ in range(2)]
    url, _ = [str(gateway.ready()["url"]) for gateway in gateways]
    async with Client(processes.nats_url) as client:
        done = 0

        async def push(number: int) -> str:
            nonlocal done
            handle: JobHandle[Any] = await client.push(JobRequest("a.job", (number,), {"queue": "many"}))
            done += 1
            return handle.id

        pushes = [asyncio.create_task(push(number)) for number in range(600)]
        await eventually(lambda: done > 50, every=0.001)
        gateways[1].kill()
        ids = await asyncio.gather(*pushes)
    body = {"queues": ["many"], "worker_id": "w", "count": 1_000, "wait_ms": 1_000}
    fetched = send("POST", f"{url}/ojs/v1/workers/fetch", body).body["jobs"]
    assert sorted(job["id"] for job in fetched) == sorted(ids)


async def test_a_client_outlives_a_nats_server_and_its_gateways(nats_server: NatsServer, processes: Processes) -> None:
    async with Client(nats_server.url, retry_for=60.0) as client:
        with pytest.raises(UnavailableError, match="no gateway listens there"):
            async with Client(nats_server.url, retry_for=0.5) as impatient:
                await impatient.push(job_for("email"))
        first = asyncio.create_task(client.push(job_for("email")))
        processes.start("gateway").ready()
        await first
        nats_server.restart()
        second = await client.push(job_for("email"))
        assert (await second.job()).state == "available"


@pytest.mark.slow
async def test_a_client_leaves_a_server_where_no_gateway_listens(
    nats_server: NatsServer, processes: Processes, tmp_path: Path
) -> None:
    processes.start("gateway").ready()
    with NatsServer(tmp_path / "lonely", name="lonely", more='http: "127.0.0.1:-1"') as lonely:
        nats_server.kill()
        async with Client(f"{nats_server.url},{lonely.url}", retry_for=60.0) as client:
            with pytest.raises(UnavailableError, match="no gateway listens there"):
                async with Client(lonely.url, retry_for=0.5) as impatient:
                    await impatient.push(job_for("email"))
            pushed = asyncio.create_task(client.push(job_for("email")))
            await asyncio.to_thread(heard_by, lonely, "ojs-client")
            nats_server.start()
            handle = await pushed
            assert (await handle.job()).state == "available"


def heard_by(server: NatsServer, name: str) -> None:
    """Wait until a client of that name is connected to a server."""

    def connected() -> bool:
        return any(one.get("name") == name for one in monitored(server, "connz").get("connections", ()))

    until(connected)


async def test_nobody_there_is_said_without_the_password(unused_tcp_port: int) -> None:
    client = Client(f"nats://me:secret@127.0.0.1:{unused_tcp_port}", retry_for=0.5)
    with pytest.raises(UnavailableError, match=r"nats://\*\*\*@127") as said:
        await client.push(job_for("email"))
    assert "secret" not in str(said.value)


def test_a_script_that_closes_nothing_ends_without_a_word(system: System, tmp_path: Path) -> None:
    script = """
import asyncio
from ojs_nats import App
app = App()
@app.job("a.job")
async def job() -> None: ...
async def main() -> None:
    await job.push()
asyncio.run(main())
job.push_sync()
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment(OJS_URL=system.nats_url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")

"""The whole system with TLS (docs/tls.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest

from ojs_nats import App, Client
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import JobRequest
from ojs_nats.sync import SyncClient
from ojs_nats.tls import Tls
from support.certificates import Authority, Pair
from support.cli import Cli
from support.python_worker import WorkerProcess, imported, installed
from support.sessions import get, push, run
from support.system import Command, Processes, System, send
from support.waiting import eventually

HTTPS = "https://127.0.0.1:1"
JOB = {"type": "over.tls", "args": [1], "options": {"queue": "tls"}}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Pair:
    return authority.server()


@pytest.fixture(scope="module")
def secured(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system whose API speaks TLS, shared by the tests of this file."""
    with System.started(tmp_path_factory.mktemp("secured"), "--together", *options(pair)) as system:
        yield system


@pytest.fixture(scope="module")
def guarded(authority: Authority, pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One that asks clients for certificates, too."""
    folder = tmp_path_factory.mktemp("guarded")
    with System.started(folder, "--together", *options(pair), "--client-ca", str(authority.file)) as system:
        yield system


@pytest.fixture
async def http(secured: System, authority: Authority) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=authority.trusting())
    async with aiohttp.ClientSession(secured.url, connector=connector) as session:
        yield session


@pytest.fixture
def cli(secured: System, tmp_path: Path) -> Cli:
    return Cli(tmp_path, secured.url)


def options(pair: Pair) -> tuple[str, ...]:
    return ("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))


async def shown(system: System, text: str) -> bool:
    return text in system.output


async def test_a_client_with_a_ca_of_its_own_pushes_fetches_and_acks(secured: System, http: aiohttp.ClientSession) -> None:
    assert secured.url.startswith("https://127.0.0.1:")
    await eventually(lambda: shown(secured, f"curl {secured.url}"))
    job_id = await push(http, "tls")
    assert await run(http, "tls") == job_id
    assert (await get(http, f"/jobs/{job_id}"))["job"]["state"] == "completed"


async def test_http_without_tls_is_refused_and_counted(secured: System, http: aiohttp.ClientSession) -> None:
    refused = send("GET", f"{secured.url.replace('https', 'http')}/readyz")
    assert refused.status == 400
    assert refused.body["error"]["message"] == "this port speaks TLS alone: use https:// instead of http://"
    async with http.get("/metrics") as answer:
        text = await answer.text()
    assert 'ojs_tls_handshakes_failed_total{reason="plain_http"} 1.0' in text
    assert secured.events("TLS handshakes fail")


async def test_events_come_by_sse_and_web_socket(http: aiohttp.ClientSession) -> None:
    async with http.post("/ojs/v1/jobs", json=JOB) as answer:  # the queue is there
        assert answer.status == 201
    async with http.get("/ojs/v1/events/stream") as stream, http.ws_connect("/ojs/v1/ws") as socket:
        assert stream.status == 200
        await socket.send_json({"action": "subscribe", "channel": "queue:tls"})
        async with asyncio.timeout(60):
            assert (await socket.receive_json())["type"] == "subscribed"
            async with http.post("/ojs/v1/jobs", json=JOB) as answer:
                job_id = (await answer.json())["job"]["id"]
            while job_id not in (await socket.receive()).data:
                pass
            while job_id.encode() not in await stream.content.readline():
                pass


async def test_a_body_of_a_megabyte_goes_both_ways(http: aiohttp.ClientSession) -> None:
    large = "x" * 900_000
    async with http.post("/ojs/v1/jobs", json=JOB | {"args": [large]}) as answer:
        assert answer.status == 201
        job_id = (await answer.json())["job"]["id"]
    async with http.get(f"/ojs/v1/jobs/{job_id}") as answer:
        assert (await answer.json())["job"]["args"] == [large]


async def test_python_clients_use_the_ca_that_they_are_given(
    secured: System, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = Tls(ca_file=str(authority.file))
    async with App(secured.url, tls=tls) as app:
        handle = await app.client.push(JobRequest[None]("over.tls", (1,)))
    async with Client(secured.url, tls=authority.trusting()) as client:
        assert (await client.jobs.get(handle.id)).state == "available"
    monkeypatch.setenv("OJS_CA_FILE", str(authority.file))
    async with Client(secured.url) as client:
        assert (await client.jobs.get(handle.id)).id == handle.id


def test_so_does_the_client_without_a_loop(secured: System, authority: Authority) -> None:
    with SyncClient(secured.url, tls=Tls(ca_file=str(authority.file))) as client:
        assert client.system.health().status == "ok"


async def test_a_client_that_does_not_trust_the_certificate_is_told_why(secured: System) -> None:
    async with Client(secured.url, retry_for=0) as client:
        with pytest.raises(UnavailableError, match="certificate verify failed"):
            await client.system.health()


async def test_events_are_followed_by_the_python_client(secured: System, authority: Authority) -> None:
    async with Client(secured.url, tls=Tls(ca_file=str(authority.file))) as client:
        events = client.events(job_type="over.tls.followed")
        follower = asyncio.create_task(anext(events))

        async def told() -> bool:
            await client.push(JobRequest[None]("over.tls.followed", (1,)))
            return follower.done()

        await eventually(told, every=0.2)
        assert follower.result().type.startswith("job.")
        await events.aclose()


@pytest.mark.parametrize("by", ["server", "client"])
def test_a_worker_runs_jobs_over_tls(
    by: str, request: pytest.FixtureRequest, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`by` whom a certificate is shown: the server, or the client as well."""
    system: System = request.getfixturevalue("secured" if by == "server" else "guarded")
    shown = authority.client(f"worker-{by}")
    files = {"OJS_CA_FILE": str(authority.file)}
    if by == "client":
        files |= {"OJS_CERT_FILE": str(shown.certificate), "OJS_KEY_FILE": str(shown.key)}
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    installed("handlers", tmp_path)
    monkeypatch.setenv("OJS_URL", system.url)
    jobs = imported("handlers", monkeypatch)
    worker = WorkerProcess.started(tmp_path, "handlers", url=system.url, **files)
    try:
        assert asyncio.run(ran(jobs))
    finally:
        worker.end()


async def ran(jobs: ModuleType) -> bool:
    async with jobs.app:
        handle = await jobs.add.push(1, 2)
        return bool(await handle.result(timeout="60s") == 3)


def test_a_worker_whose_ca_can_not_be_read_says_so(secured: System, tmp_path: Path) -> None:
    installed("handlers", tmp_path)
    env = WorkerProcess.surroundings(tmp_path, secured.url, OJS_CA_FILE=str(tmp_path / "none.pem"))
    worker = Command(tmp_path, "worker", "handlers", env=env)
    assert worker.process.wait(60) == 1
    assert f"OJS_CA_FILE {tmp_path}/none.pem can't be read" in worker.output
    assert "Traceback" not in worker.output


# Clients' certificates


async def test_who_shows_no_certificate_gets_no_further_than_the_door(guarded: System, authority: Authority) -> None:
    async with Client(guarded.url, retry_for=0, tls=Tls(ca_file=str(authority.file))) as client:
        with pytest.raises(UnavailableError):
            await client.system.health()
    known = authority.client("known")
    tls = Tls(ca_file=str(authority.file), cert_file=str(known.certificate), key_file=str(known.key))
    async with Client(guarded.url, tls=tls) as client:
        assert (await client.system.health()).status == "ok"


async def test_refused_client_certificates_and_other_failed_handshakes_are_in_the_audit(
    guarded: System, authority: Authority, tmp_path: Path
) -> None:
    strange = Authority(tmp_path).client("strange")
    for shown in ({}, {"cert_file": str(strange.certificate), "key_file": str(strange.key)}):
        async with Client(guarded.url, retry_for=0, tls=Tls(ca_file=str(authority.file), **shown)) as client:
            with pytest.raises(UnavailableError):
                await client.system.health()
    assert send("GET", f"{guarded.url.replace('https', 'http')}/readyz").status == 400
    known = authority.client("auditor")
    tls = Tls(ca_file=str(authority.file), cert_file=str(known.certificate), key_file=str(known.key))
    async with Client(guarded.url, tls=tls) as client:

        async def told() -> bool:
            found = (await client.system.audit_page(event_type="auth.tls_failure")).entries
            assert {(entry.source_ip, entry.outcome) for entry in found} <= {("127.0.0.1", "failure")}
            return {entry.detail.reason for entry in found} >= {"client_certificate", "plain_http"}

        await eventually(told)


def test_probes_have_a_port_without_tls_beside_it(guarded: System) -> None:
    [url] = [line["health_url"] for line in guarded.events("ready") if line.get("url") == guarded.url and "health_url" in line]
    assert url.startswith("http://127.0.0.1:")
    assert send("GET", f"{url}/readyz").status == 200


# The command line


def test_commands_take_the_ca_from_an_option_the_environment_and_a_context(
    secured: System, authority: Authority, tmp_path: Path
) -> None:
    cli = Cli(tmp_path)
    refused = cli("queues", "--server", secured.url)
    assert refused.code == 3
    assert f"The certificate of {secured.url} isn't trusted (unable to get local issuer certificate)" in refused.err
    assert "--ca-file" in refused.err
    ca = str(authority.file)
    assert cli("queues", "--server", secured.url, "--ca-file", ca).code == 0
    cli.asked("context", "set", "secure", "--server", secured.url, "--ca-file", ca)
    assert f"ca file {ca}" in " ".join(cli.asked("context", "show", "secure").split())
    assert cli("queues").code == 0
    assert cli._replace(url=secured.url, more={"OJS_CA_FILE": ca})("queues").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server", HTTPS, "--ca-file", "/none.pem"), "/none.pem can't be read (No such file or directory)"),
        (
            ("--server", "http://127.0.0.1:1", "--ca-file", "/none.pem"),
            "go with https:// addresses, not with http://127.0.0.1:1",
        ),
        (("--server", HTTPS, "--key-file", "{key}"), "is named without cert_file"),
        (
            ("--server", HTTPS, "--cert-file", "{certificate}", "--key-file", "{ca}"),
            "can't be used with the key",
        ),
        (("--server", HTTPS, "--ca-file", "{key}"), "holds no certificate in PEM"),
    ],
)
def test_files_that_can_not_be_used_are_told_of(
    words: tuple[str, ...], said: str, authority: Authority, pair: Pair, tmp_path: Path
) -> None:
    given = [word.format(key=pair.key, certificate=pair.certificate, ca=authority.file) for word in words]
    refused = Cli(tmp_path)("queues", *given)
    assert refused.code == 2
    assert said in refused.err


def test_the_doctor_says_how_long_the_certificate_is_valid(cli: Cli, authority: Authority) -> None:
    found = cli("doctor", "--ca-file", str(authority.file), "--json").json["findings"]
    [tls] = [finding for finding in found if finding["check"] == "tls"]
    assert tls["status"] == "ok"
    assert tls["found"].startswith("TLSv1.3, the certificate is valid until ")
    said = cli("doctor", "--json")
    assert said.code == 3
    [trouble] = said.json["findings"]
    assert "isn't trusted" in trouble["found"]


# Several processes, and new certificates under load


@pytest.fixture
def renewed(authority: Authority) -> Pair:
    """The certificate of `both`, which is replaced while they run."""
    return authority.server("shared")


@pytest.fixture
def both(processes: Processes, renewed: Pair) -> list[Command]:
    """Two gateways with one certificate. Each is forked, where two of one command are starts of Python."""
    started = [processes.start("gateway", *options(renewed)) for _ in range(2)]
    for command in started:
        command.ready()
    return started


async def test_a_new_certificate_is_taken_up_by_all_processes_and_fails_no_request(
    both: list[Command], renewed: Pair, authority: Authority
) -> None:
    urls = [str(command.ready()["url"]) for command in both]
    pushed = 0
    over = asyncio.Event()

    async def producer(url: str) -> None:
        nonlocal pushed
        while not over.is_set():
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=authority.trusting())) as session:
                for _ in range(3):  # some on a connection that is open already
                    async with session.post(f"{url}/ojs/v1/jobs", json=JOB) as answer:
                        assert answer.status == 201
                        pushed += 1
            await asyncio.sleep(0.05)  # new certificates are looked for every few seconds: as many requests need no CPU

    def taken_up() -> int:
        return sum(bool(command.events("a new certificate is in use")) for command in both)

    async with asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(producer(url))
        await eventually(lambda: pushed > 10)
        renewed.take(authority.server("renewed"))
        before = pushed
        await eventually(lambda: taken_up() == 2 and pushed > before + 10, 60)
        over.set()

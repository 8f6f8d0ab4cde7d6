"""What the documented users of NATS can do through a gateway: what they were granted, whatever inbox they name."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nats
import nats.errors
import pytest
from nats.aio.client import Client as Nats
from nats.aio.msg import Msg

from ojs_command.services import SERVICES
from ojs_nats import App, Client, JobContext, Worker
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._lifecycle import Trigger
from support.binding import guarded_nats, in_accounts, in_namespace, operations_of, url_of, without_answering_user
from support.bodies import BODIES, body_of
from support.examples import amount
from support.nats import NatsServer
from support.system import Processes
from support.waiting import eventually

SELF_WRITTEN = re.compile(r"\$KV\.ojs\.(service|relay|barrier|probe|stats)\.")
"""Records that services write by themselves."""


class Guarded(NamedTuple):
    """A nats-server with the documented users, and a gateway's address."""

    server: NatsServer
    gateway: str

    @property
    def refused(self) -> int:
        """How many requests the gateway has refused for their reply subjects."""
        with urllib.request.urlopen(f"{self.gateway}/metrics", timeout=60) as answer:
            [count] = re.findall(r"^ojs_nats_replies_refused_total (\S+)$", answer.read().decode(), re.MULTILINE)
        return int(float(count))


@pytest.fixture(scope="module")
def worst(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One gateway whose answers leave with all rights, since it has no second user."""
    folder = tmp_path_factory.mktemp("worst")
    with guarded_nats(folder / "nats", without_answering_user()) as server:
        processes = Processes(folder / "processes", url_of(server, "ojs"))
        try:
            yield Guarded(server, str(processes.start("gateway").ready()["url"]))
        finally:
            processes.stop()


@pytest.fixture(params=["ojs", "shop"] if amount() == "all" else ["shop"])
def namespace(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def system(namespace: str, tmp_path: Path) -> Iterator[tuple[NatsServer, Processes]]:
    """All services with the rights that the page gives them, and a gateway that answers as a user of its own."""
    with guarded_nats(tmp_path / "nats", in_namespace(namespace)) as server:
        processes = Processes(tmp_path / "processes", url_of(server, "ojs"))
        try:
            for entry in SERVICES:
                own = ("--nats-api-url", url_of(server, "gateway")) if entry.name == "gateway" else ()
                processes.start(entry.name, "--namespace", namespace, *own)
            for command in processes.commands:
                command.ready()
            yield server, processes
        finally:
            processes.stop()


async def connected(server: NatsServer, user: str) -> Nats:
    async def ignore(_: Exception) -> None:
        pass

    url, _, _ = url_of(server, user).partition("?")
    return await nats.connect(url, inbox_prefix=f"_INBOX_{user}", error_cb=ignore)


class Spy:
    """Sees what is published on the subjects that answers must not go to."""

    def __init__(self, client: Nats) -> None:
        self._client = client
        self._requests: set[str] = set()
        self.seen: list[str] = []

    async def begin(self, requests: Sequence[str]) -> None:
        self._requests = set(requests)
        await self._client.subscribe("ojs.api.>", cb=self._note)
        await self._client.subscribe("$JS.API.STREAM.DELETE.>", cb=self._note)
        await self._client.subscribe("_INBOX.>", cb=self._note)
        await self._client.flush()

    async def _note(self, message: Msg) -> None:
        if message.subject not in self._requests:
            self.seen.append(message.subject)


async def stored(client: Nats) -> dict[str, tuple[str, bytes | None]]:
    """Everything in the streams that no service writes by itself, by stream and sequence."""
    found: dict[str, tuple[str, bytes | None]] = {}
    stream_context = client.jetstream()
    for stream in ("KV_ojs", "OJS_READY", "OJS_EVENTS"):
        state = (await stream_context.stream_info(stream)).state
        sequence = state.first_seq
        while sequence <= state.last_seq and state.messages:
            try:
                message = await stream_context.get_msg(stream, seq=sequence, subject=">", next=True)
            except nats.js.errors.NotFoundError:
                break
            assert message.subject is not None
            assert message.seq is not None
            if not SELF_WRITTEN.match(message.subject):
                found[f"{stream} {message.seq}"] = message.subject, message.data
            sequence = message.seq + 1
    return found


@pytest.fixture
async def everything(worst: Guarded) -> AsyncIterator[Nats]:
    """A connection with all rights."""
    client = await connected(worst.server, "ojs")
    yield client
    await client.close()


def bodies(job: dict[str, Any]) -> dict[str, Any]:
    """What each operation of the documented users is asked; `job` is one that the worker `w1` has."""
    held = {"queue": "email", "job_id": job["id"], "worker": "w1", "attempt": job["attempt"], "worker_id": "w9"}
    asked = {name: body_of(name, held) for name in BODIES}
    return asked | {"getJob": None, "getJobResult": None}


def hostile_replies(job_id: str) -> list[str]:
    return [
        f"$KV.ojs.job.{job_id}",
        "$KV.ojs.queue.payments",
        "$JS.API.STREAM.DELETE.KV_ojs",
        "$JS.API.STREAM.PURGE.OJS_READY",
        "$SRV.STATS.ojs",
        "ojs.api.pauseQueue.payments",
        "ojs.api.purgeQueue.payments",
        "ojs.control.reset",
        "ojs.query.status",
        "ojs.ready.payments.100",
        "ojs.events.job.completed.payments.x",
        f"ojs.due.reaper.{job_id}",
        "_INBOX.*",
        "_INBOX.>",
        "_INBOX.a.*.b",
        "_INBOX..a",
        "_INBOX_shop.a.",
        "anything.else",
        "_inbox.a",
        "_INBOX.a\x7f",
        "_INBOX.\N{LATIN SMALL LETTER E WITH ACUTE}",
    ]


async def answered(client: Nats, subject: str, body: Any, **headers: str) -> Any:
    said = {name.replace("_", "-"): value for name, value in headers.items()} or None
    message = await client.request(subject, json.dumps(body).encode(), timeout=20, headers=said)
    return json.loads(message.data)


@pytest.mark.parametrize("user", ["shop", "mailer"])
async def test_no_reply_subject_lets_a_user_do_more_than_granted(worst: Guarded, everything: Nats, user: str) -> None:
    for queue in ("email", "email", "payments"):
        await answered(everything, f"ojs.api.createJob.{queue}", {"type": "t", "args": [], "options": {"queue": queue}})
    wanted = {"queues": ["email"], "worker_id": "w1", "visibility_timeout_ms": 600_000}
    [job] = (await answered(everything, "ojs.api.fetchJobs.email", wanted))["jobs"]
    asked, subjects = bodies(job), operations_of(user)
    assert subjects
    replies, refused = hostile_replies(job["id"]), worst.refused
    spy = Spy(everything)
    await spy.begin(subjects)
    before = await stored(everything)
    assert sum(subject.startswith("$KV.ojs.job.") for subject, _ in before.values()) >= 3
    client = await connected(worst.server, user)
    sent = 0
    for subject in subjects:
        operation = subject.split(".")[2]
        body = asked[operation]
        for reply in replies:
            for interim in ({}, {"OJS-Interim": "1"}):
                headers = {"OJS-Parameters": f"job_id={job['id']}&timeout=100ms"} | interim
                payload = b"" if body is None else json.dumps(body).encode()
                await client.publish(subject, payload, reply=reply, headers=headers)
                sent += 1
    await client.flush()
    await eventually(lambda: worst.refused - refused == sent)
    await everything.flush()
    assert spy.seen == []
    assert await stored(everything) == before
    await client.close()


@pytest.mark.parametrize("subject", ["$SRV.PING", "$SRV.INFO.ojs", "$SRV.STATS.ojs"])
async def test_questions_about_the_service_are_answered_on_inboxes_alone(
    worst: Guarded, everything: Nats, subject: str
) -> None:
    await answered(everything, "ojs.api.createJob.email", {"type": "t", "args": [], "options": {"queue": "email"}})
    before, refused = await stored(everything), worst.refused
    replies = hostile_replies("019461a8-0000-7000-8000-000000000000")
    client = await connected(worst.server, "admin")
    for reply in replies:
        await client.publish(subject, reply=reply)
    assert json.loads((await client.request(subject, timeout=20)).data)["name"] == "ojs"
    await eventually(lambda: worst.refused - refused == len(replies))
    assert await stored(everything) == before
    await client.close()


async def test_the_documented_rights_are_all_that_the_services_need(
    namespace: str, system: tuple[NatsServer, Processes]
) -> None:
    server, processes = system
    app = App(f"{url_of(server, 'mailer')}&namespace={namespace}")
    ran: list[int] = []

    @app.job("email.send", queue="email")
    async def send_mail(ctx: JobContext, number: int) -> int:
        await ctx.progress(0.5)
        await ctx.save({"sent": number})
        ran.append(number)
        if number == 1 and ran.count(1) == 1:
            raise RuntimeError("once more")
        return number

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with Client(f"{url_of(server, 'shop')}&namespace={namespace}") as client:
        jobs = [JobRequest[int]("email.send", (number,), {"queue": "email"}) for number in range(10)]
        handles = await client.push_all(jobs)
        assert [await handle.result("60s") for handle in handles] == list(range(10))
    worker.notify(Trigger.SIGTERM)
    await running
    admin = await connected(server, "admin")
    await answered(admin, f"{namespace}.api.pauseQueue.email", None)
    listed = await answered(admin, f"{namespace}.api.listJobs._", None, OJS_Parameters="limit=100")
    assert len(listed["jobs"]) == 10
    events = await answered(admin, f"{namespace}.api.listEvents._", None, OJS_Parameters="types=job.completed&limit=100")
    assert len(events["events"]) == 10
    await answered(admin, f"{namespace}.api.resumeQueue.email", None)
    assert json.loads((await admin.request(f"$SRV.PING.{namespace}", timeout=60)).data)["name"] == namespace
    await admin.close()
    for command in processes.commands:
        assert "iolation" not in command.output, command.arguments
    assert "iolation" not in server.log


@pytest.mark.parametrize(
    "subject",
    [
        "$KV.ojs.job.any",
        "$JS.API.STREAM.DELETE.KV_ojs",
        "$JS.API.STREAM.NAMES",
        "$JS.ACK.KV_ojs.any",
        "$SRV.PING",
        "ojs.api.pauseQueue.payments",
        "ojs.ready.payments.100",
        "ojs.control.reset",
        "_INBOX.any",
        "_INBOX_ojs.any",
        "_INBOX_gateway.any",
    ],
)
async def test_the_answering_user_may_answer_on_clients_inboxes_alone(worst: Guarded, subject: str) -> None:
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(f"nats://gateway:secret@127.0.0.1:{worst.server.port}", error_cb=note)
    await client.publish("_INBOX_shop.any", b"")
    await client.publish(subject, b"")
    await eventually(lambda: len(refused) > 0)
    assert refused == [f'nats: permissions violation for publish to "{subject.lower()}"']
    await client.close()


async def test_a_client_of_another_account_works_and_reaches_no_subject_of_the_system(tmp_path: Path) -> None:
    with guarded_nats(tmp_path / "nats", in_accounts()) as server:
        processes = Processes(tmp_path / "processes", url_of(server, "ojs"))
        try:
            command = processes.start("gateway", "--nats-api-url", url_of(server, "gateway"))
            await asyncio.to_thread(command.ready)
            url = f"nats://till:secret@127.0.0.1:{server.port}"
            app = App(url)
            ran = asyncio.Event()

            @app.job("email.send", queue="email")
            async def send_mail() -> None:
                ran.set()

            worker = Worker(app, fetch_timeout="200ms")
            running = asyncio.create_task(worker.run())
            async with Client(url) as client:
                pushed = await client.push(JobRequest[None]("email.send", (), {"queue": "email"}))
                async with asyncio.timeout(60):  # a fetch that waits has two answers
                    await ran.wait()
                link = await nats.connect(url)
                asked = {"OJS-Parameters": f"job_id={pushed.id}"}
                await link.publish("ojs.api.getJob.email", headers=asked, reply=f"$KV.ojs.job.{pushed.id}")
                assert (await pushed.job()).id == pushed.id, "its record is what it was"
                await link.close()
            worker.notify(Trigger.SIGTERM)
            await running
            assert "iolation" not in command.output
        finally:
            processes.stop()

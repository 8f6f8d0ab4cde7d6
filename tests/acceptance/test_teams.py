"""What a team's NATS user asks is held to the queue of its subject: the other team's jobs and workers aren't touched."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import nats
import pytest
from nats.aio.client import Client as Nats

from ojs_engine.jetstream.grants import Team
from support import users
from support.nats import NatsServer
from support.system import Processes, send

SHOP, MEDIA = Team("shop", ("email", "invoices")), Team("media", ("thumbnails",))
V1: Final = "/ojs/v1"


class Answer(NamedTuple):
    status: int
    body: Any
    text: str


class Asking:
    """A NATS user who knows the API, and not only what the clients send."""

    def __init__(self, client: Nats) -> None:
        self._client = client

    async def __call__(self, operation: str, queue: str, body: object, headers: dict[str, str] | None = None) -> Answer:
        sent = json.dumps(body).encode()
        answer = await self._client.request(f"ojs.api.{operation}.{queue}", sent, timeout=30, headers=headers)
        text = answer.data.decode()
        return Answer(int((answer.headers or {})["OJS-Status"]), json.loads(text) if text else None, text)


class Teams(NamedTuple):
    """A system with two teams, and an operator's way in."""

    server: NatsServer
    url: str

    @asynccontextmanager
    async def asking(self, user: str) -> AsyncIterator[Asking]:
        seed = str(users.folder() / f"{user}.nk")
        address = f"nats://127.0.0.1:{self.server.port}"
        client = await nats.connect(address, nkeys_seed=seed, inbox_prefix=f"_INBOX_ojs_{user}".encode())
        try:
            yield Asking(client)
        finally:
            await client.close()

    def call(self, method: str, path: str, body: object = None) -> Any:
        answer = send(method, f"{self.url}{V1}{path}", body)
        assert answer.status < 300, answer
        return answer.body

    def push(self, queue: str, *args: object, **options: object) -> str:
        made = self.call("POST", "/jobs", {"type": "a.b", "args": args, "options": options | {"queue": queue}})
        return str(made["job"]["id"])

    def start(self, queue: str, worker: str) -> str:
        self.call("POST", "/workers/register", {"worker_id": worker, "queues": [queue]})
        asked = {"queues": [queue], "worker_id": worker, "wait_ms": 20_000}
        [job] = self.call("POST", "/workers/fetch", asked)["jobs"]
        return str(job["id"])

    def job(self, job_id: str) -> Any:
        return self.call("GET", f"/jobs/{job_id}")["job"]


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    folder = tmp_path_factory.mktemp("teams")
    with NatsServer(folder / "nats", more=users.section(SHOP, MEDIA)) as server:
        address = users.all_rights(f"127.0.0.1:{server.port}")
        users.make_streams(address)
        processes = Processes(folder / "processes", address, with_users=True)
        try:
            for service in ("gateway", "projector"):
                processes.start(service)
            ready = {command.arguments[0]: command.ready() for command in processes.commands}
            yield Teams(server, str(ready["gateway"]["url"]))
        finally:
            processes.stop()


@pytest.mark.parametrize("strategy", ["replace", "reject", "ignore"])
@pytest.mark.parametrize("operation", ["createJob", "createJobBatch", "bulkCreateJobs"])
async def test_a_unique_push_meets_no_job_of_the_other_team(teams: Teams, strategy: str, operation: str) -> None:
    policy = {"keys": ["type", "args"], "on_conflict": strategy}
    theirs = teams.push("thumbnails", operation, strategy, unique=policy)
    job = {"type": "a.b", "args": [operation, strategy], "options": {"queue": "email", "unique": policy}}
    async with teams.asking("shop-client") as shop:
        answer = await shop(operation, "email", job if operation == "createJob" else {"jobs": [job]})
        assert theirs not in answer.text
        assert "thumbnails" not in answer.text
        own = {**job, "options": {"queue": "email", "unique": policy | {"keys": ["type", "args", "queue"]}}}
        taken = await shop("createJob", "email", own)
    assert "unique.keys" in answer.text
    assert teams.job(theirs)["state"] == "available"
    assert taken.status == 201


async def test_a_worker_of_the_other_team_is_neither_signed_off_nor_kept_alive(teams: Teams) -> None:
    teams.push("thumbnails", "held")
    job_id = teams.start("thumbnails", "media-1")
    before = teams.job(job_id)
    async with teams.asking("shop-worker") as shop:
        for operation, body in (
            ("deregisterWorker", {"worker_id": "media-1"}),
            ("workerHeartbeat", {"worker_id": "media-1", "active_job_ids": [job_id]}),
            ("registerWorker", {"worker_id": "media-1", "queues": ["email"]}),
        ):
            answer = await shop(operation, "email", body)
            assert answer.status == 403, answer
            assert "thumbnails" not in answer.text
    after = teams.job(job_id)
    assert (after["state"], after["attempt"]) == ("active", before["attempt"])
    assert after.get("visible_until") == before.get("visible_until")


async def test_a_team_extends_the_jobs_of_its_queue_alone(teams: Teams) -> None:
    teams.push("thumbnails", "foreign")
    foreign = teams.start("thumbnails", "media-2")
    async with teams.asking("shop-worker") as shop:
        assert (await shop("registerWorker", "email", {"worker_id": "shop-2", "queues": ["email"]})).status == 200
        beat = await shop("workerHeartbeat", "email", {"worker_id": "shop-2", "active_job_ids": [foreign]})
        acked = await shop("ackJobs", "email", {"jobs": [{"job_id": foreign, "worker_id": "media-2"}]})
        left = await shop("deregisterWorker", "email", {"worker_id": "shop-2"})
    assert (beat.status, beat.body["jobs_extended"]) == (200, [])
    assert acked.status < 300
    assert teams.job(foreign)["state"] == "active"
    assert left.status == 200


async def test_a_fetch_under_the_name_of_the_other_teams_worker_says_nothing_of_that_worker(teams: Teams) -> None:
    async with teams.asking("media-worker") as media, teams.asking("shop-worker") as shop:
        fetch = {"worker_id": "media-3", "wait_ms": 0}
        assert (await media("fetchJobs", "thumbnails", {**fetch, "queues": ["thumbnails"]})).status == 200
        assert (await shop("fetchJobs", "email", {**fetch, "queues": ["email"]})).status == 200
        assert (await media("workerHeartbeat", "thumbnails", {"worker_id": "media-3"})).status == 200
    assert teams.call("GET", "/admin/workers/media-3")["queues"] == ["thumbnails"]


async def test_the_same_idempotency_key_of_two_teams_is_two_keys(teams: Teams) -> None:
    made = []
    for user, queue in (("media-client", "thumbnails"), ("shop-client", "email")):
        body = {"jobs": [{"type": "a.b", "args": ["nightly"], "options": {"queue": queue}}]}
        async with teams.asking(user) as client:
            answers = [await client("bulkCreateJobs", queue, body, {"Idempotency-Key": "nightly-1"}) for _ in range(2)]
        assert [answer.status for answer in answers] == [answers[0].status] * 2
        assert answers[0].status < 300, answers
        assert answers[0].text == answers[1].text
        made.append(answers[0].text)
    assert made[0] != made[1]


async def test_no_user_of_a_team_may_speak_in_the_name_of_no_queue(teams: Teams) -> None:
    for user in ("shop-client", "shop-worker"):
        async with teams.asking(user) as client:
            for operation in ("createJob", "registerWorker", "workerHeartbeat", "deregisterWorker", "fetchJobs"):
                with pytest.raises(nats.errors.TimeoutError):
                    await client._client.request(f"ojs.api.{operation}._", b"{}", timeout=0.3)

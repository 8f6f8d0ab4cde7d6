"""No operation that is granted by queue reaches jobs and workers of another queue."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, NamedTuple

import nats
import pytest
from nats.aio.client import Client as Nats

from ojs_engine.jetstream.grants import Team
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import places
from ojs_gateway.routes import parts
from support import users
from support.nats import NatsServer
from support.system import Processes, send

SHOP, MEDIA = Team("shop", ("email", "invoices")), Team("media", ("thumbnails",))
API = "/ojs/v1"
GRANTED: Final = {next(places(route)).operation_id for part in parts(FEATURES) for route in part.routes if route.by_queue}
"""The operations that are offered in the name of a queue which their path doesn't name."""
OF_A_JOB: Final = (
    "getJob",
    "getJobProgress",
    "getJobCheckpoint",
    "resumeCheckpoint",
    "deleteJobCheckpoint",
    "cancelJob",
    "activateJob",
    "getJobResult",
    "listJobHistory",
    "getJobLineage",
)


class Site(NamedTuple):
    server: NatsServer
    url: str

    def job(self, job_id: str) -> Any:
        return send("GET", f"{self.url}{API}/jobs/{job_id}").body["job"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gateway that answers as a user of its own."""
    folder = tmp_path_factory.mktemp("teams")
    with NatsServer(folder / "nats", more=users.section(SHOP, MEDIA)) as server:
        address = users.all_rights(f"127.0.0.1:{server.port}")
        users.make_streams(address)
        processes = Processes(folder / "processes", address, with_users=True)
        try:
            yield Site(server, str(processes.start("gateway").ready()["url"]))
        finally:
            processes.stop()


class Asker(NamedTuple):
    client: Nats
    queue: str

    async def ask(self, operation: str, body: object = None, **parameters: str) -> tuple[int, Any]:
        headers = {"OJS-Parameters": "&".join(f"{name}={value}" for name, value in parameters.items())}
        payload = b"" if body is None else json.dumps(body).encode()
        answer = await self.client.request(
            f"ojs.api.{operation}.{self.queue}", payload, timeout=30, headers=headers if parameters else None
        )
        assert answer.headers is not None
        return int(answer.headers["OJS-Status"]), json.loads(answer.data)


class Askers(NamedTuple):
    """All who ask, each in the name of a queue of its team; `any_queue` may ask everything."""

    shop: Asker
    shop_worker: Asker
    media: Asker
    media_worker: Asker
    any_queue: Asker


@pytest.fixture
async def askers(site: Site) -> AsyncIterator[Askers]:
    async def ignore(_: Exception) -> None:
        pass

    async def connected(user: str) -> Nats:
        seed = str(users.folder() / f"{user}.nk")
        address = f"nats://127.0.0.1:{site.server.port}"
        inbox = f"_INBOX_ojs_{user}"
        return await nats.connect(address, nkeys_seed=seed, inbox_prefix=inbox, error_cb=ignore)

    named = ("shop-client", "shop-worker", "media-client", "media-worker", "operator")
    clients = [await connected(user) for user in named]
    queues = ("email", "email", "thumbnails", "thumbnails", "email")
    yield Askers(*(Asker(client, queue) for client, queue in zip(clients, queues, strict=True)))
    for client in clients:
        await client.close()


def job(job_type: str, queue: str, **options: object) -> dict[str, object]:
    return {"type": job_type, "args": ["4711"], "options": {"queue": queue, **options}}


async def medias(askers: Askers, worker: str, job_type: str) -> tuple[str, str]:
    """A job of media's that waits, and one that its registered worker runs."""
    running = (await askers.media.ask("createJob", job(job_type, "thumbnails", priority=100)))[1]["job"]["id"]
    assert (await askers.media_worker.ask("registerWorker", {"worker_id": worker, "queues": ["thumbnails"]}))[0] == 200
    fetch = {"queues": ["thumbnails"], "worker_id": worker, "wait_ms": 5_000}
    [found] = (await askers.media_worker.ask("fetchJobs", fetch))[1]["jobs"]
    assert found["id"] == running
    new = job(job_type, "thumbnails", unique={"keys": ["type", "args", "queue"]})
    waiting = (await askers.media.ask("createJob", new))[1]
    return str(waiting["job"]["id"]), str(running)


def asked(job_id: str, worker: str, job_type: str) -> dict[str, tuple[Any, dict[str, str]]]:
    """Return what each operation is asked about media's job and worker: a body and parameters."""
    of_it = {"job_id": job_id}
    held = {"job_id": job_id, "worker_id": worker, "attempt": 1}
    taken = job(job_type, "thumbnails", unique={"keys": ["type", "args"], "on_conflict": "replace"})
    return {
        **dict.fromkeys(OF_A_JOB, (None, of_it)),
        "reportJobProgress": ({**held, "progress": 0.5}, of_it),
        "putJobCheckpoint": ({**held, "state": 1}, of_it),
        "updateJobPriority": ({"priority": 7}, of_it),
        "createJob": (taken, {}),
        "createJobBatch": ({"jobs": [taken]}, {}),
        "bulkCreateJobs": ({"jobs": [taken]}, {}),
        "fetchJobs": ({"queues": ["thumbnails"], "worker_id": worker}, {}),
        "ackJob": (held, {}),
        "ackJobs": ({"jobs": [held]}, {}),
        "nackJob": (held | {"error": {"message": "no"}}, {}),
        "registerWorker": ({"worker_id": worker, "queues": ["email"]}, {}),
        "workerHeartbeat": ({"worker_id": worker, "active_job_ids": [job_id]}, {}),
        "deregisterWorker": ({"worker_id": worker}, {}),
        "createQueue": ({"name": "thumbnails"}, {}),
    }


async def test_no_operation_in_the_name_of_a_queue_reaches_another_queue(site: Site, askers: Askers) -> None:
    job_type, worker = f"t{uuid.uuid4().hex[:8]}.make", f"media-{uuid.uuid4().hex[:8]}"
    waiting, running = await medias(askers, worker, job_type)
    before = [site.job(waiting), site.job(running)]
    for job_id, other in ((running, waiting), (waiting, running)):
        every = asked(job_id, worker, job_type)
        assert every.keys() == GRANTED, "each operation that is granted by queue is asked"
        for name, (body, parameters) in every.items():
            status, answer = await askers.any_queue.ask(name, body, **parameters)
            told = [one["error"]["code"] for one in answer.get("items", [answer])]
            assert told in (["not_found"], ["permission_denied"]), (name, status, answer)
            assert other not in json.dumps(answer), (name, answer)
            assert job_id in json.dumps([body, parameters]) or job_id not in json.dumps(answer), (name, answer)
    assert [site.job(waiting), site.job(running)] == before
    own = {"worker_id": f"shop-{worker}", "active_job_ids": [running]}
    assert (await askers.shop_worker.ask("workerHeartbeat", own))[1]["jobs_extended"] == []
    beat = {"worker_id": worker, "active_job_ids": [running]}
    assert (await askers.media_worker.ask("workerHeartbeat", beat))[1]["jobs_extended"] == [running]
    assert (await askers.media_worker.ask("ackJob", {"job_id": running, "worker_id": worker, "attempt": 1}))[0] == 200
    assert (await askers.media_worker.ask("deregisterWorker", {"worker_id": worker}))[0] == 200

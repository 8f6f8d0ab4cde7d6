"""The API over NATS, asked as other languages ask it (docs/nats-binding.md)."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import nats
import nats.errors
import pytest

from integration.gateway.conftest import ROUTES, Asker, new_job
from integration.samples import draft
from ojs_engine.api.route import Route
from ojs_engine.domain.job import Job, State
from ojs_engine.store.store import Store
from ojs_gateway.openapi.document import parameters_of, places
from ojs_gateway.server import Gateway
from support.bodies import BODIES, body_of
from support.nats import NatsServer
from support.waiting import eventually


def names_a_queue(route: Route) -> bool:
    return "queue" in parameters_of(next(places(route)).path)


GRANTABLE = sorted(name for name, route in ROUTES.items() if route.by_queue or names_a_queue(route))

pytestmark = pytest.mark.usefixtures("gateway")


async def active_job(store: Store, queue: str) -> Job:
    """One that `w1` has."""
    pushed = await store.enqueue.push(draft(queue=queue))
    [job] = await store.dispatcher.fetch([queue], 1, "w1", None, 5_000)
    assert job.id == pushed.id
    return job


def bodies(name: str, job: Job) -> Any:
    """What an operation is asked about a job that `w1` has, or about its queue."""
    if name not in BODIES and not parameters_of(next(places(ROUTES[name])).path):
        raise AssertionError(f"{name} can be granted by queue: say in support.bodies what it is asked")
    reports = f"w2-{job.queue}"
    held = {"job_id": job.id, "worker": "w1", "attempt": job.attempt}
    body = body_of(name, held | {"queue": job.queue, "worker_id": reports})
    match name:
        case "fetchJobs":  # what is settled on the way is narrowed, too
            return body | {"acks": body_of("ackJobs", held)["jobs"]}
        case "registerWorker":
            return body | {"queues": [job.queue]}
        case "workerHeartbeat":
            return body | {"queues": [job.queue], "active_job_ids": [job.id]}
        case _:
            return body or None


def path_of(name: str, job: Job) -> dict[str, str]:
    values = {"job_id": job.id, "queue": job.queue}
    return {placed: values[placed] for placed in parameters_of(next(places(ROUTES[name])).path)}


@pytest.mark.parametrize("name", GRANTABLE)
async def test_what_is_granted_for_one_queue_reaches_no_other(store: Store, ask: Asker, queue: str, name: str) -> None:
    job = await active_job(store, queue)
    waiting = await store.enqueue.push(draft(queue=queue))
    refused = await ask(f"{name}.another", bodies(name, job), path_of(name, job))
    if refused.status == 207:
        assert [item["error"]["code"] for item in refused.body["items"]] == ["not_found"]
    else:
        assert refused.body["error"]["code"] in {"permission_denied", "not_found"}
        assert refused.headers["Nats-Service-Error-Code"] == str(refused.status)
    assert (await store.jobs.get(job.id), await store.jobs.get(waiting.id)) == (job, waiting)
    assert await store.queues.get(queue) is None
    granted = await ask(f"{name}.{queue}", bodies(name, job), path_of(name, job))
    assert granted.status < 400 or granted.body["error"]["code"] != "permission_denied"
    assert granted.status != 404 or name in {"getJobCheckpoint", "deregisterWorker"}, granted


async def test_what_is_not_of_one_queue_can_t_be_asked_in_the_name_of_one(ask: Asker) -> None:
    with pytest.raises(nats.errors.NoRespondersError):
        await ask("listJobs.email")
    with pytest.raises(nats.errors.NoRespondersError):
        await ask("resetSystem.email")
    assert (await ask("getMaintenance._")).status == 200


async def test_an_answer_is_that_of_http(gateway: Gateway, ask: Asker, queue: str) -> None:
    pushed = await ask(f"createJob.{queue}", new_job(queue), X_Request_Id="req_mine", traceparent="00-1-1-1")
    assert pushed.status == 201
    assert pushed.headers["X-Request-Id"] == "req_mine"
    job_id = pushed.body["job"]["id"]
    assert pushed.headers["Location"] == f"/ojs/v1/jobs/{job_id}"
    async with aiohttp.ClientSession(gateway.url) as http, http.get(f"/ojs/v1/jobs/{job_id}") as answer:
        assert (await ask("getJob._", parameters={"job_id": job_id})).body == await answer.json(content_type=None)
        assert (await ask("getJob._", parameters={"job_id": job_id})).headers["Retry-After"] == answer.headers["Retry-After"]
    unknown = await ask("getJob._", parameters={"job_id": "0192f0c1-0000-7000-8000-000000000000"})
    assert (unknown.status, unknown.body["error"]["code"]) == (404, "not_found")
    assert unknown.headers["Nats-Service-Error"] == unknown.body["error"]["message"]


@pytest.mark.parametrize(
    ("subject", "headers", "said"),
    [
        ("getJob._", {}, "job_id"),
        ("getJob._", {"OJS_Parameters": "job_id=%ff"}, "OJS-Parameters"),
        ("getHealth._", {"OJS_Timeout": "soon"}, "milliseconds"),
        ("getHealth._", {"OJS_Timeout": "\N{ARABIC-INDIC DIGIT THREE}"}, "milliseconds"),
        ("getHealth._", {"OJS_Version": "2.0"}, "OJS-Version"),
        ("getHealth._", {"OJS_Requires_Extension": "time-travel"}, "time-travel"),
        ("createJob._", {"Content_Encoding": "br"}, "no request body"),
    ],
)
async def test_what_can_t_be_read_is_named(ask: Asker, subject: str, headers: dict[str, Any], said: str) -> None:
    answer = await ask(subject, **headers)
    assert 400 <= answer.status < 500
    assert said in answer.body["error"]["message"] or answer.body["error"]["code"] == "invalid_payload"


@pytest.mark.parametrize(
    ("subject", "sent", "field"),
    [
        ("listJobs._", "statee=available", "statee"),
        ("listJobs._", "state=available&state=active", "state"),
        ("getJob._", "job_id=0192f0c1-0000-7000-8000-000000000000&limit=1", "limit"),
        ("getJob._", "job_id=a&job_id=b", "job_id"),
        ("pauseQueue.mail", "queue=mail&reason=no", "reason"),
        ("createJob.mail", "queue=other", "queue"),
    ],
)
async def test_a_parameter_that_it_does_not_have_is_refused(ask: Asker, subject: str, sent: str, field: str) -> None:
    answer = await ask(subject, new_job("mail"), OJS_Parameters=sent)
    assert (answer.status, answer.body["error"]["details"]["field"]) == (400, field)


async def asked_in_bytes(url: str, subject: bytes, headers: bytes, body: bytes = b"") -> tuple[bytes, Any]:
    """Return the headers and the body of an answer to what no client library sends."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        head = b"NATS/1.0\r\n%s\r\n" % headers
        sizes = b"%d %d" % (len(head), len(head) + len(body))
        writer.write(b'CONNECT {"headers": true, "verbose": false}\r\nSUB _INBOX.bytes 1\r\n')
        writer.write(b"HPUB ojs.api.%s _INBOX.bytes %s\r\n%s%s\r\n" % (subject, sizes, head, body))
        async with asyncio.timeout(60):
            while not (line := await reader.readline()).startswith(b"HMSG "):
                assert not line.startswith(b"-ERR"), line
            of_head, of_all = map(int, line.split()[-2:])
            answer = await reader.readexactly(of_all)
    finally:
        writer.close()
    return answer[:of_head], json.loads(answer[of_head:])


@pytest.mark.parametrize(
    "header", ["Idempotency-Key", "OJS-Requires-Extension", "OJS-Version", "OJS-Parameters", "OJS-Timeout"]
)
async def test_a_header_whose_bytes_are_no_text_is_named(shared_nats_server: NatsServer, header: str) -> None:
    sent = b"%s: \xe9\xff\r\n" % header.encode()
    _, answer = await asked_in_bytes(shared_nats_server.url, b"createJob._", sent, json.dumps(new_job("mail")).encode())
    assert (answer["error"]["code"], answer["error"]["details"]["field"]) == ("invalid_request", header)


async def test_a_queue_whose_bytes_are_no_text_is_nobodys(shared_nats_server: NatsServer) -> None:
    url, body = shared_nats_server.url, json.dumps(new_job("mail")).encode()
    _, answer = await asked_in_bytes(url, b"createJob.\xe9", b"User-Agent: \xe9\r\nX-Request-Id: \xe9\r\n", body)
    assert answer["error"]["code"] == "permission_denied"
    headers, answer = await asked_in_bytes(url, b"createJob.mail", b"User-Agent: \xe9\r\nX-Request-Id: \xe9\r\n", body)
    assert (b"OJS-Status: 201" in headers, answer["job"]["queue"]) == (True, "mail")


async def test_who_has_stopped_waiting_is_given_no_job(store: Store, ask: Asker, queue: str) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    body = {"queues": [queue], "worker_id": "w1", "wait_ms": 30_000}
    assert (await ask(f"fetchJobs.{queue}", body, OJS_Timeout="200")).body == {"jobs": []}
    assert loop.time() - began < 30, "it ended with the patience of who asked"
    pushed = await store.enqueue.push(draft(queue=queue))
    taken = await ask(f"fetchJobs.{queue}", body | {"worker_id": "w2"})
    assert [(job["id"], job["attempt"], job["worker_id"]) for job in taken.body["jobs"]] == [(pushed.id, 1, "w2")]


@pytest.mark.parametrize("timeout", ["٣", "1_0", "-1", "1" + 400 * "0", "soon"])
async def test_a_time_that_is_no_number_is_refused(ask: Asker, queue: str, timeout: str) -> None:
    answer = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w1"}, OJS_Timeout=timeout)
    assert (answer.status, answer.body["error"]["details"]["field"]) == (400, "OJS-Timeout")


async def test_jobs_whose_answer_nobody_got_are_back_at_once(store: Store, ask: Asker, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    body = json.dumps({"queues": [queue], "worker_id": "w1"}).encode()
    await ask.nats.publish(f"ojs.api.fetchJobs.{queue}", body, reply="_INBOX.nobody.listens")

    async def claimed() -> bool:
        return (await store.jobs.get(pushed.id)) != pushed

    await eventually(claimed)
    again = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w2", "wait_ms": 5_000})
    assert [job["id"] for job in again.body["jobs"]] == [pushed.id]


async def test_a_fetch_acknowledges_jobs_of_its_own_queue_alone(store: Store, ask: Asker, queue: str) -> None:
    foreign = await active_job(store, f"{queue}-2")
    done = await active_job(store, queue)
    pushed = await store.enqueue.push(draft(queue=queue))
    acks = [{"job_id": job.id, "attempt": 1} for job in (foreign, done)]
    answer = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w1", "count": 2, "acks": acks})
    assert (answer.status, [job["id"] for job in answer.body["jobs"]]) == (200, [pushed.id])
    assert [item["status"] for item in answer.body["acks"]["items"]] == ["failed", "acknowledged"]
    assert answer.body["acks"]["items"][0]["error"]["code"] == "not_found"
    assert ((await store.jobs.get(done.id)).state, await store.jobs.get(foreign.id)) == (State.COMPLETED, foreign)


async def test_acks_are_answered_although_their_queue_is_paused(store: Store, ask: Asker, queue: str) -> None:
    done = await active_job(store, queue)
    waiting = await store.enqueue.push(draft(queue=queue))
    assert (await ask(f"pauseQueue.{queue}", parameters={"queue": queue})).status == 200
    body = {"queues": [queue], "worker_id": "w1", "wait_ms": 30_000, "acks": [{"job_id": done.id, "attempt": 1}]}
    answer = await ask(f"fetchJobs.{queue}", body, OJS_Timeout="5000")
    assert (answer.status, answer.body["jobs"], answer.body["acks"]["succeeded"]) == (200, [], 1)
    assert (await store.jobs.get(waiting.id)) == waiting


async def test_acks_of_a_fetch_whose_answer_nobody_got_may_be_repeated(store: Store, ask: Asker, queue: str) -> None:
    done = await active_job(store, queue)
    pushed = await store.enqueue.push(draft(queue=queue))
    acks = [{"job_id": done.id, "attempt": 1, "result": 5}]
    body = json.dumps({"queues": [queue], "worker_id": "w1", "acks": acks}).encode()
    await ask.nats.publish(f"ojs.api.fetchJobs.{queue}", body, reply="_INBOX.nobody.listens")

    async def claimed() -> bool:
        return (await store.jobs.get(pushed.id)) != pushed

    await eventually(claimed)
    assert (await ask(f"ackJobs.{queue}", {"worker_id": "w1", "jobs": acks})).body["succeeded"] == 1
    again = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w2", "wait_ms": 5_000})
    assert [job["id"] for job in again.body["jobs"]] == [pushed.id]


async def test_a_fetch_whose_client_has_died_takes_no_job(store: Store, ask: Asker, queue: str) -> None:
    inbox = ask.nats.new_inbox()
    answers = await ask.nats.subscribe(inbox)
    body = {"queues": [queue], "worker_id": "w1", "wait_ms": 30_000}
    await ask.nats.publish(
        f"ojs.api.fetchJobs.{queue}", json.dumps(body).encode(), reply=inbox, headers={"OJS-Interim": "true"}
    )
    interim = await answers.next_msg(timeout=60)
    assert (interim.headers or {})["OJS-Status"] == "102"
    await answers.unsubscribe()
    pushed = await store.enqueue.push(draft(queue=queue))
    taken = await ask(f"fetchJobs.{queue}", body | {"worker_id": "w2"})
    assert [(job["id"], job["attempt"], job["worker_id"]) for job in taken.body["jobs"]] == [(pushed.id, 1, "w2")]


async def test_no_more_jobs_are_handed_out_than_an_answer_takes(ask: Asker, queue: str) -> None:
    large = "x" * 900_000
    for _ in range(12):  # NATS takes 8 MB here
        assert (await ask(f"createJob.{queue}", new_job(queue, args=[large]))).status == 201
    got: list[str] = []

    async def all_fetched() -> bool:
        answer = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w1", "count": 20, "wait_ms": 1_000})
        got.extend(job["id"] for job in answer.body["jobs"])
        return len(got) >= 12

    await eventually(all_fetched)
    assert len(set(got)) == len(got) == 12
    for job_id in got:
        acked = await ask(f"ackJob.{queue}", {"job_id": job_id, "worker_id": "w1", "result": large})
        assert acked.status == 200
    everything = await ask("getJobResults._", {"ids": got})
    assert (everything.status, everything.body["error"]["code"]) == (413, "envelope_too_large")
    assert "max_payload" in everything.body["error"]["hint"]


async def test_a_request_that_nobody_waits_for_is_not_carried_out(store: Store, ask: Asker, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await ask.nats.publish(f"ojs.api.fetchJobs.{queue}", json.dumps({"queues": [queue]}).encode())
    assert (await ask("getJob._", parameters={"job_id": pushed.id})).body["job"]["state"] == "available"

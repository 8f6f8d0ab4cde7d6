"""What a request with an Idempotency-Key makes is made once, also when it is sent twice at the same moment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import nats
import pytest
from uuid6 import uuid7

from support.system import System

API = "/ojs/v1"


@pytest.fixture
def queue() -> str:
    return f"q-{uuid7().hex}"


@pytest.fixture
async def http(system: System) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(system.url) as session:
        yield session


async def send(http: aiohttp.ClientSession, path: str, body: object, key: str | None = None) -> tuple[int, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    async with http.post(API + path, json=body, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


def job(queue: str, number: int = 0, **more: object) -> dict[str, Any]:
    return {"type": "keyed.job", "args": [number], "options": {"queue": queue}, **more}


def flow(queue: str) -> dict[str, Any]:
    return {"type": "chain", "steps": [job(queue, 0), job(queue, 1)]}


def ids_in(answer: Any) -> list[str]:
    if "workflow" in answer:
        return [answer["workflow"]["id"]]
    return [one["id"] for one in answer["jobs"]] if "jobs" in answer else [answer["job"]["id"]]


def waiting(system: System, queue: str) -> int:
    return len(system.fetch(queue, count=50, worker_id="w"))


async def test_a_repeated_request_gets_what_the_first_one_made(http: aiohttp.ClientSession, system: System, queue: str) -> None:
    for place, (path, made) in enumerate([("/jobs", 1), ("/jobs/batch", 2), ("/workflows", 1)]):
        own = f"{queue}-{place}"
        body = {"/jobs": job(own), "/jobs/batch": {"jobs": [job(own, 0), job(own, 1)]}, "/workflows": flow(own)}[path]
        first = await send(http, path, body, f"key-{own}")
        again = await send(http, path, body, f"key-{own}")
        assert (first[0], again[0]) == (201, 201), path
        assert ids_in(first[1]) == ids_in(again[1])
        other_key = await send(http, path, body, f"other-{own}")
        without = await send(http, path, body)
        assert len({*ids_in(first[1]), *ids_in(other_key[1]), *ids_in(without[1])}) == 3 * len(ids_in(first[1]))
        assert waiting(system, own) == 3 * made


async def test_requests_that_are_doubled_at_the_same_moment_get_one_answer(
    http: aiohttp.ClientSession, system: System, queue: str
) -> None:
    for place, path in enumerate(["/jobs", "/workflows"]):
        own = f"{queue}-{place}"
        body = job(own) if path == "/jobs" else flow(own)
        answers = await asyncio.gather(*(send(http, path, body, f"key-{own}") for _ in range(4)))
        assert {status for status, _ in answers} == {201}
        assert len({ids_in(answer)[0] for _, answer in answers}) == 1
        assert waiting(system, own) == 1


async def test_a_key_is_of_one_body_and_of_one_operation(http: aiohttp.ClientSession, queue: str) -> None:
    key = f"key-{queue}"
    assert (await send(http, "/jobs", job(queue), key))[0] == 201
    status, answer = await send(http, "/jobs", job(queue, 5), key)
    assert (status, answer["error"]["code"]) == (409, "conflict")
    assert "was used with another request" in answer["error"]["message"]
    assert (await send(http, "/workflows", flow(queue), key))[0] == 201


async def test_what_is_refused_is_tried_again(http: aiohttp.ClientSession, queue: str) -> None:
    key, body = f"key-{queue}", {"type": "No Type", "args": []}
    for _ in range(2):
        status, answer = await send(http, "/jobs", body, key)
        assert (status, answer["error"]["code"]) == (400, "invalid_request")


async def test_what_is_refused_leaves_its_key_to_what_is_right(http: aiohttp.ClientSession, system: System, queue: str) -> None:
    wrong, right = {"type": "No Type", "args": [], "options": {"queue": queue}}, job(queue)
    for path, bad, good in [
        ("/jobs", wrong, right),
        ("/jobs", {"type": "keyed.job"}, right),
        ("/jobs/batch", {"jobs": [right, wrong]}, {"jobs": [right, right]}),
        ("/jobs/batch", {"jobs": []}, {"jobs": [right]}),
        ("/jobs/bulk", {"jobs": [wrong]}, {"jobs": [right]}),
        ("/jobs/bulk", {"jobs": [right, wrong], "atomicity": "atomic"}, {"jobs": [right, right]}),
        ("/workflows", {"type": "chain", "steps": [right, wrong]}, flow(queue)),
    ]:
        key = f"{path}-{uuid7().hex}"
        for _ in range(2):
            status, answer = await send(http, path, bad, key)
            assert 400 <= status < 500, (path, bad, answer)
        first = await send(http, path, good, key)
        again = await send(http, path, good, key)
        assert (first[0], again[0]) == (201, 201), (path, bad, first, again)
        status, answer = await send(http, path, bad, key)
        assert status == 409 or bad == {"jobs": []}, (path, bad, answer)
    assert waiting(system, queue) == 2 + 3 + 3 + 1


async def test_a_key_is_free_after_a_refusal_that_had_nothing_to_do_with_the_body(
    http: aiohttp.ClientSession, system: System, queue: str
) -> None:
    system.call("PUT", f"/queues/{queue}/config", {"max_size": 1})
    assert (await send(http, "/jobs", job(queue), f"first-{queue}"))[0] == 201
    for path, body in [("/jobs", job(queue, 1)), ("/jobs/batch", {"jobs": [job(queue, 2)]}), ("/workflows", flow(queue))]:
        status, answer = await send(http, path, body, f"key-{queue}")
        assert (status, answer["error"]["code"]) == (429, "QUEUE_FULL"), path
    status, answer = await send(http, "/jobs/bulk", {"jobs": [job(queue, 3)]}, f"key-{queue}")
    assert (status, answer["items"][0]["error"]["code"]) == (422, "QUEUE_FULL")
    system.call("PUT", f"/queues/{queue}/config", {"max_size": 50})
    for path, body in [("/jobs", job(queue, 4)), ("/jobs/batch", {"jobs": [job(queue, 5)]}), ("/workflows", flow(queue))]:
        for _ in range(2):
            assert (await send(http, path, body, f"key-{queue}"))[0] == 201, path
    for _ in range(2):
        assert (await send(http, "/jobs/bulk", {"jobs": [job(queue, 6)]}, f"key-{queue}"))[0] == 201
    assert waiting(system, queue) == 5


async def test_what_was_made_in_part_keeps_its_key(http: aiohttp.ClientSession, system: System, queue: str) -> None:
    mixed = {"jobs": [job(queue, 0), {"type": "No Type", "args": []}]}
    first = await send(http, "/jobs/bulk", mixed, f"key-{queue}")
    again = await send(http, "/jobs/bulk", mixed, f"key-{queue}")
    assert (first[0], first[1]["succeeded"]) == (207, 1)
    assert again == first
    status, answer = await send(http, "/jobs/bulk", {"jobs": [job(queue, 1)]}, f"key-{queue}")
    assert (status, answer["error"]["code"]) == (409, "conflict")
    assert waiting(system, queue) == 1


async def test_a_change_that_changed_nothing_frees_its_key(http: aiohttp.ClientSession, system: System, queue: str) -> None:
    pushed = system.push("keyed.job", queue=queue)
    nobody = {"job_ids": [str(uuid7())]}
    assert (await send(http, "/jobs/bulk/cancel", nobody, f"key-{queue}"))[0] == 422
    for _ in range(2):
        status, answer = await send(http, "/jobs/bulk/cancel", {"job_ids": [pushed["id"]]}, f"key-{queue}")
        assert (status, answer["cancelled"]) == (200, 1)


async def test_a_refused_request_and_its_correction_may_be_sent_at_once(
    http: aiohttp.ClientSession, system: System, queue: str
) -> None:
    wrong, right = {"type": "No Type", "args": [], "options": {"queue": queue}}, job(queue)
    for number in range(5):
        key = f"key-{queue}-{number}"
        sent = [send(http, "/jobs", body, key) for body in (wrong, right, wrong, right)]
        answers = await asyncio.gather(*sent)
        assert [status for status, _ in answers[1::2]] == [201, 201], answers
        assert len({ids_in(answer)[0] for _, answer in answers[1::2]}) == 1
        assert {status for status, _ in answers[::2]} <= {400, 409}
    assert waiting(system, queue) == 5


async def test_a_unique_job_that_was_found_is_found_again(http: aiohttp.ClientSession, queue: str) -> None:
    unique = job(queue, unique={"keys": ["type", "queue"], "on_conflict": "ignore"})
    _, first = await send(http, "/jobs", unique)
    for _ in range(2):
        status, found = await send(http, "/jobs", unique, f"key-{queue}")
        assert (status, found["job"]["id"], found["deduplicated"]) == (200, first["job"]["id"], True)


async def test_a_job_with_an_id_of_its_own_keeps_it(http: aiohttp.ClientSession, queue: str) -> None:
    own = str(uuid7())
    body = job(queue, id=own)
    for _ in range(2):
        status, answer = await send(http, "/jobs", body, f"key-{queue}")
        assert (status, answer["job"]["id"]) == (201, own)
    status, answer = await send(http, "/workflows", {"id": f"wf_{own}", **flow(queue)})
    assert (status, answer["workflow"]["id"]) == (201, own)


@pytest.mark.parametrize("path", ["/webhooks/subscriptions", "/cron/none/trigger", "/admin/keys"])
async def test_an_operation_that_keeps_no_keys_refuses_them(http: aiohttp.ClientSession, path: str) -> None:
    status, answer = await send(http, path, {}, "a-key")
    assert (status, answer["error"]["code"]) == (400, "invalid_request")
    assert "Idempotency-Key isn't kept by this operation" in answer["error"]["message"]


async def test_a_workflow_that_is_created_twice_at_once_under_its_id_is_there_once(
    http: aiohttp.ClientSession, system: System, queue: str
) -> None:
    own = str(uuid7())
    answers = await asyncio.gather(*(send(http, "/workflows", {"id": own, **flow(queue)}) for _ in range(3)))
    assert sorted(status for status, _ in answers) == [201, 409, 409]
    refused = [answer["error"] for status, answer in answers if status == 409]
    assert {error["details"]["existing_workflow_id"] for error in refused} == {own}
    assert waiting(system, queue) == 1


async def test_the_key_counts_over_nats_as_well(system: System, queue: str) -> None:
    connection = await nats.connect(system.nats_url)
    try:
        body = json.dumps(job(queue)).encode()
        found = []
        bad = b'{"type": "No Type", "args": []}'
        named = {"idempotency-key": f"key-{queue}"}
        refused = await connection.request(f"ojs.api.createJob.{queue}", bad, timeout=30, headers=named)
        assert "error" in json.loads(refused.data)
        for _ in range(2):
            answer = await connection.request(f"ojs.api.createJob.{queue}", body, timeout=30, headers=named)
            found.append(json.loads(answer.data)["job"]["id"])
    finally:
        await connection.close()
    assert found[0] == found[1]
    assert waiting(system, queue) == 1


async def test_an_ack_that_is_doubled_at_the_same_moment_gets_one_answer(
    http: aiohttp.ClientSession, system: System, queue: str
) -> None:
    for number in range(5):
        pushed = system.push("keyed.job", number, queue=queue)["id"]
        [job] = system.fetch(queue, count=1, worker_id="w")
        assert job["id"] == pushed
        ack = {"job_id": pushed, "worker_id": "w", "result": {"n": number}}
        answers = await asyncio.gather(*(send(http, "/workers/ack", ack) for _ in range(3)))
        assert [status for status, _ in answers] == [200] * 3
        assert {json.dumps(answer, sort_keys=True) for _, answer in answers} == {json.dumps(answers[0][1], sort_keys=True)}
        status, many = await send(http, "/workers/acks", {"worker_id": "w", "jobs": [{"job_id": pushed}]})
        assert (status, many["succeeded"]) == (200, 1)
        for other in ({"job_id": pushed}, {"job_id": pushed, "worker_id": "v"}):
            assert (await send(http, "/workers/ack", other))[0] == 409


async def test_a_late_ack_of_an_earlier_attempt_is_refused(http: aiohttp.ClientSession, system: System, queue: str) -> None:
    pushed = system.push("keyed.job", 0, queue=queue)["id"]
    for _ in range(2):
        assert len(system.fetch(queue, count=1, worker_id="w")) == 1
        nack = {"job_id": pushed, "worker_id": "w", "error": {"message": "no"}, "requeue": True}
        assert (await send(http, "/workers/nack", nack))[0] == 200
        assert (await send(http, "/workers/nack", nack))[0] == 409, "it may be fetched again by then"
    assert len(system.fetch(queue, count=1, worker_id="w")) == 1
    assert (await send(http, "/workers/ack", {"job_id": pushed, "worker_id": "w", "attempt": 3}))[0] == 200
    assert (await send(http, "/workers/ack", {"job_id": pushed, "worker_id": "w"}))[0] == 409
    assert (await send(http, "/workers/ack", {"job_id": pushed, "worker_id": "w", "attempt": 3}))[0] == 200

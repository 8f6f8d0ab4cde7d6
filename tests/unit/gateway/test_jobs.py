from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import State
from support.fake_store import FakeStore
from support.waiting import eventually

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
JOB = {"id": ID, "type": "a.b", "args": [1], "options": {"queue": "q"}}


async def send(http: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    async with http.request(method, "/ojs/v1" + path, json=body, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


async def pushed(http: aiohttp.ClientSession, **more: Any) -> Any:
    status, body = await send(http, "POST", "/jobs", JOB | more)
    assert status == 201
    return body["job"]


async def test_a_push_answers_the_stored_job_and_where_it_is(http: aiohttp.ClientSession, store: FakeStore) -> None:
    async with http.post("/ojs/v1/jobs", json=JOB) as answer:
        body = await answer.json(content_type=None)
        assert (answer.status, answer.headers["Location"]) == (201, f"/ojs/v1/jobs/{ID}")
    assert (body["job"]["id"], body["job"]["state"], body["job"]["queue"]) == (ID, "available", "q")
    assert store.records[ID].args == Raw(b"[1]")
    async with http.get(answer.headers["Location"]) as answer:
        assert (await answer.json(content_type=None)) == body


async def test_the_same_id_again_is_a_duplicate(http: aiohttp.ClientSession) -> None:
    await pushed(http)
    status, body = await send(http, "POST", "/jobs", JOB)
    assert (status, body["error"]["code"], body["error"]["details"]["existing_job_id"]) == (409, "duplicate", ID)


async def test_a_bad_push_stores_nothing(http: aiohttp.ClientSession, store: FakeStore) -> None:
    status, body = await send(http, "POST", "/jobs", {"args": []})
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    status, body = await send(http, "POST", "/jobs", JOB | {"retry": {"max_attempts": -1}})
    assert (status, body["error"]["code"], body["error"]["type"]) == (422, "invalid_request", "validation_error")
    assert store.records == {}


async def test_times_count_from_the_servers_clock(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http, scheduled_at="+PT5S")
    assert store.records[ID].scheduled_at == store.clock.at + 5_000
    assert store.records[ID].state is State.SCHEDULED


async def test_the_go_command_line_reads_a_flat_job(http: aiohttp.ClientSession) -> None:
    ojs = "application/openjobspec+json"
    agent = {"User-Agent": "Go-http-client/1.1", "Accept": ojs, "Content-Type": ojs}
    for method, path, body in (("POST", "/jobs", JOB), ("GET", f"/jobs/{ID}", None), ("DELETE", f"/jobs/{ID}", None)):
        _, answer = await send(http, method, path, body, **agent)
        assert answer["id"] == answer["job"]["id"] == ID


async def test_an_id_is_read_in_either_case(http: aiohttp.ClientSession) -> None:
    await pushed(http)
    status, body = await send(http, "GET", f"/jobs/{ID.upper()}")
    assert (status, body["job"]["id"]) == (200, ID)


async def test_a_job_that_can_still_change_says_when_to_ask_again(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http)
    async with http.get(f"/ojs/v1/jobs/{ID}") as answer:
        assert answer.headers["Retry-After"] == "1"
    store.put(replace(store.records[ID], state=State.COMPLETED))
    async with http.get(f"/ojs/v1/jobs/{ID}") as answer:
        assert "Retry-After" not in answer.headers


@pytest.mark.parametrize(("method", "path"), [("DELETE", f"/jobs/{ID}"), ("POST", f"/jobs/{ID}/cancel")])
async def test_cancel(http: aiohttp.ClientSession, store: FakeStore, method: str, path: str) -> None:
    await pushed(http)
    status, body = await send(http, method, path, {"reason": "by hand"})
    assert (status, body["job"]["state"], body["job"]["previous_state"]) == (200, "cancelled", "available")
    assert store.records[ID].transitions[-1].reason == "by hand"
    status, body = await send(http, method, path)
    assert (status, body["error"]["code"], body["error"]["details"]["current_state"]) == (409, "conflict", "cancelled")


async def test_activate(http: aiohttp.ClientSession) -> None:
    await pushed(http, pending=True)
    status, body = await send(http, "POST", f"/jobs/{ID}/activate")
    assert (status, body["job"]["state"], body["job"]["previous_state"]) == (200, "available", "pending")
    status, body = await send(http, "POST", f"/jobs/{ID}/activate", {})
    assert (status, body["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize("action", ["", "/result", "/activate", "/cancel", "/ack", "/nack"])
async def test_a_job_that_is_not_there_is_not_found(http: aiohttp.ClientSession, action: str) -> None:
    method = "GET" if action in {"", "/result"} else "POST"
    body = {"error": {"message": "m"}} if action == "/nack" else None
    for job_id in (ID, "no-id"):
        status, answer = await send(http, method, f"/jobs/{job_id}{action}", body)
        assert (status, answer["error"]["code"]) == (404, "not_found")
        assert answer["error"]["details"] == {"resource_type": "job", "resource_id": job_id}


# Results


async def finish(store: FakeStore, **changes: Any) -> None:
    done = {
        "state": State.COMPLETED,
        "completed_at": store.clock.at,
        "result": Raw(b'{"n":1}'),
        "result_stored_at": store.clock.at,
    }
    store.put(replace(store.records[ID], **(done | changes)))


async def test_a_result_that_is_there_is_answered_at_once(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http)
    await finish(store)
    for query in ("", "?wait=true", "?wait=true&timeout=0"):
        status, body = await send(http, "GET", f"/jobs/{ID}/result{query}")
        assert (status, body["job_id"], body["state"], body["result"]) == (200, ID, "completed", {"n": 1})


async def test_without_wait_the_state_is_answered(http: aiohttp.ClientSession) -> None:
    await pushed(http)
    async with http.get(f"/ojs/v1/jobs/{ID}/result") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (200, "1")
        assert await answer.json(content_type=None) == {"job_id": ID, "state": "available", "result": None}


async def test_a_wait_ends_with_the_job(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http)
    waiting = asyncio.create_task(send(http, "GET", f"/jobs/{ID}/result?wait=true&timeout=30"))
    await eventually(lambda: store.changed.is_set() is False)
    await finish(store)
    status, body = await waiting
    assert (status, body["result"]) == (200, {"n": 1})


async def test_a_wait_in_vain_is_a_timeout_worth_repeating(http: aiohttp.ClientSession) -> None:
    await pushed(http)
    status, body = await send(http, "GET", f"/jobs/{ID}/result?wait=true&timeout=0.05")
    assert (status, body["error"]["code"], body["error"]["retryable"]) == (408, "request_timeout", True)


@pytest.mark.parametrize("changes", [{"result_ttl_s": 0, "result": Raw(b""), "result_stored_at": None}, {"result_ttl_s": 60}])
async def test_a_result_that_is_not_kept_is_gone(
    http: aiohttp.ClientSession, store: FakeStore, changes: dict[str, Any]
) -> None:
    await pushed(http)
    await finish(store, **changes)
    store.clock.at += 60_000
    status, body = await send(http, "GET", f"/jobs/{ID}/result")
    assert (status, body["error"]["code"]) == (410, "result_pruned")
    _, body = await send(http, "GET", f"/jobs/{ID}")
    assert "result" not in body["job"]


@pytest.mark.parametrize("size", [4, 100_000])
async def test_a_result_that_is_set_apart_is_answered_everywhere_until_it_leaves(
    http: aiohttp.ClientSession, store: FakeStore, size: int
) -> None:
    result = "r" * size
    await pushed(http, result_ttl=60)
    store.put(replace(store.records[ID], state=State.ACTIVE, attempt=1))
    _, acked = await send(http, "POST", f"/jobs/{ID}/ack", {"result": result})
    assert (store.records[ID].result, store.records[ID].result_blob is None) == (Raw(b""), False)
    _, read = await send(http, "GET", f"/jobs/{ID}")
    _, detail = await send(http, "GET", f"/admin/jobs/{ID}")
    for body in (acked["job"], read["job"], detail):
        assert (body["result"], body["result_size_bytes"]) == (result, size + 2)
        assert body["result_expires_at"] > body["result_stored_at"]
    _, alone = await send(http, "GET", f"/jobs/{ID}/result?wait=true")
    _, atomic_changes = await send(http, "POST", "/jobs/results", {"ids": [ID]})
    assert (alone["result"], atomic_changes["results"][ID]["result"]) == (result, result)
    store.blobs.stored.clear()  # it has left, perhaps a moment early
    status, body = await send(http, "GET", f"/jobs/{ID}/result")
    assert (status, body["error"]["code"]) == (410, "result_pruned")
    _, read = await send(http, "GET", f"/jobs/{ID}")
    assert (read["job"]["state"], "result" in read["job"], "result_size_bytes" in read["job"]) == ("completed", False, False)


async def test_a_job_that_brought_no_result_has_none_and_nothing_is_gone(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http)
    await finish(store, result=Raw(b""), result_stored_at=None, result_ttl_s=60)
    status, body = await send(http, "GET", f"/jobs/{ID}/result")
    assert (status, body["result"]) == (200, None)


async def test_the_failure_of_a_discarded_job_is_its_result(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http, retry={"max_attempts": 1})
    await send(http, "POST", "/workers/fetch", {"queues": ["q"]})
    await send(http, "POST", f"/jobs/{ID}/nack", {"error": {"message": "no", "type": "T"}})
    status, body = await send(http, "GET", f"/jobs/{ID}/result?wait=true")
    assert (status, body["state"], body["error"]["type"]) == (200, "discarded", "T")
    assert store.records[ID].state is State.DISCARDED


@pytest.mark.parametrize(
    "query", ["wait=maybe", "wait=true&timeout=-1", "wait=true&timeout=61", "wait=1&timeout=x", "wait=1&timeout=nan"]
)
async def test_bad_waits_are_refused(http: aiohttp.ClientSession, query: str) -> None:
    await pushed(http)
    status, body = await send(http, "GET", f"/jobs/{ID}/result?{query}")
    assert (status, body["error"]["code"]) == (400, "invalid_request")


async def test_many_results_at_once(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await pushed(http)
    await finish(store)
    other = ID[:-1] + "0"
    status, body = await send(http, "POST", "/jobs/results", {"ids": [ID, other, "x"]})
    assert status == 200
    assert body["results"][ID]["result"] == {"n": 1}
    assert {job_id: entry["state"] for job_id, entry in body["results"].items()} == {
        ID: "completed",
        other: "not_found",
        "x": "not_found",
    }
    assert body["results"][other]["result"] is None


# Dead letters


async def dead(http: aiohttp.ClientSession, on_exhaustion: str = "dead_letter") -> None:
    await pushed(http, retry={"max_attempts": 1, "on_exhaustion": on_exhaustion})
    await send(http, "POST", "/workers/fetch", {"queues": ["q"]})
    status, body = await send(http, "POST", "/workers/nack", {"job_id": ID, "error": {"message": "no"}})
    assert (status, body["state"]) == (200, "discarded")


async def test_a_dead_letter_is_retried_as_overridden(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await dead(http)
    status, body = await send(http, "POST", f"/dead-letter/{ID}/retry", {"override": {"queue": "other", "args": [2]}})
    assert (status, body["job"]["state"], body["job"]["attempt"]) == (200, "available", 0)
    assert (body["job"]["queue"], body["job"]["args"], len(body["job"]["errors"])) == ("other", [2], 1)
    status, body = await send(http, "POST", f"/dead-letter/{ID}/retry")
    assert (status, body["error"]["code"]) == (404, "not_found")
    assert store.records[ID].generation == 1


async def test_a_dead_letter_is_retried_without_a_body(http: aiohttp.ClientSession) -> None:
    await dead(http)
    status, body = await send(http, "POST", f"/dead-letter/{ID}/retry")
    assert (status, body["job"]["queue"]) == (200, "q")


async def test_a_deleted_dead_letter_is_gone(http: aiohttp.ClientSession) -> None:
    await dead(http)
    assert await send(http, "DELETE", f"/dead-letter/{ID}") == (200, {"deleted": True, "job_id": ID})
    for method, path in (("DELETE", f"/dead-letter/{ID}"), ("GET", f"/jobs/{ID}"), ("POST", f"/dead-letter/{ID}/retry")):
        status, _ = await send(http, method, path)
        assert status == 404


async def test_what_was_plainly_discarded_is_no_dead_letter(http: aiohttp.ClientSession) -> None:
    await dead(http, on_exhaustion="discard")
    for method, path in (("DELETE", f"/dead-letter/{ID}"), ("POST", f"/dead-letter/{ID}/retry")):
        status, body = await send(http, method, path)
        assert (status, body["error"]["code"]) == (404, "not_found")

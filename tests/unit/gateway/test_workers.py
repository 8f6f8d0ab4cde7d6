from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import msgspec
import pytest
import uuid6
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import State
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_gateway.context import Context
from ojs_gateway.handlers.workers import WorkerHandlers
from ojs_runtime.settings import Settings
from support.call import Request
from support.fake_store import FakeStore, unavailable_store
from support.waiting import eventually

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
JOB = {"id": ID, "type": "a.b", "args": [1], "queue": "q"}

FETCH = b"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: localhost\r\nOJS-Version: 1.0\r\nContent-Length: %d\r\n\r\n%s"


async def send(http: aiohttp.ClientSession, path: str, body: Any = None, method: str = "POST") -> tuple[int, Any]:
    async with http.request(method, "/ojs/v1" + path, json=body) as answer:
        return answer.status, await answer.json(content_type=None)


async def claimed(http: aiohttp.ClientSession, worker: str = "w", **more: Any) -> Any:
    assert (await send(http, "/jobs", JOB | more))[0] == 201
    _, body = await send(http, "/workers/fetch", {"queues": ["q"], "worker_id": worker})
    return body["jobs"][0]


@pytest.mark.parametrize("path", ["/workers/fetch", "/jobs/fetch"])
async def test_fetch_hands_out_active_jobs(http: aiohttp.ClientSession, store: FakeStore, path: str) -> None:
    await send(http, "/jobs", JOB)
    ask = {"queues": ["x", "q"], "count": 5, "worker_id": "w", "visibility_timeout_ms": 7_000, "wait_ms": 10}
    status, body = await send(http, path, ask)
    assert status == 200
    assert [(job["id"], job["state"], job["attempt"], job["worker_id"]) for job in body["jobs"]] == [(ID, "active", 1, "w")]
    assert store.dispatcher.asked == [(("x", "q"), 5, "w", 7_000, 10)]
    await send(http, path, {"queues": ["x"], "wait_ms": 0, "pool": "mine"})
    assert store.dispatcher.asked[-1] == (("x",), 1, None, None, 0, "mine")


async def test_an_empty_fetch_is_an_empty_list_after_a_short_wait(http: aiohttp.ClientSession, store: FakeStore) -> None:
    assert await send(http, "/workers/fetch", {"queues": ["q"]}) == (200, {"jobs": []})
    assert [ask[-1] for ask in store.dispatcher.asked] == [200]
    assert await send(http, "/workers/fetch", {"queues": ["q"], "wait_ms": 0}) == (200, {"jobs": []})
    assert store.dispatcher.asked[-1][-1] == 0


async def test_a_long_poll_ends_with_the_first_job(http: aiohttp.ClientSession, store: FakeStore) -> None:
    waiting = asyncio.create_task(send(http, "/workers/fetch", {"queues": ["q"], "wait_ms": 30_000}))
    await eventually(lambda: bool(store.dispatcher.asked))
    await send(http, "/jobs", JOB)
    _, body = await waiting
    assert [job["id"] for job in body["jobs"]] == [ID]


async def test_a_long_poll_outlasts_its_looks_at_the_client(http: aiohttp.ClientSession, store: FakeStore) -> None:
    waiting = asyncio.create_task(send(http, "/workers/fetch", {"queues": ["q"], "wait_ms": 30_000}))
    await eventually(lambda: store.dispatcher.looks >= 3)
    await send(http, "/jobs", JOB)
    _, body = await waiting
    assert [job["id"] for job in body["jobs"]] == [ID]


async def test_what_is_claimed_for_a_client_that_left_is_given_back(http: aiohttp.ClientSession, store: FakeStore) -> None:
    store.dispatcher.unaware = True  # the job comes before anybody has noticed
    base = http._base_url
    assert base is not None
    _, writer = await asyncio.open_connection(base.host, base.port)
    body = msgspec.json.encode({"queues": ["q"], "wait_ms": 900})
    writer.write(FETCH % (len(body), body))
    await eventually(lambda: bool(store.dispatcher.asked))
    writer.close()
    await writer.wait_closed()
    await send(http, "/jobs", JOB)
    await eventually(lambda: store.dispatcher.given_back == [ID])


class Left(Request):
    """One whose client has left already."""

    @property
    def gone(self) -> bool:
        return True


async def test_a_fetch_whose_client_has_left_before_claims_nothing(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await send(http, "/jobs", JOB)
    context = Context(cast("Store", store), PayloadLimits(), Settings(), ())
    response = await WorkerHandlers(context).fetch(Left({"queues": ["q"], "wait_ms": 30_000}))
    assert response.answer == b'{"jobs":[]}'
    assert store.dispatcher.asked == []
    assert store.records[ID].attempt == 0


async def test_a_long_poll_ends_soon_after_its_client_has_left(http: aiohttp.ClientSession, store: FakeStore) -> None:
    base = http._base_url
    assert base is not None
    _, writer = await asyncio.open_connection(base.host, base.port)
    body = msgspec.json.encode({"queues": ["q"], "wait_ms": 30_000})
    writer.write(FETCH % (len(body), body))
    await eventually(lambda: bool(store.dispatcher.asked))
    writer.close()
    await writer.wait_closed()
    _, answer = await send(http, "/workers/fetch", {"queues": ["other"], "wait_ms": 500})
    assert answer == {"jobs": []}
    await send(http, "/jobs", JOB)
    assert store.records[ID].state is State.AVAILABLE, "nobody waits for it any more"


@pytest.mark.parametrize(("path", "named"), [("/workers/ack", {"job_id": ID}), (f"/jobs/{ID}/ack", {})])
async def test_ack(http: aiohttp.ClientSession, store: FakeStore, path: str, named: dict[str, str]) -> None:
    await claimed(http)
    status, body = await send(http, path, named | {"result": {"n": 1}, "worker_id": "w", "attempt": 1})
    assert status == 200
    assert (body["acknowledged"], body["id"], body["state"]) == (True, ID, "completed")
    assert body["job"]["result"] == {"n": 1}
    assert store.records[ID].result == Raw(b'{"n": 1}')
    status, body = await send(http, path, named)
    assert (status, body["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("path", "named"),
    [("/workers/nack", {"job_id": ID}), ("/workers/fail", {"job_id": ID}), (f"/jobs/{ID}/nack", {}), (f"/jobs/{ID}/fail", {})],
)
async def test_nack(http: aiohttp.ClientSession, path: str, named: dict[str, str]) -> None:
    await claimed(http)
    status, body = await send(http, path, named | {"error": {"code": "handler_error", "message": "no"}})
    assert (status, body["state"], body["attempt"], body["max_attempts"]) == (200, "retryable", 1, 3)
    assert body["next_attempt_at"]
    assert body["retry_delay_ms"] >= 500
    assert body["job"]["error"]["type"] == "handler_error"


async def test_many_acks_in_one_request_are_each_by_itself(http: aiohttp.ClientSession, store: FakeStore) -> None:
    ids = [str(uuid6.uuid7()) for _ in range(3)]
    for job_id in ids:
        await claimed(http, id=job_id)
    jobs: list[dict[str, Any]] = [{"job_id": ids[0], "attempt": 1}, {"job_id": ids[1], "attempt": 1, "result": [1]}]
    status, body = await send(http, "/workers/acks", {"worker_id": "w", "jobs": jobs})
    assert status == 200
    assert body["items"] == [
        {"index": index, "status": "acknowledged", "job_id": job_id} for index, job_id in enumerate(ids[:2])
    ]
    assert [store.records[job_id].state for job_id in ids] == [State.COMPLETED, State.COMPLETED, State.ACTIVE]
    assert store.records[ids[1]].result == Raw(b"[1]")

    # Said again it is the same; what is wrong with one is told of that one, whatever it is.
    others = [{"job_id": ids[2], "worker_id": "x"}, {"job_id": str(uuid6.uuid7())}, {"job_id": 5}, 7, {"job_id": ids[2]}]
    status, body = await send(http, "/workers/acks", {"worker_id": "w", "jobs": [*jobs, *others]})
    assert status == 207
    codes = [item.get("error", {}).get("code") for item in body["items"]]
    assert codes == [None, None, "conflict", "not_found", "invalid_request", "invalid_payload", None]
    assert (body["total"], body["succeeded"], body["failed"]) == (7, 3, 4)
    assert body["items"][4]["error"]["details"]["index"] == 4
    assert store.records[ids[2]].state is State.COMPLETED


@pytest.mark.parametrize(
    ("jobs", "status", "said"), [([], 400, "at least one"), ("x", 400, "jobs"), ([{}] * 1_001, 413, "the limit is 1,000")]
)
async def test_how_many_acks_a_request_may_have(http: aiohttp.ClientSession, jobs: Any, status: int, said: str) -> None:
    answered, body = await send(http, "/workers/acks", {"jobs": jobs})
    assert answered == status
    assert said in body["error"]["message"]


async def test_a_fetch_acknowledges_before_it_looks_for_jobs(http: aiohttp.ClientSession, store: FakeStore) -> None:
    ids = sorted(str(uuid6.uuid7()) for _ in range(4))
    for job_id in ids[:2]:
        await claimed(http, id=job_id)
    for job_id in ids[2:]:
        await send(http, "/jobs", JOB | {"id": job_id})
    acks = [{"job_id": ids[0], "attempt": 1, "result": [1]}, {"job_id": ids[1], "worker_id": "x"}, 7]
    ask = {"queues": ["q"], "worker_id": "w", "count": 5, "wait_ms": 30_000, "acks": acks}
    status, body = await send(http, "/workers/fetch", ask)
    assert (status, [job["id"] for job in body["jobs"]]) == (200, ids[2:])
    assert store.dispatcher.asked[-1] == (("q",), 3, "w", None, 0), "it doesn't wait, nor bring jobs for refused acks"
    assert body["acks"]["items"][0] == {"index": 0, "status": "acknowledged", "job_id": ids[0]}
    assert [item["error"]["code"] for item in body["acks"]["items"][1:]] == ["conflict", "invalid_payload"]
    assert (body["acks"]["total"], body["acks"]["succeeded"], body["acks"]["failed"]) == (3, 1, 2)
    assert [store.records[job_id].state for job_id in ids[:2]] == [State.COMPLETED, State.ACTIVE]
    assert store.records[ids[0]].result == Raw(b"[1]")

    _, again = await send(http, "/workers/acks", {"worker_id": "w", "jobs": acks[:1]})
    assert again["items"] == body["acks"]["items"][:1], "whoever lost the answer repeats the acks"

    looks = len(store.dispatcher.asked)
    _, body = await send(http, "/workers/fetch", ask | {"count": 2, "acks": acks[1:]})
    assert (body["jobs"], body["acks"]["failed"], len(store.dispatcher.asked)) == ([], 2, looks)


async def test_acks_are_answered_although_no_jobs_can_be_looked_for(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await claimed(http)
    store.dispatcher.failure = unavailable("NATS is away")
    ask = {"queues": ["q"], "worker_id": "w", "acks": [{"job_id": ID, "attempt": 1}]}
    status, body = await send(http, "/workers/fetch", ask)
    assert (status, body["jobs"], body["acks"]["succeeded"]) == (200, [], 1)
    assert (body["fetch_error"]["code"], body["fetch_error"]["retryable"]) == ("backend_unavailable", True)
    assert store.records[ID].state is State.COMPLETED
    del ask["acks"]
    assert (await send(http, "/workers/fetch", ask))[0] == 503


async def test_a_fetch_that_can_t_be_read_acknowledges_nothing(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await claimed(http)
    ask = {"queues": [], "worker_id": "w", "acks": [{"job_id": ID, "attempt": 1}]}
    assert (await send(http, "/workers/fetch", ask))[0] == 400
    assert store.records[ID].state is State.ACTIVE


async def test_nack_with_requeue_gives_the_job_back(http: aiohttp.ClientSession) -> None:
    await claimed(http)
    status, body = await send(http, "/workers/nack", {"job_id": ID, "requeue": True})
    assert (status, body["state"]) == (200, "available")


async def test_a_nack_may_say_when_the_job_goes_on(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await claimed(http)
    _, body = await send(http, "/workers/nack", {"job_id": ID, "requeue": True, "retry_after_ms": "PT1M"})
    assert (body["state"], body["retry_delay_ms"], store.records[ID].uncharged) == ("retryable", 60_000, 1)


async def test_a_pause_that_makes_no_sense_is_left_out_and_told(http: aiohttp.ClientSession) -> None:
    await claimed(http)
    _, body = await send(http, "/workers/nack", {"job_id": ID, "error": {"message": "m"}, "retry_after_ms": -5})
    assert body["state"] == "retryable"
    assert [warning["field"] for warning in body["warnings"]] == ["retry_after_ms"]


async def test_only_the_holder_may_finish_a_job(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await claimed(http)
    for claim in ({"worker_id": "other"}, {"attempt": 2}):
        for path, more in (("/workers/ack", {}), ("/workers/nack", {"error": {"message": "no"}})):
            status, body = await send(http, path, {"job_id": ID} | claim | more)
            assert (status, body["error"]["code"]) == (409, "conflict")
    assert store.records[ID].state is State.ACTIVE


@pytest.mark.parametrize("more", [{"attempt": 1}, {}])
async def test_a_repeated_ack_of_the_same_worker_and_attempt_gets_the_same_answer(
    http: aiohttp.ClientSession, more: dict[str, int]
) -> None:
    await claimed(http)
    ack = {"job_id": ID, "worker_id": "w", "result": {"n": 1}, **more}
    first = await send(http, "/workers/ack", ack)
    assert first[0] == 200
    assert await send(http, "/workers/ack", ack) == first
    assert await send(http, "/workers/ack", {"job_id": ID, "worker_id": "w"}) == first, "the result of the first one counts"
    for other in ({"job_id": ID}, {"job_id": ID, "attempt": 1}, ack | {"worker_id": "v"}, ack | {"attempt": 2}):
        status, body = await send(http, "/workers/ack", other)
        assert (status, body["error"]["code"]) == (409, "conflict")


async def test_what_is_left_out_of_a_report_is_told(http: aiohttp.ClientSession) -> None:
    await claimed(http)
    status, beat = await send(http, "/workers/heartbeat", {"worker_id": "w", "active_jobs": [ID], "pid": "main"})
    assert (status, beat["jobs_extended"], [one["field"] for one in beat["warnings"]]) == (200, [ID], ["pid"])
    _, beat = await send(http, "/workers/heartbeat", {"worker_id": "w", "pid": "12"})
    assert "warnings" not in beat
    status, body = await send(http, "/workers/nack", {"job_id": ID, "error": {"message": "m", "code": 500, "retryable": "yes"}})
    assert (status, body["state"], [one["field"] for one in body["warnings"]]) == (200, "retryable", ["error.retryable"])
    assert body["job"]["error"]["code"] == "500"


async def test_a_result_beyond_the_jobs_limit_leaves_it_active(http: aiohttp.ClientSession, store: FakeStore) -> None:
    await claimed(http, result_size_limit=5)
    status, body = await send(http, "/workers/ack", {"job_id": ID, "result": "123456"})
    assert (status, body["error"]["code"]) == (413, "result_too_large")
    assert store.records[ID].state is State.ACTIVE


@pytest.mark.parametrize("path", ["/workers/heartbeat", "/workers/beat"])
async def test_heartbeat(http: aiohttp.ClientSession, store: FakeStore, path: str) -> None:
    await claimed(http)
    gone = ID[:-1] + "0"
    status, body = await send(http, path, {"worker_id": "w", "active_jobs": [ID, gone, "no id"], "hostname": "h", "pid": 7})
    assert status == 200
    assert (body["state"], body["jobs_extended"], body["server_time"]) == ("running", [ID], "2026-02-02T02:40:00.000Z")
    assert "cancelled_jobs" not in body
    assert store.extended == [((ID, gone), "w", None)]
    assert store.workers.records["w"] == WorkerRecord(id="w", hostname="h", pid=7, queues=("q",), active_jobs=3)


async def test_a_worker_that_names_no_queues_is_shown_with_those_of_its_last_fetch(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    async def shown(worker: str, **more: Any) -> list[str]:
        await send(http, "/workers/heartbeat", {"worker_id": worker, "active_jobs": [], **more})
        return list(store.workers.records[worker].queues)

    for queues in (["q"], ["r", "s"]):
        await send(http, "/workers/fetch", {"queues": queues, "worker_id": "w", "wait_ms": 0})
    assert await shown("w") == ["r", "s"]
    assert await shown("w", queues=["t"]) == ["t"]
    assert await shown("other") == []


async def test_how_long_a_fetch_waits_that_does_not_say_is_a_setting(start: Start, store: FakeStore) -> None:
    http = await start(default_wait_ms=7)
    await send(http, "/workers/fetch", {"queues": ["q"]})
    await send(http, "/workers/fetch", {"queues": ["q"], "wait_ms": 3})
    assert [ask[-1] for ask in store.dispatcher.asked] == [7, 3]
    async with http.get("/ojs/manifest") as answer:
        assert (await answer.json(content_type=None))["limits"]["default_wait_ms"] == 7


async def test_a_heartbeat_tells_which_jobs_were_cancelled(http: aiohttp.ClientSession) -> None:
    await claimed(http)
    await send(http, f"/jobs/{ID}", method="DELETE")
    body = {"worker_id": "w", "active_jobs": 1, "active_job_ids": [ID], "visibility_timeout_ms": 5_000}
    _, answer = await send(http, "/workers/heartbeat", body)
    assert (answer["jobs_extended"], answer["cancelled_jobs"]) == ([], [ID])


async def test_a_worker_that_is_stopping_is_not_told_to_run(http: aiohttp.ClientSession) -> None:
    for state, answered in (("quiet", "quiet"), ("terminate", "terminate"), ("drain", "running"), ("odd", "running")):
        _, body = await send(http, "/workers/heartbeat", {"worker_id": "w", "state": state})
        assert body["state"] == answered


@pytest.mark.parametrize(
    ("metadata", "state"),
    [
        ({"test_directive": "quiet"}, "quiet"),
        ({"test_directive": "terminate"}, "terminate"),
        ({"test_directive": "dance"}, "running"),
        ({"test_directive": 5}, "running"),
        ({}, "running"),
    ],
)
async def test_a_directive_in_a_held_job_is_for_test_mode(start: Start, metadata: dict[str, Any], state: str) -> None:
    testing, serious = await start(test_mode=True), await start()
    await claimed(testing, metadata=metadata)
    beat = {"worker_id": "w", "active_jobs": [ID]}
    assert (await send(testing, "/workers/heartbeat", beat))[1]["state"] == state
    assert (await send(serious, "/workers/heartbeat", beat))[1]["state"] == "running"


async def test_registering_and_leaving(http: aiohttp.ClientSession, store: FakeStore) -> None:
    status, body = await send(http, "/workers/register", {"worker_id": "w/1 é", "queues": ["q"], "labels": {"a": 1}})
    assert (status, body["ok"], body["heartbeat_interval"], body["heartbeat_timeout"]) == (200, True, 5, 30)
    assert store.workers.records["w/1 é"].queues == ("q",)
    status, body = await send(http, "/workers/w%2F1%20%C3%A9", method="DELETE")
    assert (status, body["worker_id"]) == (200, "w/1 é")
    for path, method, left in (("/workers/deregister", "POST", {"worker_id": "w"}), ("/workers/w", "DELETE", None)):
        status, body = await send(http, path, left, method)
        assert (status, body["error"]["details"]["resource_type"]) == (404, "worker")
    await send(http, "/workers/register", {"worker_id": "w"})
    assert (await send(http, "/workers/deregister", {"worker_id": "w"}))[0] == 200


async def test_a_job_that_can_not_be_shown_does_not_keep_others_from_being_delivered(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    for job_type in ("good", "poison", "good"):
        await http.post("/ojs/v1/jobs", json={"type": job_type, "args": []})
    [poison] = [job for job in store.records.values() if job.type == "poison"]
    store.put(replace(poison, created_at=cast("int", "yesterday")))  # which no answer can be made of
    async with http.post("/ojs/v1/workers/fetch", json={"queues": ["default"], "count": 10}) as answer:
        body = await answer.json()
    assert (answer.status, [job["type"] for job in body["jobs"]]) == (200, ["good", "good"])
    assert (len(store.dispatcher.failed), store.dispatcher.given_back) == (1, []), (
        "its attempt ends; given back, it would be next"
    )


@pytest.mark.parametrize(("failure", "status"), [(RuntimeError("a bug"), 500), (unavailable_store(), 503)])
async def test_what_was_claimed_is_given_back_if_the_answer_fails(
    http: aiohttp.ClientSession, store: FakeStore, failure: Exception, status: int
) -> None:
    async with http.post("/ojs/v1/jobs", json={"type": "t", "args": []}) as answer:
        pushed = await answer.json()
    store.put(replace(store.records[pushed["job"]["id"]], checkpoint=True))
    store.checkpoints.failure = failure
    async with http.post("/ojs/v1/workers/fetch", json={"queues": ["default"]}) as answer:
        assert answer.status == status
    assert store.dispatcher.given_back == [pushed["job"]["id"]]


@pytest.mark.parametrize(
    "failure", [OjsError("unreadable_record", "the checkpoint record can't be read"), ValueError("it is of another job")]
)
async def test_an_attempt_whose_input_can_not_be_read_ends_and_others_are_delivered(
    http: aiohttp.ClientSession, store: FakeStore, failure: Exception
) -> None:
    for job_type in ("good", "saved", "good"):
        await http.post("/ojs/v1/jobs", json={"type": job_type, "args": []})
    [saved] = [job for job in store.records.values() if job.type == "saved"]
    store.put(replace(saved, checkpoint=True))
    store.checkpoints.failure = failure
    _, body = await send(http, "/workers/fetch", {"queues": ["default"], "count": 10})
    assert [job["type"] for job in body["jobs"]] == ["good", "good"]
    assert (store.dispatcher.failed, store.dispatcher.given_back) == ([saved.id], [])


async def test_a_job_whose_input_is_not_there_now_is_given_back_and_others_are_delivered(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    for job_type in ("good", "saved"):
        await http.post("/ojs/v1/jobs", json={"type": job_type, "args": []})
    [saved] = [job for job in store.records.values() if job.type == "saved"]
    store.put(replace(saved, checkpoint=True))
    store.checkpoints.failure = unavailable_store()
    _, body = await send(http, "/workers/fetch", {"queues": ["default"], "count": 10})
    assert [job["type"] for job in body["jobs"]] == ["good"]
    assert (store.dispatcher.failed, store.dispatcher.given_back) == ([], [saved.id])

"""Requests about many things while NATS is away: one that did nothing for no fault of its own is sent again."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from ojs_engine.base.errors import OjsError, require_backend, storage_full, unavailable
from support.fake_store import FakeStore, unavailable_store

IDS = ["019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e10"]
JOB = {"type": "a.b", "args": []}
NO_JOB = {"type": "a.b", "args": 1}
MANY = [
    ("jobs/bulk", {"jobs": [JOB, JOB]}),
    ("jobs/bulk/cancel", {"job_ids": IDS}),
    ("jobs/bulk/cancel", {"job_ids": IDS, "dry_run": True}),
    ("jobs/bulk/retry", {"job_ids": IDS}),
    ("jobs/bulk/delete", {"job_ids": IDS}),
    ("workers/acks", {"worker_id": "w1", "jobs": [{"job_id": job_id} for job_id in IDS]}),
]


@pytest.mark.parametrize(("path", "body"), MANY)
async def test_a_request_about_many_that_nats_is_in_the_way_of_is_503(
    http: aiohttp.ClientSession, store: FakeStore, path: str, body: dict[str, Any]
) -> None:
    store.failure = unavailable_store()
    async with http.post(f"/ojs/v1/{path}", json=body) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "3")
        error = (await answer.json(content_type=None))["error"]
    assert (error["code"], error["retryable"]) == ("backend_unavailable", True)
    assert error["details"] == {"total": 2, "succeeded": 0, "failed": 2}


async def test_a_request_of_which_a_part_is_at_fault_says_so_of_each_and_when_to_send_the_rest(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    store.failure = unavailable_store()
    async with http.post("/ojs/v1/jobs/bulk", json={"jobs": [JOB, NO_JOB]}) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (422, "3")
        items = (await answer.json(content_type=None))["items"]
    assert [item["error"]["retryable"] for item in items] == [True, False]


def test_a_lack_of_room_alone_is_said_to_be_one() -> None:
    with pytest.raises(OjsError) as raised:
        require_backend([storage_full("the disk"), storage_full("the disk")])
    assert (raised.value.code, raised.value.retry_after) == ("storage_full", 5)
    with pytest.raises(OjsError) as raised:
        require_backend([storage_full("the disk"), unavailable("NATS is away")])
    assert (raised.value.code, raised.value.retry_after) == ("backend_unavailable", 5)


@pytest.mark.parametrize("errors", [[], [None, unavailable("NATS is away")], [OjsError("conflict", "it has ended")]])
def test_what_was_done_in_part_or_is_at_fault_is_no_want_of_the_backend(errors: list[OjsError | None]) -> None:
    require_backend(errors)

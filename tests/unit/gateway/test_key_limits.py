"""Limits of a key, as a gateway holds its requests to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from ojs_features.access.allowances import Allowance, KeyLimits
from ojs_features.access.keys import make_key
from ojs_gateway.http.key_headers import left_headers
from support.fake_store import FakeStore
from support.waiting import eventually
from unit.gateway.conftest import Start

API = "/ojs/v1"
JOB = {"type": "limited.job", "args": [], "options": {"queue": "limited"}}
PUSHES = {
    "one": ("/jobs", JOB),
    "a batch": ("/jobs/batch", {"jobs": [JOB]}),
    "a bulk": ("/jobs/bulk", {"jobs": [JOB]}),
    "a workflow": ("/workflows", {"type": "group", "jobs": [JOB]}),
}
UNSOUND = {"jobs": [{"type": "no type", "args": []}] * 500}
"""It is counted, and refused: a key of one push a second is over its limit for longer than a test takes."""


class Asked:
    """Requests with one key."""

    def __init__(self, http: aiohttp.ClientSession, token: str) -> None:
        self.http = http
        self.headers = {"Authorization": f"Bearer {token}"}

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any, Mapping[str, str]]:
        async with self.http.request(method, API + path, json=body, headers=self.headers) as answer:
            return answer.status, await answer.json(content_type=None), answer.headers


async def keyed(start: Start, store: FakeStore, **limits: int) -> Asked:
    """A client with the only key of a gateway."""
    http = await start()
    new = make_key("shop", "admin", limits=KeyLimits(**limits))
    store.keys.changed([new.key], False)
    return Asked(http, new.token)


def over(answered: tuple[int, Any, Mapping[str, str]], limit: str, most: int) -> None:
    """See that an answer says which limit was met, and what helps."""
    status, answer, headers = answered
    assert status == 429, answer
    error = answer["error"]
    assert (error["code"], error["retryable"]) == ("rate_limited", True)
    assert (error["details"]["limit"], error["details"]["allowed"]) == (limit, most)
    assert limit in error["message"]
    assert f"--{limit.replace('_', '-')} N" in error["hint"]
    assert int(headers["Retry-After"]) > 0
    assert (headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]) == (str(most), "0")
    assert int(headers["X-RateLimit-Reset"]) > 0


def test_the_limit_of_a_job_is_told_in_place_of_that_of_its_key() -> None:
    allowance = Allowance("id", "shop", KeyLimits(pushes_per_second=5))
    assert dict(left_headers(allowance, (), 1_000))["X-RateLimit-Limit"] == "5"
    assert left_headers(allowance, (("X-RateLimit-Limit", "7"),), 1_000) == ()


async def test_each_answer_to_a_push_says_what_its_key_has_left(start: Start, store: FakeStore) -> None:
    ask = await keyed(start, store, pushes_per_second=1_000_000)
    status, _, headers = await ask("POST", "/jobs", JOB)
    assert (status, headers["X-RateLimit-Limit"]) == (201, "1000000")
    assert 0 < int(headers["X-RateLimit-Remaining"]) < 2_000_000
    now_s = store.clock.now() // 1_000
    assert now_s - 60 <= int(headers["X-RateLimit-Reset"]) <= now_s + 2
    assert "X-RateLimit-Limit" not in (await ask("GET", "/jobs"))[2]
    unlimited = await keyed(start, store)
    assert "X-RateLimit-Limit" not in (await unlimited("POST", "/jobs", JOB))[2]


@pytest.mark.parametrize("way", PUSHES)
async def test_pushes_over_the_limit_are_refused_before_anything_is_stored(start: Start, store: FakeStore, way: str) -> None:
    ask = await keyed(start, store, pushes_per_second=1)
    status, answer, _ = await ask("POST", "/jobs/batch", UNSOUND)
    assert (status, answer["error"]["details"]["index"]) == (400, 0)
    path, body = PUSHES[way]
    refused = await ask("POST", path, body)
    over(refused, "pushes_per_second", 1)
    assert int(refused[2]["Retry-After"]) > 100
    assert not store.records
    assert (await ask("GET", "/session"))[0] == 200  # other requests go on


async def test_another_key_and_one_without_limits_push_on(start: Start, store: FakeStore) -> None:
    ask = await keyed(start, store, pushes_per_second=1)
    assert (await ask("POST", "/jobs/batch", UNSOUND))[0] == 400
    other = make_key("other", "producer")
    store.keys.changed([make_key("first", "admin").key, other.key], False)
    assert (await Asked(ask.http, other.token)("POST", "/jobs", JOB))[0] == 201


async def test_streams_and_web_sockets_share_places_which_come_back(start: Start, store: FakeStore) -> None:
    ask = await keyed(start, store, streams=2)
    stream = f"{API}/admin/stats/stream"
    async with (
        ask.http.get(stream, headers=ask.headers) as first,
        ask.http.ws_connect(f"{API}/ws", headers=ask.headers),
    ):
        assert first.status == 200
        for path in ("/admin/stats/stream", "/ws", "/events/stream"):
            over(await ask("GET", path), "streams", 2)

    async def there_is_room() -> bool:
        async with ask.http.get(stream, headers=ask.headers) as one, ask.http.get(stream, headers=ask.headers) as two:
            return (one.status, two.status) == (200, 200)

    await eventually(there_is_room)


async def test_fetches_and_waits_for_results_share_places_which_come_back(start: Start, store: FakeStore) -> None:
    ask = await keyed(start, store, waiting=1)
    _, pushed, _ = await ask("POST", "/jobs", JOB | {"options": {"queue": "other"}})
    wait = {"queues": ["limited"], "worker_id": "w", "wait_ms": 30_000}
    soon = wait | {"wait_ms": 1}

    async def fetched() -> Any:
        while (answered := await ask("POST", "/workers/fetch", wait))[0] == 429:  # one of those that look was there first
            pass
        return answered[1]["jobs"]

    waiting = asyncio.create_task(fetched())

    async def refused() -> bool:
        return (await ask("POST", "/workers/fetch", soon))[0] == 429

    await eventually(refused)
    over(await ask("POST", "/workers/fetch", soon), "waiting", 1)
    over(await ask("GET", f"/jobs/{pushed['job']['id']}/result?wait=true"), "waiting", 1)
    assert (await ask("POST", "/workers/fetch", wait | {"wait_ms": 0}))[0] == 200
    acked = {"job_id": pushed["job"]["id"], "worker_id": "w"}
    status, answer, _ = await ask("POST", "/workers/fetch", soon | {"acks": [acked], "count": 2})  # it doesn't wait
    assert (status, len(answer["acks"]["items"])) == (200, 1)
    assert (await ask("POST", "/jobs", JOB))[0] == 201
    assert [job["queue"] for job in await waiting] == ["limited"]
    assert (await ask("POST", "/workers/fetch", soon))[0] == 200


async def test_without_keys_nothing_is_limited_and_settings_are_for_keys_that_name_none(start: Start, store: FakeStore) -> None:
    http = await start(key_pushes_per_second=1)
    for _ in range(3):
        async with http.post(f"{API}/jobs/batch", json=UNSOUND) as answer:
            assert answer.status == 400
    new = make_key("by settings", "admin")
    store.keys.changed([new.key], False)
    ask = Asked(http, new.token)
    assert (await ask("POST", "/jobs/batch", UNSOUND))[0] == 400
    over(await ask("POST", "/jobs", JOB), "pushes_per_second", 1)

"""What one key may ask of a gateway, over HTTP and NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ojs_nats import Client, NewJob, RateLimited, Unavailable
from support.cli import Cli
from support.guarded import API, Guarded
from support.waiting import eventually

JOB = {"type": "limited.job", "args": [], "options": {"queue": "limited"}}
SLOW = 3_600
"""Jobs of a batch after which a key of one a second is over its limit for longer than a test takes."""
PUSHES = {
    "one": ("/jobs", JOB),
    "a batch": ("/jobs/batch", {"jobs": [JOB]}),
    "a bulk": ("/jobs/bulk", {"jobs": [JOB]}),
    "a workflow": ("/workflows", {"type": "group", "jobs": [JOB]}),
}


async def limited(guarded: Guarded, name: str, **limits: int) -> tuple[str, str]:
    """Token and id of a key that may do all but change things."""
    permissions = ["enqueue", "work", "read", "payloads"]
    made = await guarded.made(name, "custom", permissions=permissions, limits=limits)
    assert made["key"]["limits"] == limits
    return made["token"], made["key"]["id"]


def over(answer: Any, headers: Mapping[str, str], limit: str, most: int) -> None:
    """See that an answer says which limit was met, and what helps."""
    error = answer["error"]
    assert (error["code"], error["retryable"]) == ("RATE_LIMITED", True) or error["code"] == "rate_limited"
    assert (error["details"]["limit"], error["details"]["allowed"]) == (limit, most)
    assert limit in error["message"]
    assert f"--{limit.replace('_', '-')} N" in error["hint"]
    assert int(headers["Retry-After"]) > 0


@pytest.mark.parametrize("way", PUSHES)
async def test_pushes_over_the_limit_are_refused_and_nothing_is_stored(guarded: Guarded, way: str) -> None:
    token, _ = await limited(guarded, f"pusher {way}", pushes_per_second=1)
    queue = f"limited-{way.replace(' ', '-')}"
    first = {"jobs": [{"type": "limited.job", "args": [], "options": {"queue": queue}}] * 500}
    assert (await guarded.ask("POST", "/jobs/batch", first, token=token))[0] == 201
    path, body = PUSHES[way]
    status, answer, headers = await guarded.ask("POST", path, body, token=token)
    assert status == 429, answer
    over(answer, headers, "pushes_per_second", 1)
    assert int(headers["Retry-After"]) > 100
    admin = guarded.tokens["admin"]
    _, listed, _ = await guarded.ask("GET", "/queues", token=admin)
    assert {one["name"] for one in listed["queues"] if one["name"].startswith("limited")} >= {queue}
    assert "limited" not in {one["name"] for one in listed["queues"]}
    assert (await guarded.ask("GET", "/queues", token=token))[0] == 200  # reading goes on


async def test_a_limit_counts_over_http_and_nats_together_and_can_be_changed_while_it_runs(guarded: Guarded) -> None:
    token, key_id = await limited(guarded, "both", pushes_per_second=1)
    async with Client(guarded.system.nats_url, token=token, patience=0) as client:
        await client.push_many([NewJob[None]("limited.both", ())] * 500)
        with pytest.raises(Unavailable) as error:
            await client.push(NewJob[None]("limited.both", ()))
        assert isinstance(error.value.__cause__, RateLimited)
        assert (error.value.retry_after_s or 0) > 100
        assert (await guarded.ask("POST", "/jobs", JOB | {"type": "limited.both"}, token=token))[0] == 429
        admin = guarded.tokens["admin"]
        status, changed, _ = await guarded.ask("PUT", f"/admin/keys/{key_id}/limits", {"pushes_per_second": 0}, token=admin)
        assert (status, changed["key"]["limits"]) == (200, {"pushes_per_second": 0})

        async def pushed() -> bool:
            return (await guarded.ask("POST", "/jobs", JOB | {"type": "limited.both"}, token=token))[0] == 201

        await eventually(pushed)
        await client.push(NewJob[None]("limited.both", ()))


@asynccontextmanager
async def following(guarded: Guarded, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(guarded.url, headers={"Authorization": f"Bearer {token}"}) as session:
        yield session


async def test_streams_and_web_sockets_share_their_places_which_come_back_when_they_end(guarded: Guarded) -> None:
    token, _ = await limited(guarded, "watcher", streams=2)
    async with following(guarded, token) as session:
        async with session.get(f"{API}/events/stream") as stream, session.ws_connect(f"{API}/ws"):
            assert stream.status == 200
            for path in ("/events/stream", "/ws", "/admin/stats/stream"):
                status, answer, headers = await guarded.ask("GET", path, token=token)
                assert status == 429, (path, answer)
                over(answer, headers, "streams", 2)

        async def there_is_room() -> bool:
            async with session.get(f"{API}/events/stream") as one, session.get(f"{API}/events/stream") as two:
                return (one.status, two.status) == (200, 200)

        await eventually(there_is_room)
        for _ in range(3):  # what is refused takes no place
            assert (await guarded.ask("GET", "/jobs/019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f/events", token=token))[0] in {404, 429}
        await eventually(there_is_room)


async def test_fetches_and_waits_for_results_share_their_places_which_come_back(guarded: Guarded) -> None:
    token, _ = await limited(guarded, "waiter", waiting=1)
    wait = {"queues": ["limited-empty"], "wait_ms": 30_000}
    _, pushed, _ = await guarded.ask("POST", "/jobs", JOB | {"options": {"queue": "limited-result"}}, token=token)
    async with following(guarded, token) as session:
        waiting = asyncio.create_task(_posted(session, "/workers/fetch", wait))

        async def refused() -> bool:
            status, answer, headers = await guarded.ask("POST", "/workers/fetch", wait | {"wait_ms": 1}, token=token)
            if status == 429:
                over(answer, headers, "waiting", 1)
            return status == 429

        await eventually(refused)
        result = f"/jobs/{pushed['job']['id']}/result?wait=true"
        assert (await guarded.ask("GET", result, token=token))[0] == 429
        assert (await guarded.ask("POST", "/workers/fetch", wait | {"wait_ms": 0}, token=token))[0] == 200
        async with Client(guarded.system.nats_url, token=token, patience=0) as client:
            push = NewJob[None]("limited.end", (), queue="limited-empty")
            await client.push(push)
        assert await waiting == 200
        assert (await guarded.ask("POST", "/workers/fetch", wait | {"wait_ms": 1}, token=token))[0] == 200


async def _posted(session: aiohttp.ClientSession, path: str, body: object) -> int:
    async with session.post(API + path, json=body) as answer:
        return answer.status


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"streams": -1}, "streams"),
        ({"waiting": 1_000_001}, "waiting"),
        ({"pushes_per_second": 0.5}, "pushes_per_second"),
        ({"pushes": 5}, "pushes"),
        ({"streams": "many"}, "streams"),
    ],
)
async def test_limits_that_make_no_sense_are_refused_by_their_field(guarded: Guarded, limits: object, field: str) -> None:
    admin = guarded.tokens["admin"]
    status, answer, _ = await guarded.ask("POST", "/admin/keys", {"name": "x", "role": "viewer", "limits": limits}, token=admin)
    assert (status, answer["error"]["details"]["field"]) == (400, f"limits.{field}")
    key_id = (await guarded.made("sound", "viewer"))["key"]["id"]
    status, answer, _ = await guarded.ask("PUT", f"/admin/keys/{key_id}/limits", limits, token=admin)
    assert (status, answer["error"]["details"]["field"]) == (400, field)


async def test_limits_of_a_key_that_is_gone_or_has_ended_are_refused(guarded: Guarded) -> None:
    admin = guarded.tokens["admin"]
    key_id = (await guarded.made("ended", "viewer"))["key"]["id"]
    assert (await guarded.ask("DELETE", f"/admin/keys/{key_id}", token=admin))[0] == 200
    status, answer, _ = await guarded.ask("PUT", f"/admin/keys/{key_id}/limits", {"streams": 1}, token=admin)
    assert (status, "can't be changed" in answer["error"]["message"]) == (409, True)
    assert (await guarded.ask("PUT", "/admin/keys/nobody/limits", {"streams": 1}, token=admin))[0] == 404


def test_the_commands_set_show_and_change_limits_also_on_nats(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    file.write_text(guarded.tokens["admin"])
    cli = Cli(tmp_path, guarded.url)
    shown = ("--token-file", str(file))
    name = ("--name", "by-command", "--role", "producer")
    made = cli("keys", "create", *name, "--pushes-per-second", "100", "--streams", "5", "--json", *shown).json["key"]
    assert {name: most for name, most in made["limits"].items() if most is not None} == {"pushes_per_second": 100, "streams": 5}
    row = next(line for line in cli("keys", *shown).out.splitlines() if "by-command" in line)
    assert "100 pushes a second, 5 streams" in row
    said = cli("keys", "limit", made["id"], "--waiting", "7", *shown)
    assert (said.code, "7 waiting" in said.out + said.err) == (0, True), said
    on_nats = cli("keys", "limit", made["id"], "--streams", "0", "--json", "--nats", guarded.system.nats_url)
    assert on_nats.json["limits"]["streams"] == 0
    assert cli("keys", "limit", made["id"], "--streams", "some", *shown).code == 2

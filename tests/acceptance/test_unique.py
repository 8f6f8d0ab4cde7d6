"""Unique jobs over HTTP: through two gateways at once, and when one of them is killed in the middle."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from support.examples import examples
from support.nats import NatsServer
from support.system import Command, Processes, System, send

JOBS = "/ojs/v1/jobs"
PUSHES = examples(200, least=60)
"""Of one key, which each gateway gets half of at once."""
KEYS = 200


def unique(key: str, on_conflict: str = "reject", **members: Any) -> dict[str, Any]:
    policy = {"keys": ["type", "args"], "on_conflict": on_conflict}
    return {"type": "unique.job", "args": [{"key": key}], "options": {"queue": "unique", "unique": policy}, **members}


def push(system: System, job: object) -> tuple[int, Any]:
    answer = system.request("POST", JOBS, job)
    return answer.status, answer.body


def live(url: str) -> list[str]:
    """Ids of the jobs that can be fetched now."""
    body = {"queues": ["unique"], "count": 1_000, "worker_id": "w1", "wait_ms": 0}
    return [job["id"] for job in send("POST", f"{url}/ojs/v1/workers/fetch", body).body["jobs"]]


def test_each_strategy_answers_as_the_specification_says(system: System) -> None:
    status, first = push(system, unique("a"))
    assert status == 201
    existing = first["job"]["id"]
    status, refused = push(system, unique("a"))
    assert (status, refused["error"]["code"]) == (409, "duplicate")
    assert refused["error"]["details"]["existing_job_id"] == existing
    assert refused["error"]["details"]["existing_job_state"] == "available"
    assert len(refused["error"]["details"]["unique_key"]) == 64
    status, ignored = push(system, unique("a", "ignore"))
    assert (status, ignored["job"]["id"], ignored["deduplicated"]) == (200, existing, True)
    status, new = push(system, unique("a", "replace"))
    assert status == 201
    old = system.request("GET", f"{JOBS}/{existing}").body["job"]
    assert old["state"] == "cancelled"
    assert live(system.url) == [new["job"]["id"]]


def test_the_dialects_of_the_clients_are_honoured(system: System) -> None:
    """Python sends dimensions as `key`, JavaScript and Go fields of args, the CLI a text and `within`."""
    for number, policy in enumerate(
        ({"key": ["type", "queue", "args"]}, {"key": ["id"], "period_ms": 60_000}, {"key": "mine", "within": "1h"})
    ):
        job = {"type": f"unique.dialect{number}", "args": [{"id": 1}], "options": {"unique": policy}}
        assert push(system, job)[0] == 201
        assert push(system, job)[0] == 409
    fields = {"type": "unique.dialect1", "args": [{"id": 1, "else": 2}], "options": {"unique": {"key": ["id"]}}}
    assert push(system, fields)[0] == 409


def test_a_dead_letter_is_not_retried_past_the_job_that_has_its_key(system: System) -> None:
    job = unique("dead")
    job["options"]["retry"] = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
    dead = push(system, job)[1]["job"]["id"]
    assert live(system.url) == [dead]
    system.request("POST", "/ojs/v1/workers/nack", {"job_id": dead, "error": {"message": "no"}})
    heir = push(system, unique("dead"))[1]["job"]["id"]
    answer = system.request("POST", f"/ojs/v1/dead-letter/{dead}/retry")
    assert (answer.status, answer.body["error"]["details"]["existing_job_id"]) == (409, heir)
    system.request("DELETE", f"{JOBS}/{heir}")
    assert system.request("POST", f"/ojs/v1/dead-letter/{dead}/retry").status == 200
    assert live(system.url) == [dead]
    assert push(system, unique("dead"))[0] == 409


@pytest.fixture(scope="module")
def pair(shared_nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Command]]:
    """Two gateways for the tests of this file, the last of which kills one."""
    processes = Processes(tmp_path_factory.mktemp("pair"), shared_nats_server.url)
    try:
        started = [processes.start("gateway") for _ in range(2)]
        for command in started:
            command.ready()
        yield started
    finally:
        processes.stop()


@pytest.mark.slow  # a flood
@pytest.mark.parametrize("strategy", ["reject", "ignore", "replace"])
async def test_of_many_pushes_through_two_gateways_one_job_lives(pair: list[Command], strategy: str) -> None:
    urls = [command.ready()["url"] for command in pair]
    answers: Counter[int] = Counter()

    async def one(session: aiohttp.ClientSession, index: int) -> None:
        async with session.post(f"{urls[index % 2]}{JOBS}", json=unique(f"race-{strategy}", strategy)) as answer:
            answers[answer.status] += 1

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session, index) for index in range(PUSHES)))
    expected = {"reject": {201: 1, 409: PUSHES - 1}, "ignore": {201: 1, 200: PUSHES - 1}, "replace": {201: PUSHES}}
    assert answers == expected[strategy]
    assert len(live(urls[0])) == 1


async def test_a_gateway_killed_among_unique_pushes_leaves_no_key_blocked(pair: list[Command]) -> None:
    """The last one of this file that takes what the others share."""
    victim, survivor = pair
    urls = [victim.ready()["url"], survivor.ready()["url"]]
    keys = [f"key-{number}" for number in range(KEYS)]

    async def to_victim(session: aiohttp.ClientSession, key: str) -> str | None:
        try:
            async with session.post(f"{urls[0]}{JOBS}", json=unique(key)) as answer:
                return str((await answer.json(content_type=None))["job"]["id"])
        except (aiohttp.ClientError, OSError):
            return None

    async with aiohttp.ClientSession() as session:
        pushes = [asyncio.create_task(to_victim(session, key)) for key in keys]
        await asyncio.wait(pushes, return_when=asyncio.FIRST_COMPLETED)
        victim.kill()
        told = dict(zip(keys, await asyncio.gather(*pushes), strict=True))
    assert None in told.values(), "the gateway answered everything before it died"

    async def again(session: aiohttp.ClientSession, key: str) -> tuple[str, int, str]:
        async with session.post(f"{urls[1]}{JOBS}", json=unique(key)) as answer:
            body = await answer.json(content_type=None)
            job_id = body["job"]["id"] if answer.status == 201 else body["error"]["details"]["existing_job_id"]
            return key, answer.status, str(job_id)

    async with aiohttp.ClientSession() as session:
        found = await asyncio.gather(*(again(session, key) for key in keys))
    assert {status for _, status, _ in found} <= {201, 409}
    holders = {key: job_id for key, _, job_id in found}
    assert all(holders[key] == job_id for key, job_id in told.items() if job_id is not None)
    fetched = live(urls[1])
    assert sorted(fetched) == sorted(holders.values())

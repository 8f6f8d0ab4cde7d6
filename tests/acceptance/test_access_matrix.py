"""Every operation of the running server, by each role, and by a narrowed key about its own queue and another's.

What is expected stands in access_matrix.txt: the operation, the permission that it needs, and what becomes of a request of a
narrowed key with all permissions: `reached`, `absent` (404) or `refused` (403), about its own queue and about another's.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest

from acceptance.test_keys import MAY
from support.bodies import body_of
from support.examples import amount
from support.guarded import API, Guarded
from support.system import send
from support.waiting import eventually

TABLE: Final = Path(__file__).with_name("access_matrix.txt")
NOWHERE: Final = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
UNTOUCHED: Final = frozenset({"createSession", "adminReset", "resetSystem"})
"""Tried elsewhere: sign-in takes the key itself."""


class Expected(NamedTuple):
    need: str
    own: str
    foreign: str


class Operation(NamedTuple):
    name: str
    method: str
    path: str
    parameters: tuple[str, ...]

    def filled(self, values: Mapping[str, str]) -> tuple[str, Any]:
        """Path and body of a request."""
        path = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], NOWHERE), self.path)
        body = body_of(self.name, {**values, "worker": "w", "attempt": 1})
        if "queue" in self.parameters and "filter" not in body:
            path += f"?queue={values.get('queue', '')}"
        return path, None if self.method == "GET" else body


class Said(NamedTuple):
    """What became of a request, and all that its sender was told."""

    outcome: str
    permission: str | None
    text: str


async def said(session: aiohttp.ClientSession, url: str, operation: Operation, values: Mapping[str, str]) -> Said:
    path, body = operation.filled(values)
    headers = {"OJS-Version": "1.0"}
    async with session.request(operation.method, url + path, json=body, headers=headers) as answer:
        streams = answer.status == 200 and answer.content_type == "text/event-stream"
        text = "" if streams else await answer.text()
    error = json.loads(text).get("error") if answer.status in {403, 404} else None
    outcome = {403: "refused", 404: "absent"}.get(answer.status, "reached")
    items = json.loads(text).get("items") if answer.status in {207, 422} and text else None
    if items and all(one.get("error", {}).get("code") == "not_found" for one in items):
        outcome = "absent"
    return Said(outcome, error and error.get("details", {}).get("permission"), text)


def operations(document: Any) -> list[Operation]:
    """All that the running server has, by their own paths."""
    found = {}
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            name = about.get("operationId")
            if name is None or name in found or name in UNTOUCHED or about.get("deprecated"):
                continue
            parameters = tuple(one["name"] for one in about.get("parameters", []) if one.get("in") == "query")
            found[name] = Operation(name, method.upper(), path, parameters)
    return list(found.values())


def expected() -> dict[str, Expected]:
    lines = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: Expected(*rest) for name, *rest in lines}


@pytest.fixture(scope="module")
def known(guarded: Guarded) -> list[Operation]:
    return operations(send("GET", guarded.url + API + "/openapi.json").body)


async def planted(session: aiohttp.ClientSession, url: str, queue: str, operation: Operation) -> dict[str, str]:
    """A job, a workflow and a cron entry of a queue, as far as an operation is about one."""
    job = {"type": "a.b", "args": [queue], "options": {"queue": queue, "delay_until": "2100-01-01T00:00:00Z"}}
    values = {"queue": queue, "cron": queue, "worker_id": queue, "attempt": "1"}
    async with session.post(f"{url}/jobs", json=job) as answer:
        assert answer.status == 201, await answer.text()
        values["job_id"] = (await answer.json())["job"]["id"]
    if "workflow" in operation.path:
        body = {"type": "group", "name": queue, "jobs": [job, job]}
        async with session.post(f"{url}/workflows", json=body) as answer:
            assert answer.status == 201, await answer.text()
            values["workflow_id"] = (await answer.json())["workflow"]["id"]
    if "cron" in operation.path:
        entry = {"name": queue, "cron": "0 0 1 1 *", "job_template": {"type": "a.b", "args": [], "options": {"queue": queue}}}
        async with session.post(f"{url}/cron", json=entry) as answer:
            assert answer.status in {200, 201}, await answer.text()
    return values


def session_of(token: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}, connector=aiohttp.TCPConnector(limit=8))


def test_the_table_has_each_operation_and_no_other(known: list[Operation]) -> None:
    assert {operation.name for operation in known} == set(expected())


def may(role: str, need: str) -> bool:
    return need in {"nothing", "key"} or need in MAY[role]


def tried_by(role: str, known: list[Operation]) -> list[Operation]:
    """Each operation is tried by one role that may and by one that may not, which take turns; at night by all."""
    table, turns = expected(), Counter[tuple[str, bool]]()
    tried = []
    for operation in known:
        need = table[operation.name].need
        for let in (True, False):
            roles = [one for one in MAY if may(one, need) is let]
            turn = roles[turns[need, let] % len(roles)] if roles else None
            turns[need, let] += 1
            if role == turn or (amount() == "all" and role in roles):
                tried.append(operation)
    return tried


@pytest.mark.parametrize("role", MAY)
async def test_a_role_is_let_through_to_what_it_may_do_alone(guarded: Guarded, known: list[Operation], role: str) -> None:
    table, tried = expected(), tried_by(role, known)
    assert len(tried) > 10
    values = {"queue": "nowhere", "cron": "nowhere", "worker_id": uuid.uuid4().hex, "job_id": NOWHERE, "attempt": "1"}
    async with session_of(await guarded.token(role)) as session:
        answers = await asyncio.gather(*(said(session, guarded.url, operation, values) for operation in tried))
    for operation, answer in zip(tried, answers, strict=True):
        need = table[operation.name].need
        assert answer.permission == (None if may(role, need) else need), (operation.name, answer)


async def test_a_narrowed_key_reaches_its_own_and_nothing_else(guarded: Guarded, known: list[Operation]) -> None:
    made = await guarded.made("narrowed", "admin", queues=["shop.*"])
    base = guarded.url + API
    async with session_of(guarded.tokens["admin"]) as admin, session_of(made["token"]) as session:
        marker = f"mark{uuid.uuid4().hex[:8]}"

        async def both(operation: Operation) -> tuple[Said, Said, dict[str, str]]:
            foreign = await planted(admin, base, f"{marker}.{operation.name.lower()}", operation)
            own = await planted(admin, base, f"shop.{operation.name.lower()}", operation)
            theirs = await said(session, guarded.url, operation, foreign)
            return await said(session, guarded.url, operation, own), theirs, foreign

        found = await asyncio.gather(*map(both, known))
        outcomes = {op.name: (own.outcome, theirs.outcome) for op, (own, theirs, _) in zip(known, found, strict=True)}
        assert outcomes == {name: (one.own, one.foreign) for name, one in expected().items()}
        ids = {foreign["job_id"] for _, _, foreign in found}
        for operation, (own, _, _) in zip(known, found, strict=True):
            assert marker not in own.text, operation.name
            assert not any(job_id in own.text for job_id in ids), operation.name

        async def untouched() -> bool:
            async with session_of(guarded.tokens["admin"]) as again:
                answers = await asyncio.gather(*(again.get(f"{base}/jobs/{job_id}") for job_id in ids))
                return all([(await one.json())["job"]["state"] == "scheduled" for one in answers])

        await eventually(untouched)

"""Requests drawn from the server's description, by holders of keys: no role gets further than it may, nothing makes a 500."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptance.test_access_matrix import expected, session_of
from acceptance.test_keys import MAY
from support.drawn import Asker, Drawn, asked, requests
from support.guarded import Guarded

pytestmark = pytest.mark.hypothesis  # they draw within the test

NOWHERE: Final = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
LEFT_OUT: Final = frozenset(
    {
        "adminReset",  # it empties the system
        "resetSystem",
        "revokeKey",  # of the keys that ask
        "rotateKey",
        "setMaintenance",
        "setMaintenanceAtAdminMaintenance",
        "directAllWorkers",
        "testWebhookSubscription",  # it asks others
    }
)
LOOKS_INSIDE: Final = {("listJobs", "payloads"), ("adminListJobs", "payloads")}
IN_ONE: Final = 20
OF_SERVICES: Final = {"GET /readyz", "GET /ready"}


@pytest.fixture(scope="module", params=[*MAY, "nobody"])
def role(request: pytest.FixtureRequest) -> str:
    named: str = request.param
    return named


@pytest.fixture(scope="module")
def ask(role: str, runner: asyncio.Runner, guarded: Guarded) -> Iterator[Asker]:
    """Asks with a key of the role."""

    async def opened() -> aiohttp.ClientSession:
        if role == "nobody":
            return aiohttp.ClientSession()
        return session_of(await guarded.token(role))

    session = runner.run(opened())
    yield Asker(runner, guarded, session)
    runner.run(session.close())


@pytest.fixture(scope="module")
def pools(runner: asyncio.Runner, guarded: Guarded) -> Mapping[str, Any]:
    """Names of what is there, and of what isn't."""
    job = {"type": "drawn.job", "args": [1], "options": {"queue": "drawn.a"}}
    later = {**job, "options": {"queue": "drawn.a", "delay_until": "2100-01-01T00:00:00Z"}}

    async def ask(path: str, body: object) -> Any:
        status, answer, _ = await guarded.ask("POST", path, body, token=guarded.tokens["admin"])
        assert status in {200, 201}, answer
        return answer

    async def made() -> tuple[list[str], list[str]]:
        ids = [(await ask("/jobs", one))["job"]["id"] for one in (job, job, later)]
        workflow = await ask("/workflows", {"type": "group", "name": "drawn", "jobs": [later, later]})
        await ask("/cron", {"name": "drawn", "cron": "0 0 1 1 *", "job_template": job})
        await ask("/workers/fetch", {"queues": ["drawn.a"], "worker_id": "drawn-worker", "wait_ms": 5_000})
        return ids, [workflow["workflow"]["id"]]

    ids, workflows = runner.run(made())
    return {
        "queue": ["drawn.a", "drawn.b", "nowhere"],
        "target_queue": ["drawn.b"],
        "type": ["drawn.job", "drawn.other"],
        "job_id": [*ids, NOWHERE],
        "id": [NOWHERE],
        "workflow_id": [*workflows, NOWHERE],
        "cron": ["drawn", "nowhere"],
        "name": ["drawn", "drawn.b"],
        "worker_id": ["drawn-worker", "nowhere"],
        "wait_ms": [0],
        "timeout": [0],
        "key_id": [NOWHERE],
        "expression": ["0 0 1 1 *"],
        "url": ["http://127.0.0.1:9/hook"],
    }


def test_no_role_gets_further_than_it_may_whatever_is_sent(
    role: str, ask: Asker, guarded: Guarded, pools: Mapping[str, Any]
) -> None:
    """What is refused is refused with 403, before anything is looked at, and every answer is one that is described."""
    needs = {name: one.need for name, one in expected().items()}
    drawing = requests(guarded.described, pools, wanted=lambda _, name: name not in LEFT_OUT)

    @asked(100)
    @given(st.lists(drawing, min_size=IN_ONE, max_size=IN_ONE))
    def held(drawn: list[Drawn]) -> None:
        for one, (answer, told) in zip(drawn, ask(drawn), strict=True):
            need = needs.get(one.operation, one.need)
            assert answer.status not in {500, 502, 504}, (one, told)
            if answer.status == 403 and "text=" in one.path and role == "viewer":  # it looks into what jobs carry
                assert (one.operation, answer.body["error"]["details"]["permission"]) in LOOKS_INSIDE, (one, told)
            elif need == "nothing" or need in MAY.get(role, set()) or (need == "key" and role != "nobody"):
                assert answer.status not in {401, 403}, (one, told)
            else:
                assert answer.status == (401 if role == "nobody" else 403), (one, told)
                assert answer.body["error"].keys() <= {
                    "code",
                    "message",
                    "retryable",
                    "type",
                    "hint",
                    "docs_url",
                    "details",
                    "request_id",
                    "canonical_code",
                    "ojs_code",
                }, told
            if "json" in answer.headers.get("Content-Type", ""):
                guarded.described.check(one.method, one.path, answer)

    held()

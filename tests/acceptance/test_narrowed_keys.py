"""What a key may not see doesn't reach it: jobs beyond its queues and types, and what jobs carry."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

import pytest

from acceptance.test_access_matrix import Operation, operations, session_of
from support.examples import amount
from support.guarded import API, Guarded
from support.system import send
from support.waiting import eventually

QUERIES: Final = (
    "",
    "?queue=shop.a&type=order.paid",
    "?queue=shop.a",
    "?state=discarded",
    "?page=1&per_page=50",
    "?detail=true",
)


class Planted(NamedTuple):
    """Jobs of a team: one that waits, one that is dead, one that is done, and a workflow; all ids."""

    waiting: str
    dead: str
    done: str
    workflow: str
    queue: str

    @property
    def ids(self) -> list[str]:
        return [self.waiting, self.dead, self.done]


async def planted(guarded: Guarded, queue: str, job_type: str, marker: str, *, named: str) -> Planted:
    """Jobs that carry the marker in everything; `named` is in names that aren't payload."""
    token = guarded.tokens["admin"]

    async def ask(method: str, path: str, body: object = None) -> Any:
        status, answer, _ = await guarded.ask(method, path, body, token=token)
        assert status in {200, 201}, (path, answer)
        return answer

    def job(**options: object) -> dict[str, object]:
        return {
            "type": job_type,
            "args": [marker],
            "meta": {"note": marker},
            "x_own": marker,
            "options": {"queue": queue, "tags": [named], "metadata": {"m": marker}, **options},
        }

    async def fetched(body: dict[str, object]) -> str:
        pushed = await ask("POST", "/jobs", body)
        fetch = {"queues": [queue], "worker_id": named, "wait_ms": 5_000}
        [found] = (await ask("POST", "/workers/fetch", fetch))["jobs"]
        assert found["id"] == pushed["job"]["id"]
        job_id: str = found["id"]
        return job_id

    done = await fetched(job())
    held = {"job_id": done, "worker_id": named, "attempt": 1}
    await ask("PUT", f"/jobs/{done}/progress", {**held, "progress": 0.5, "message": marker, "data": {"p": marker}})
    await ask("PUT", f"/jobs/{done}/checkpoint", {**held, "state": {"c": marker}})
    await ask("POST", "/workers/ack", {**held, "result": {"r": marker}})
    dead = await fetched(job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"}))
    failure = {"code": "e", "type": "E", "message": marker, "details": {"d": marker}, "backtrace": [marker]}
    await ask("POST", "/workers/nack", {"job_id": dead, "worker_id": named, "attempt": 1, "error": failure})
    step = job(delay_until="2100-01-01T00:00:00Z")
    waiting = (await ask("POST", "/jobs", step))["job"]["id"]
    workflow = (await ask("POST", "/workflows", {"type": "group", "name": named, "jobs": [step, step]}))["workflow"]["id"]
    template = {"type": job_type, "args": [marker], "meta": {"note": marker}, "options": {"queue": queue}}
    await ask("POST", "/cron", {"name": named, "cron": "0 0 1 1 *", "job_template": template})
    return Planted(waiting, dead, done, workflow, queue)


def readers(guarded: Guarded) -> list[Operation]:
    """All that is read, and doesn't go on."""
    found = operations(send("GET", guarded.url + API + "/openapi.json").body)
    return [one for one in found if one.method == "GET" and one.name not in {"getOpenApi", "websocketConnect"}]


def has(operation: Operation, query: str) -> bool:
    """Whether an operation has a parameter of a query by its description. At night, each is asked with each."""
    return not query or amount() == "all" or not parse_qs(query[1:]).keys().isdisjoint(operation.parameters)


async def told(guarded: Guarded, token: str, values: Sequence[dict[str, str]]) -> dict[str, str]:
    """All that a key is told by reading everything about some jobs, by what was asked."""
    answers: dict[str, str] = {}
    asked = [(operation, query) for operation in readers(guarded) for query in QUERIES if has(operation, query)]
    paths = {operation.filled(of)[0].partition("?")[0] + query for operation, query in asked for of in values}
    async with session_of(token) as session:

        async def ask(path: str) -> None:
            async with session.get(guarded.url + path, headers={"OJS-Version": "1.0"}) as answer:
                if answer.content_type != "text/event-stream":
                    answers[path] = await answer.text()

        await asyncio.gather(*map(ask, paths))
    return answers


@asynccontextmanager
async def following(url: str, token: str, queue: str) -> AsyncIterator[list[str]]:
    """What a key is told by streams and sockets from here until an event of a queue has come on each."""
    heard: list[str] = []
    async with (
        session_of(token) as session,
        session.get(f"{url}/events/stream") as stream,
        session.ws_connect(f"{url}/ws") as ws,
    ):
        for channel in ("all", "events"):
            await ws.send_json({"action": "subscribe", "channel": channel})
            heard.append((await ws.receive()).data)
        yield heard
        async with asyncio.timeout(60):
            while queue not in heard[-1] or "job.completed" not in heard[-1]:
                heard.append((await stream.content.readany()).decode())
            heard.append("")
            while queue not in heard[-1] or "job.completed" not in heard[-1]:
                heard.append((await ws.receive()).data)


NARROWINGS: Final[list[dict[str, list[str]]]] = [
    {"queues": ["shop.*"], "types": ["order.*"]},
    *([{"queues": ["shop.*"]}, {"types": ["order.*"]}] if amount() == "all" else []),
]
"""Requests of all three are drawn by test_nothing_of_others.py."""


@pytest.mark.parametrize("narrowing", NARROWINGS, ids="-".join)
async def test_nothing_that_a_narrowed_key_is_told_has_anything_of_others_jobs(
    guarded: Guarded,
    narrowing: dict[str, list[str]],
) -> None:
    marker = f"mark{uuid.uuid4().hex[:10]}"
    token = (await guarded.made(marker[4:], "admin", **narrowing))["token"]
    base = guarded.url + API
    own = await planted(guarded, "shop.a", "order.paid", "own", named=f"own{uuid.uuid4().hex[:8]}")

    async def totals() -> list[Any]:
        async with session_of(token) as session:
            found = []
            for path in ("/jobs?queue=shop.a&type=order.paid", "/dead-letter?queue=shop.a&type=order.paid"):
                async with session.get(base + path) as answer:
                    found.append((await answer.json())["pagination"]["total"])
            return found

    before = await totals()
    async with following(base, token, "shop.a") as heard:
        others = await planted(guarded, f"{marker}.q", f"{marker}.t", marker, named=marker)
        await planted(guarded, "shop.a", "order.paid", "own", named=f"own{uuid.uuid4().hex[:8]}")
    assert not any(marker in text or any(job_id in text for job_id in others.ids) for text in heard)

    foreign = [{"job_id": one, "workflow_id": others.workflow, "attempt": "1"} for one in others.ids]
    answers = await told(guarded, token, [{"job_id": own.done, "workflow_id": own.workflow, "queue": "shop.a"}, *foreign])
    assert len(answers) > 100
    for path, text in answers.items():
        assert marker not in text, path
        assert not any(one in text and one not in path for one in (*others.ids, others.workflow)), path
    assert await totals() == [before[0] + 5, before[1] + 1]


async def test_a_key_without_payloads_is_told_nothing_that_jobs_carry(guarded: Guarded) -> None:
    secret = f"secret{uuid.uuid4().hex[:10]}"
    viewer, operator = await guarded.token("viewer"), await guarded.token("operator")
    async with following(guarded.url + API, viewer, "plain") as heard:
        jobs = await planted(guarded, f"plain.{uuid.uuid4().hex[:8]}", "a.b", secret, named=f"n{uuid.uuid4().hex[:8]}")
    assert not any(secret in text for text in heard)
    values = [{"job_id": one, "workflow_id": jobs.workflow, "attempt": "1", "queue": jobs.queue} for one in jobs.ids]
    for path, text in (await told(guarded, viewer, values)).items():
        assert secret not in text, path
    shown = (await guarded.ask("GET", f"/jobs/{jobs.done}", token=operator))[1]["job"]
    hidden = (await guarded.ask("GET", f"/jobs/{jobs.done}", token=viewer))[1]["job"]
    assert shown["args"] == [secret]
    assert hidden["redacted"] == ["args", "meta", "metadata", "result", "x_own"]
    assert shown.keys() - hidden.keys() == set(hidden["redacted"])


async def test_a_key_without_payloads_can_t_guess_what_jobs_carry(guarded: Guarded) -> None:
    """Who finds a job by what it carries, or counts those that have it, knows that it is there."""
    tokens = [(await guarded.made("guesses", "custom", permissions=["read", *more]))["token"] for more in ([], ["payloads"])]
    for path in ("/jobs", "/admin/jobs"):
        for query in ("meta.tenant=acme", "state=active&meta.tenant=acme"):
            seen = [await guarded.ask("GET", f"{path}?{query}", token=token) for token in tokens]
            assert [status for status, _, _ in seen] == [403, 200], query
            assert seen[0][1]["error"]["details"]["permission"] == "payloads"
    controls = [(await guarded.made("acts", "custom", permissions=["control", *more]))["token"] for more in ([], ["payloads"])]
    body = {"filter": {"queue": "guessed", "meta": {"tenant": "acme"}}, "dry_run": True, "confirm": True}
    for path in ("/jobs/bulk/cancel", "/admin/jobs/bulk/retry"):
        assert [(await guarded.ask("POST", path, body, token=token))[0] for token in controls] == [403, 200]


async def test_a_key_without_payloads_gets_no_fingerprint_and_no_words_of_a_cancellation(guarded: Guarded) -> None:
    """A fingerprint has no salt: who has it finds the arguments by trying."""
    secret, queue, admin = f"secret{uuid.uuid4().hex}", f"q{uuid.uuid4().hex[:8]}", guarded.tokens["admin"]
    pusher, operator = await guarded.token("producer"), await guarded.token("operator")
    viewer = await guarded.token("viewer")
    job = {"type": "a.b", "args": [4711], "options": {"queue": queue, "unique": {"keys": ["type", "queue", "args"]}}}
    _, pushed, _ = await guarded.ask("POST", "/jobs", job, token=admin)
    job_id = pushed["job"]["id"]

    async def refused(path: str, body: object, token: str) -> tuple[int, Any]:
        status, answer, _ = await guarded.ask("POST", path, body, token=token)
        error = answer.get("error") or answer["items"][0]["error"]
        assert (error["code"], error["details"]["existing_job_id"]) == ("duplicate", job_id), path
        return status, error["details"]

    for path, body in (("/jobs", job), ("/jobs/batch", {"jobs": [job]}), ("/jobs/bulk", {"jobs": [job]})):
        shown, hidden = [(await refused(path, body, token))[1] for token in (operator, pusher)]
        assert len(shown["unique_key"]) == 64, path
        assert ("unique_key" in hidden, hidden["redacted"]) == (False, ["unique_key"]), path
        assert shown["unique_key"] not in str(hidden), path
    found = [await guarded.ask("GET", "/unique-jobs", token=token) for token in (operator, viewer)]
    assert [status for status, _, _ in found] == [200, 403]
    assert found[1][1]["error"]["details"]["permission"] == "payloads"

    async with following(guarded.url + API, viewer, queue) as heard:
        await guarded.ask("POST", f"/jobs/{job_id}/cancel", {"reason": secret}, token=admin)
        await guarded.ask("POST", "/jobs", {"type": "a.b", "args": [], "options": {"queue": queue}}, token=admin)
        fetch = {"queues": [queue], "worker_id": "w", "wait_ms": 20_000}
        [fetched] = (await guarded.ask("POST", "/workers/fetch", fetch, token=admin))[1]["jobs"]
        await guarded.ask("POST", "/workers/ack", {"job_id": fetched["id"], "worker_id": "w"}, token=admin)
    assert any(job_id in text for text in heard)
    assert not any(secret in text for text in heard)
    assert secret in (await guarded.ask("GET", f"/admin/jobs/{job_id}/why", token=operator))[1]["reasons"][0]["message"]
    for path, text in (await told(guarded, viewer, [{"job_id": job_id, "queue": queue, "attempt": "1"}])).items():
        assert secret not in text, path


async def test_of_its_own_step_in_a_workflow_with_others_a_key_hears_the_workflow_s_name_and_nothing_of_theirs(
    guarded: Guarded,
) -> None:
    """The step of the others comes first, fails once, and hands its result on."""
    admin, mark, secret = guarded.tokens["admin"], f"m{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    key = (await guarded.made(f"team-{mark}", "operator", queues=["shop.*"]))["token"]

    async def ask(path: str, body: object = None, method: str = "POST", token: str = admin) -> Any:
        status, answer, _ = await guarded.ask(method, path, body, token=token)
        assert status in {200, 201}, (path, answer)
        return answer

    async def run(queue: str, **end: object) -> str:
        held = {"worker_id": f"worker-{queue}"}
        [job] = (await ask("/workers/fetch", {**held, "queues": [queue], "wait_ms": 20_000}))["jobs"]
        way = "nack" if "error" in end else "ack"
        await ask(f"/workers/{way}", {**held, "job_id": job["id"], "attempt": job["attempt"], **end})
        return str(job["id"])

    def step(name: str, queue: str, carried: str) -> dict[str, object]:
        retry = {"initial_interval_ms": 1, "jitter": False}
        options = {"queue": queue, "retry": retry, "tags": [carried], "metadata": {"m": carried}}
        return {"name": f"{name}-{mark}", "type": f"{name}.{mark}", "args": [carried], "options": options}

    theirs, own = f"mail.{mark}", f"shop.{mark}"
    steps = [step("theirs", theirs, secret), step("own", own, "own")]
    made = await ask("/workflows", {"type": "chain", "name": f"flow-{mark}", "steps": steps})
    foreign = await run(theirs, error={"code": "e", "type": "E", "message": secret})
    assert await run(theirs, result={"r": secret}) == foreign
    mine = await run(own)

    async def heard() -> str:
        answer = await ask("/events?after=0&limit=1000", method="GET", token=key)
        return json.dumps([event for event in answer["events"] if mark in json.dumps(event)])

    await eventually(lambda: _has(heard, "workflow.step_completed"))
    told = await heard()
    assert mine in told
    assert made["workflow"]["id"] in told
    for job_path in (f"/jobs/{mine}", f"/jobs/{mine}/history", f"/jobs/{mine}/lineage"):
        told += json.dumps(await ask(job_path, method="GET", token=key))
    for foreign_word in (secret, theirs, foreign, f"theirs.{mark}", f"theirs-{mark}"):
        assert foreign_word not in told, told


async def _has(heard: Callable[[], Awaitable[str]], word: str) -> bool:
    return word in await heard()


async def test_a_worker_of_a_narrowed_key_can_t_pass_for_another_s(guarded: Guarded) -> None:
    worker = uuid.uuid4().hex
    mine = (await guarded.made("mine", "worker", queues=["shop.*"]))["token"]
    theirs = (await guarded.made("theirs", "worker", queues=["mail.*"]))["token"]

    async def ask(path: str, token: str) -> int:
        return (await guarded.ask("POST", f"/workers/{path}", {"worker_id": worker}, token=token))[0]

    assert await ask("register", mine) == 200
    assert [await ask(path, theirs) for path in ("register", "heartbeat", "deregister")] == [403, 403, 403]
    assert [await ask(path, mine) for path in ("heartbeat", "deregister")] == [200, 200]


@pytest.mark.parametrize("victim", [{}, {"queues": ["mail.*"]}])
async def test_a_narrowed_key_takes_no_job_from_anothers_worker_that_has_only_fetched(
    guarded: Guarded, victim: dict[str, list[str]]
) -> None:
    """Such a worker has no record that would name its key."""
    worker, queue = uuid.uuid4().hex, f"mail.{uuid.uuid4().hex[:8]}"
    thief = (await guarded.made("thief", "worker", queues=["shop.*"]))["token"]
    token = (await guarded.made("victim", "custom", permissions=["enqueue", "work", "read"], **victim))["token"]

    async def ask(path: str, of: str, **body: Any) -> Any:
        status, answer, _ = await guarded.ask("POST", path, body, token=of)
        assert status in {200, 201}, answer
        return answer

    pushed = (await ask("/jobs", token, type="a.b", args=[], options={"queue": queue}))["job"]["id"]
    [found] = (await ask("/workers/fetch", token, queues=[queue], worker_id=worker, wait_ms=5_000))["jobs"]
    assert found["id"] == pushed
    mark = (await ask("/workers/register", thief, worker_id=worker))["mark"]
    beat = await ask("/workers/heartbeat", thief, worker_id=worker, active_jobs=[pushed])
    assert not beat["jobs_extended"]
    complete = {"since": mark, "until": beat["mark"]}
    await ask("/workers/heartbeat", thief, worker_id=worker, active_jobs=[], complete=complete)
    await ask("/workers/deregister", thief, worker_id=worker)
    status, answer, _ = await guarded.ask("GET", f"/jobs/{pushed}", token=token)
    assert (status, answer["job"]["state"]) == (200, "active")
    assert (await ask("/workers/ack", token, job_id=pushed, worker_id=worker, attempt=1))["state"] == "completed"


async def test_a_worker_goes_on_with_the_key_that_its_own_was_rotated_to(guarded: Guarded) -> None:
    worker = uuid.uuid4().hex
    made = await guarded.made("rotating", "worker", queues=["shop.*"])
    _, rotated, _ = await guarded.ask("POST", f"/admin/keys/{made['key']['id']}/rotate", {}, token=guarded.tokens["admin"])

    async def ask(path: str, token: str) -> int:
        return (await guarded.ask("POST", f"/workers/{path}", {"worker_id": worker}, token=token))[0]

    assert await ask("register", made["token"]) == 200
    assert [await ask(path, rotated["token"]) for path in ("heartbeat", "deregister")] == [200, 200]


async def test_a_key_narrowed_by_types_is_not_told_how_many_others_wait_before_its_job(guarded: Guarded) -> None:
    queue, admin = f"shared.{uuid.uuid4().hex[:8]}", guarded.tokens["admin"]
    own, whole = (
        (await guarded.made("typed", "viewer", types=["order.*"]))["token"],
        (await guarded.made("q", "viewer"))["token"],
    )

    async def push(job_type: str, priority: int) -> str:
        body = {"type": job_type, "args": [], "options": {"queue": queue, "priority": priority}}
        job_id: str = (await guarded.ask("POST", "/jobs", body, token=admin))[1]["job"]["id"]
        return job_id

    async def why(token: str) -> set[str]:
        status, answer, _ = await guarded.ask("GET", f"/admin/jobs/{job_id}/why", token=token)
        assert status == 200, answer
        return {reason["code"] for reason in answer["reasons"]}

    job_id = await push("order.paid", 0)
    for priority in (0, 5):
        await push("mail.send", priority)

    async def all_are_counted() -> bool:
        return await why(whole) >= {"higher_priority", "in_line", "no_worker"}

    await eventually(all_are_counted)
    assert await why(own) == {"available"}


async def test_a_narrowed_key_sends_no_job_into_anothers_queue(guarded: Guarded) -> None:
    """Neither with a new life, nor by deleting the queue that it is in."""
    own, others = f"shop.{uuid.uuid4().hex[:8]}", f"mail.{uuid.uuid4().hex[:8]}"
    token = (await guarded.made("mover", "admin", queues=["shop.*"]))["token"]
    planted_there = await planted(guarded, own, "order.paid", "own", named=f"own{uuid.uuid4().hex[:8]}")

    async def ask(method: str, path: str, body: object) -> tuple[int, Any]:
        return (await guarded.ask(method, path, body, token=token))[:2]

    for path in (f"/dead-letter/{planted_there.dead}/retry", f"/admin/dead-letter/{planted_there.dead}/retry"):
        status, answer = await ask("POST", path, {"override": {"queue": others}})
        assert (status, answer["error"]["code"]) == (403, "permission_denied")
    status, answer = await ask("DELETE", f"/queues/{own}", {"strategy": "move", "target_queue": others})
    assert (status, answer["error"]["code"]) == (403, "permission_denied")
    assert (await ask("DELETE", f"/queues/{own}?strategy=move&target_queue={others}", None))[0] == 403
    assert (await ask("GET", f"/jobs/{planted_there.waiting}", None))[1]["job"]["queue"] == own
    status, answer = await ask("POST", f"/dead-letter/{planted_there.dead}/retry", {"override": {"queue": f"{own}.b"}})
    assert (status, answer["job"]["queue"]) == (200, f"{own}.b")


async def test_a_job_of_a_narrowed_key_can_t_be_unique_among_those_of_others(guarded: Guarded) -> None:
    token = (await guarded.made("unique", "producer", queues=["shop.*"]))["token"]

    async def push(unique: dict[str, Any]) -> tuple[int, Any]:
        body = {"type": "a.b", "args": [], "options": {"queue": "shop.unique", "unique": unique}}
        return (await guarded.ask("POST", "/jobs", body, token=token))[:2]

    for unique in ({"keys": ["type"], "on_conflict": "replace"}, {"key": "literal"}):
        status, answer = await push(unique)
        assert (status, answer["error"]["details"]["field"]) == (403, "unique.keys")
    assert (await push({"keys": ["type", "queue"]}))[0] == 201


async def test_a_narrowed_key_is_answered_where_there_is_nothing_to_be_asked_about(guarded: Guarded) -> None:
    """Its requests are held to its queues one by one, and here there are none."""
    token = (await guarded.made("nothing", "admin", queues=["nothing.*"]))["token"]
    refused = await guarded.ask("POST", "/jobs/bulk", {"jobs": [{"type": "No Type", "args": []}]}, token=token)
    assert refused[0] == 422
    assert [(await guarded.ask("GET", path, token=token))[0] for path in ("/crons", "/queues")] == [200, 200]
    gone = "01900000-0000-7000-8000-000000000000"
    acks = {"jobs": [{"job_id": gone, "worker_id": "w"}]}
    for path, body, status in (
        ("/workers/acks", acks, 207),
        ("/jobs/results", {"ids": [gone]}, 200),
        ("/jobs/results", {"ids": ["x"]}, 200),
    ):
        answered = await guarded.ask("POST", path, body, token=token)
        assert answered[0] == status, answered
        assert "not_found" in str(answered[1])


async def test_nobody_meets_the_idempotency_keys_of_another(guarded: Guarded) -> None:
    queue = f"shop.{uuid.uuid4().hex[:8]}"
    narrowed = [(await guarded.made(f"shop {n}", "custom", permissions=["enqueue"], queues=["shop.*"]))["token"] for n in "ab"]
    ids = []
    for token in (*narrowed, narrowed[0], guarded.tokens["admin"]):
        status, answer, _ = await guarded.ask(
            "POST", "/jobs", {"type": "a.b", "args": [], "options": {"queue": queue}}, token=token, Idempotency_Key="same"
        )
        assert status == 201, answer
        ids.append(answer["job"]["id"])
    assert ids[0] == ids[2], "its own"
    assert len(set(ids)) == 3

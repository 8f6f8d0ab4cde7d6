from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
import structlog
from msgspec import Raw

from ojs_core.base.errors import OjsError
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.domain.job import Job, State
from ojs_core.domain.schemas.validator import Finding
from ojs_core.runtime.middleware import EnqueueChain, EnqueueMiddleware, MiddlewareProblem, NextMiddleware
from ojs_core.runtime.preparation import Preparation
from support.fake_store import FakeStore, Schemas

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
Envelope = dict[str, Any]
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def marking(mark: str) -> EnqueueMiddleware:
    async def mark_it(job: Envelope, following: NextMiddleware) -> Envelope | None:
        job["meta"].setdefault("in", []).append(mark)
        result = await following(job)
        if result is not None:
            result["meta"].setdefault("out", []).append(mark)
        return result

    return mark_it


class Passing:
    async def __call__(self, job: Envelope, following: NextMiddleware) -> Envelope | None:
        return await following(job)


instance = Passing()


# The chain


def names(chain: EnqueueChain) -> str:
    return " ".join(chain.names)


def test_the_order_is_the_one_that_was_asked_for() -> None:
    chain = EnqueueChain()
    chain.add(marking("b"), name="b")
    chain.prepend(marking("a"), name="a")
    chain.add(marking("e"), name="e")
    chain.insert_before("e", marking("d"), name="d")
    chain.insert_after("b", marking("c"), name="c")
    assert names(chain) == "a b c d e"
    chain.remove("c")
    assert names(chain) == "a b d e"
    assert len(chain) == 4


def test_names_come_from_the_function_and_may_occur_twice() -> None:
    chain = EnqueueChain()
    chain.add(marking("1"))
    chain.add(marking("2"))
    chain.add(instance)
    assert names(chain) == "mark_it mark_it Passing"
    chain.remove("mark_it")
    assert names(chain) == "mark_it Passing"


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    chain = EnqueueChain()
    with pytest.raises(LookupError, match="it is empty"):
        chain.remove("x")
    chain.add(marking("1"), name="one")
    for change in (chain.insert_before, chain.insert_after):
        with pytest.raises(LookupError, match=r"'x'.*one"):
            change("x", marking("2"))


def test_a_frozen_chain_stays_as_it_is() -> None:
    chain = EnqueueChain()
    chain.add(marking("1"), name="one")
    chain.freeze()
    changes: list[Callable[[], None]] = [
        lambda: chain.add(marking("2")),
        lambda: chain.prepend(marking("2")),
        lambda: chain.insert_before("one", marking("2")),
        lambda: chain.insert_after("one", marking("2")),
        lambda: chain.remove("one"),
    ]
    for change in changes:
        with pytest.raises(RuntimeError, match="frozen"):
            change()
    assert chain.names == ("one",)


async def test_the_first_is_the_outermost_and_each_runs_once() -> None:
    chain = EnqueueChain()
    for mark in "abc":
        chain.add(marking(mark))
    assert await chain.run({"meta": {}}) == {"meta": {"in": ["a", "b", "c"], "out": ["c", "b", "a"]}}


async def test_an_empty_chain_changes_nothing() -> None:
    job = {"id": ID}
    assert await EnqueueChain().run(job) is job


def test_import_paths_are_loaded_in_order() -> None:
    chain = EnqueueChain.load(["support.chain:tag", "support.chain:Nested.tag"])
    assert chain.names == ("support.chain:tag", "support.chain:Nested.tag")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("no_colon", "not an import path"),
        (":x", "not an import path"),
        ("support.chain:", "not an import path"),
        ("no_such_module_anywhere:x", "ModuleNotFoundError"),
        ("support.chain:missing", "has no 'missing'"),
        ("support.chain:Nested", "neither an async function"),
        ("support.chain:CONSTANT", "neither an async function"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(path: str, reason: str) -> None:
    with pytest.raises(MiddlewareProblem, match=reason):
        EnqueueChain.load([path])


# In the gateway


async def push(http: aiohttp.ClientSession, **more: Any) -> tuple[int, Any]:
    async with http.post("/ojs/v1/jobs", json={"id": ID, "type": "a.b", "args": [1]} | more) as answer:
        return answer.status, await answer.json(content_type=None)


async def test_a_middleware_sees_and_changes_the_whole_job(start: Start, chain: EnqueueChain, store: FakeStore) -> None:
    seen: list[Envelope] = []

    async def change(job: Envelope, following: NextMiddleware) -> Envelope | None:
        seen.append(dict(job))
        job |= {"queue": "other", "priority": 7, "args": [*job["args"], 2], "x_new": True}
        job["meta"]["traceparent"] = "00-1"
        return await following(job)

    chain.add(change)
    http = await start()
    status, body = await push(
        http, options={"queue": "q", "tags": ["t"], "timeout_ms": 5, "expires_at": "2099-01-01T00:00:00+01:00"}, x_own=1
    )
    assert status == 201
    assert seen[0]["queue"] == "q"
    assert (seen[0]["tags"], seen[0]["timeout_ms"], seen[0]["x_own"]) == (["t"], 5, 1)
    job = body["job"]
    assert (job["queue"], job["priority"], job["args"], job["meta"]) == ("other", 7, [1, 2], {"traceparent": "00-1"})
    assert (job["x_own"], job["x_new"], job["expires_at"]) == (1, True, "2099-01-01T00:00:00+01:00")
    assert store.records[ID].queue == "other"


async def test_a_dropped_job_is_not_enqueued_and_its_client_is_told(
    start: Start, chain: EnqueueChain, store: FakeStore
) -> None:
    async def drop(_job: Envelope, _following: NextMiddleware) -> Envelope | None:
        return None

    chain.add(drop)
    assert await push(await start()) == (200, {"job": None, "enqueued": False})
    assert store.records == {}


async def test_an_ojs_error_is_the_answer(start: Start, chain: EnqueueChain, store: FakeStore) -> None:
    async def refuse(_job: Envelope, _following: NextMiddleware) -> Envelope | None:
        raise OjsError("unsupported", "not on Sundays")

    chain.add(refuse)
    status, body = await push(await start())
    assert (status, body["error"]["code"], body["error"]["message"]) == (422, "unsupported", "not on Sundays")
    assert store.records == {}


async def failing(_job: Envelope, _following: NextMiddleware) -> Envelope | None:
    raise RuntimeError("a secret")


async def renaming(job: Envelope, following: NextMiddleware) -> Envelope | None:
    return await following(job | {"id": ID[:-1] + "0"})


async def unwritable(job: Envelope, following: NextMiddleware) -> Envelope | None:
    return await following(job | {"args": [object()]})


async def careless(_job: Envelope, _following: NextMiddleware) -> Any:
    return "done"


@pytest.mark.parametrize("middleware", [failing, renaming, unwritable, careless])
async def test_a_broken_middleware_is_500_and_nothing_is_enqueued(
    start: Start, chain: EnqueueChain, store: FakeStore, middleware: EnqueueMiddleware
) -> None:
    chain.add(middleware)
    http = await start()
    with structlog.testing.capture_logs() as logs:
        status, body = await push(http)
    assert (status, body["error"]["code"]) == (500, "backend_error")
    assert "secret" not in body["error"]["message"]
    assert [entry["job_id"] for entry in logs if entry["log_level"] == "error"] == [ID]
    assert store.records == {}


async def test_what_a_middleware_leaves_is_validated_again(start: Start, chain: EnqueueChain, store: FakeStore) -> None:
    async def spoil(job: Envelope, following: NextMiddleware) -> Envelope | None:
        return await following(job | {"queue": "Not A Queue"})

    chain.add(spoil)
    status, body = await push(await start())
    assert (status, body["error"]["code"], body["error"]["details"]["field"]) == (400, "invalid_request", "queue")
    assert store.records == {}


async def test_a_job_is_held_to_its_schema_as_middleware_leaves_it(start: Start, chain: EnqueueChain, store: FakeStore) -> None:
    async def change(job: Envelope, following: NextMiddleware) -> Envelope | None:
        return await following(job | {"args": [2]})

    chain.add(change)
    store.schemas.findings = [Finding("args[0]", "no", "items/type")]
    status, body = await push(await start())
    assert (status, body["warnings"]) == (201, [{"field": "args[0]", "message": "no"}])
    assert [bytes(draft.args) for draft in store.schemas.seen] == [b"[2]"]


async def test_what_jobs_are_made_of_is_held_to_their_schema_unless_middleware_changes_them_first() -> None:
    schemas = Schemas()
    schemas.findings = [Finding("args", "no", "")]
    draft = Job(id=ID, type="a.b", args=Raw(b"[1]"), state=State.AVAILABLE)
    for chain, found in ((EnqueueChain(), 1), (EnqueueChain(), 0)):
        if not found:
            chain.add(marking("m"))
        told: list[Finding] = []
        await Preparation(chain, PayloadLimits(), lambda: 0, schemas.check).template(draft, told)
        assert len(told) == found


async def test_a_bad_job_never_reaches_the_chain(start: Start, chain: EnqueueChain) -> None:
    chain.add(failing)
    status, _ = await push(await start(), args="x")
    assert status == 400


async def test_a_job_of_the_full_size_passes_a_chain(start: Start, chain: EnqueueChain) -> None:
    chain.add(marking("m"))
    http = await start()
    body = b'{"type":"a","args":["%s"]}' % (b"x" * (1_048_576 - 24))
    async with http.post("/ojs/v1/jobs", data=body, headers={"Content-Type": "application/json"}) as answer:
        assert (len(body), answer.status) == (1_048_576, 201)

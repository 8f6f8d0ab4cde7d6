from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from typing import Any, cast

import aiohttp
import pytest

from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.api.route import Part
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.store.store import Store
from ojs_engine.wire.jobs import enqueue, retry
from ojs_engine.wire.queues import requests as queue_requests
from ojs_features.all import FEATURES
from ojs_gateway.context import Context
from ojs_gateway.handlers.description import SelfDescription
from ojs_gateway.openapi.document import document
from ojs_gateway.routes import bound, parts, router
from ojs_runtime.browsers import METHODS
from ojs_runtime.settings import Settings
from support import contract
from support.bodies import BODIES, body_of
from support.call import Request
from support.described import Described
from support.fake_store import FakeStore

Start = Callable[..., Awaitable[aiohttp.ClientSession]]


@cache
def written(*, test_mode: bool) -> bytes:
    return document(parts(FEATURES), DEFAULT_LIMITS, test_mode=test_mode)


def described(*, test_mode: bool) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(written(test_mode=test_mode))
    return made


def operations(made: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(method.upper(), path): one for path, methods in made["paths"].items() for method, one in methods.items()}


@pytest.mark.slow
def test_it_is_a_valid_openapi_document() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415, it takes long, and this test alone needs it

    made = described(test_mode=True)
    assert made["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(made).iter_errors()] == []


@pytest.mark.parametrize("test_mode", [True, False])
def test_it_lists_exactly_what_is_served(store: FakeStore, test_mode: bool) -> None:
    context = Context(cast("Store", store), DEFAULT_LIMITS, Settings(test_mode=test_mode), FEATURES)
    served = {(method, path) for method, path in router(bound(context)).routes() if method != "HEAD"}
    listed = operations(described(test_mode=test_mode))
    assert set(listed) == served
    assert (("POST", "/ojs/v1/admin/reset") in listed) == test_mode
    if test_mode:
        assert listed["POST", "/ojs/v1/admin/reset"]["x-test-mode-only"] is True


def test_every_operation_says_what_it_is() -> None:
    made = described(test_mode=True)
    tags = {tag["name"] for tag in made["tags"]}
    for (method, path), one in operations(made).items():
        assert one["summary"], (method, path)
        assert set(one["tags"]) < tags, (method, path)
        assert any(int(status) < 300 for status in one["responses"]), (method, path)
        assert all(answer.get("$ref") or answer["description"] for answer in one["responses"].values()), (method, path)
        named = [parameter["name"] for parameter in one.get("parameters", ()) if parameter["in"] == "path"]
        assert named == re.findall(r"\{(\w+)\}", path)
    ids = Counter(one["operationId"] for one in operations(made).values())
    assert [name for name, count in ids.items() if count > 1 or re.fullmatch("[a-z][A-Za-z]+", name) is None] == []


def test_nothing_is_described_twice() -> None:
    handlers = Counter(route.handler.__qualname__ for part in parts(FEATURES) for route in part.routes)
    assert [name for name, count in handlers.items() if count > 1] == []
    paths = Counter(f"{route.absolute} {path}" for part in parts(FEATURES) for route in part.routes for path in route.paths)
    assert [path for path, count in paths.items() if count > 1] == []


def test_other_names_of_an_operation_say_so() -> None:
    listed = operations(described(test_mode=False))
    own, other = listed["POST", "/ojs/v1/workers/nack"], listed["POST", "/ojs/v1/jobs/{job_id}/fail"]
    assert other["description"].startswith("Another name of `POST /ojs/v1/workers/nack`.")
    assert (own["responses"], own["summary"]) == (other["responses"], other["summary"])


def test_an_answer_with_two_forms_has_both() -> None:
    content = operations(described(test_mode=False))["GET", "/ojs/v1/metrics"]["responses"]["200"]["content"]
    assert [kind.partition(";")[0] for kind in content] == ["application/openjobspec+json", "application/json", "text/plain"]


def test_every_reference_leads_somewhere_and_everything_is_referred_to() -> None:
    made = described(test_mode=True)
    wanted = set(re.findall(r'"#/(components/[^"]+)"', json.dumps(made)))
    there = {
        f"components/{kind}/{name}" for kind, named in made["components"].items() if kind != "securitySchemes" for name in named
    }
    assert wanted == there


def test_the_request_to_push_has_every_member_that_is_read() -> None:
    attributes = {*enqueue._READERS, *enqueue._KEPT}
    assert set(ENVELOPE.schema["properties"]) == {"type", "args", "options", *attributes}
    assert set(ENVELOPE.schema["properties"]["options"]["properties"]) == attributes - enqueue.TOP_LEVEL_ONLY


def test_the_settings_of_a_queue_are_those_that_are_read() -> None:
    schemas = described(test_mode=False)["components"]["schemas"]
    refused = {"max_size_bytes", "producers", "dead_letter_queue"}
    assert set(schemas["QueueSettingsRequest"]["properties"]) == set(queue_requests._READERS) - refused
    assert set(schemas["RetryRequest"]["properties"]) <= set(retry._NAMES)


def test_every_member_of_the_query_that_a_handler_asks_for_is_described() -> None:
    asked: dict[str, set[str]] = {}
    told: dict[str, set[str]] = {}
    for part in parts(FEATURES):
        for route in part.routes:
            owner = route.handler.__qualname__.partition(".")[0]
            source = inspect.getsource(inspect.getmodule(route.handler) or pytest)
            asked[owner] = set(re.findall(r"""\bquer(?:y|ies\.get)\(\s*"(\w+)"\)""", source))
            told.setdefault(owner, set()).update(parameter.name for parameter in route.query)
    assert {"state", "timeout"} <= asked["ListHandlers"] | asked["JobHandlers"]  # the search finds something
    assert {owner: names - told[owner] for owner, names in asked.items() if names - told[owner]} == {}


def test_there_is_a_sound_body_for_each_operation_that_has_to_be_told_something() -> None:
    """What the access matrix, raw requests and the tests of the NATS API send (tests/support/bodies.py)."""
    description = Described(described(test_mode=True))
    values = {"queue": "a", "job_id": "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "attempt": 1, "worker": "w", "worker_id": "v"}
    sound = {name: body_of(name, values) for name in contract.BODIES | BODIES}
    taken: dict[str, tuple[str, str]] = {}
    for (method, template), operation in description.operations.items():
        name = operation["operationId"].partition("At")[0]
        if "requestBody" in operation:
            taken[name] = (method, template)
            needed = description.resolved(description.body_schema(method, template)).get("required", [])
            assert not needed or name in sound, f"say in tests/support/bodies.py what {name} is asked"
    for name in sorted(sound.keys() & taken.keys()):
        description.check_request(*taken[name], sound[name])
    assert sound.keys() <= taken.keys()


async def test_it_is_served(http: aiohttp.ClientSession) -> None:
    async with http.get("/ojs/v1/openapi.json") as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert await answer.json() == described(test_mode=False)
    async with http.get("/ojs/manifest") as manifest:
        assert (await manifest.json(content_type=None))["endpoints"]["openapi"] == "/ojs/v1/openapi.json"


async def test_it_is_made_when_somebody_asks_first(store: FakeStore) -> None:
    class Read(list[Part]):
        times = 0

        def __iter__(self) -> Iterator[Part]:
            self.times += 1
            return super().__iter__()

    seen = Read(parts(FEATURES))
    description = SelfDescription(Context(cast("Store", store), DEFAULT_LIMITS, Settings(), FEATURES), seen)
    assert seen.times == 0
    first = await description.read(Request())
    read = seen.times
    assert read > 0
    assert await description.read(Request()) == first
    assert seen.times == read


async def test_its_methods_are_those_that_a_refusal_allows(http: aiohttp.ClientSession) -> None:
    every: set[str] = set()
    for path, methods in described(test_mode=False)["paths"].items():
        every.update(method.upper() for method in methods)
        wanted = {method.upper() for method in methods} | ({"HEAD"} if "get" in methods else set())
        async with http.options(re.sub(r"\{\w+\}", "x", path)) as answer:
            assert answer.status == 405
            assert set(answer.headers["Allow"].split(", ")) == wanted, path
    assert set(METHODS.split(", ")) == every | {"HEAD"}

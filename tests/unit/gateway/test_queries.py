"""Parameters of query strings: each operation refuses what it doesn't have, and what is given twice (docs/adr/047)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import aiohttp
import pytest

from ojs_engine.api.route import Route
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import OperationPlace, places
from ojs_gateway.routes import parts

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
LISTS = frozenset({"types", "type", "event_types", "queues", "queue", "job_types", "job_type"})
"""Filters of events, which may be given several times."""
OPEN = frozenset({"getManifest", "getHealth", "getLiveness", "getMetrics", "getOpenApi"})


class Asked(NamedTuple):
    status: int
    error: Any

    @property
    def field(self) -> Any:
        return self.error.get("details", {}).get("field")


async def ask(http: aiohttp.ClientSession, place: OperationPlace, query: str) -> Asked:
    path = re.sub(r"\{\w+\}", "1", place.path)
    body: dict[str, Any] | None = None if place.method == "GET" else {}
    async with http.request(place.method, f"{path}?{query}", json=body) as answer:
        is_json = "json" in answer.headers.get("Content-Type", "")
        error = (await answer.json(content_type=None)).get("error", {}) if is_json and answer.status >= 400 else {}
        return Asked(answer.status, error)


def checked() -> Iterator[tuple[Route, OperationPlace]]:
    """Every name of every operation that goes by its parameters."""
    for part in parts(FEATURES):
        for route in part.routes:
            own = next(places(route))
            if not route.test_only and own.operation_id not in OPEN:
                yield from ((route, place) for place in places(route))


async def test_every_operation_refuses_what_it_does_not_have(http: aiohttp.ClientSession) -> None:
    asked = [(route, place) for route, place in checked()]
    assert len(asked) > 150
    for _, place in asked:
        answer = await ask(http, place, "ext_a=1&_=2&nonsense=3")
        assert (answer.status, answer.field) == (400, "nonsense"), (place, answer)


async def test_every_parameter_that_counts_once_is_given_once(http: aiohttp.ClientSession) -> None:
    lists = 0
    for route, place in checked():
        for parameter in route.query:
            if parameter.place != "query":
                continue
            query = f"ext_a=1&ext_a=2&{parameter.name}=1&{parameter.name}=1"
            if parameter.several:
                assert parameter.name in LISTS
                query = f"{query}&nonsense=1"  # it is refused for this one
                lists += 1
            answer = await ask(http, place, query)
            wrong = "nonsense" if parameter.several else parameter.name
            assert (answer.status, answer.field) == (400, wrong), (place, answer)
            if parameter.same_as is not None:
                answer = await ask(http, place, f"{parameter.name}=1&{parameter.same_as}=1")
                assert (answer.status, answer.field) == (400, parameter.name), (place, answer)
    assert lists > 20


async def test_what_is_asked_for_health_is_nobodys_business(http: aiohttp.ClientSession) -> None:
    for path in ("/healthz", "/ojs/v1/health", "/ojs/manifest", "/ojs/v1/openapi.json"):
        async with http.get(f"{path}?nonsense=1&nonsense=2") as answer:
            assert answer.status == 200, path


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/ojs/v1/jobs", "statee=available", '"statee" is not a parameter of listJobs; did you mean state?'),
        ("/ojs/v1/jobs", "error=Timeout", '"error" is not a parameter of listJobs; did you mean error_type?'),
        ("/ojs/v1/jobs", "Queue=a", '"Queue" is not a parameter of listJobs; did you mean queue?'),
        ("/ojs/v1/jobs", "metatenant=a", '"metatenant" is not a parameter of listJobs'),
        ("/ojs/v1/jobs", "=1", '"" is not a parameter of listJobs'),
        ("/ojs/v1/jobs", "state=a&state=a", "state is given twice: leave one out"),
        ("/ojs/v1/jobs", "meta.a=1&meta.a=2", "meta.a is given twice: leave one out"),
        ("/ojs/v1/jobs", "worker=a&worker_id=a", "worker_id is another name of worker, which is given, too: leave one out"),
        ("/ojs/v1/queues/a", "limit=1", '"limit" is not a parameter of getQueue'),
        ("/ojs/v1/jobs", "x" * 500 + "=1", None),
    ],
)
async def test_the_error_says_what_was_meant(http: aiohttp.ClientSession, path: str, query: str, message: str | None) -> None:
    async with http.get(f"{path}?{query}") as answer:
        error = (await answer.json(content_type=None))["error"]
    assert error["code"] == "invalid_request"
    assert len(error["details"]["field"]) <= 64
    if message is not None:
        assert error["message"] == message
    if "is not a parameter" in error["message"]:
        assert "It takes state, queue, type" in error["hint"] or "It takes none." in error["hint"]

"""Every number of every request may be any number that JSON or a query string can hold: none makes a 500.

The requests are those of the walk through the description; what they leave out is taken from the description itself. Each
place gets all numbers where `OJS_EXAMPLES` is `all`, else the next few of them in turn.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from itertools import cycle, islice
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from acceptance.test_description import API, WALKS
from support.described import Described
from support.examples import amount
from support.system import System

NUMBERS: Final = (
    "1" + 400 * "0",
    "-1" + 400 * "0",
    "1" + 5_000 * "0",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-0",
    "NaN",
)
IN_QUERIES: Final = (*NUMBERS, "٣", "1_0", " 3", "0x10", "")
AT_EACH: Final = len(NUMBERS) if amount() == "all" else 2
"""Numbers at each place of a body."""
IN_EACH: Final = len(IN_QUERIES) if amount() == "all" else 1
"""Numbers in each parameter of a query, of which there are twice as many."""
MARK: Final = "\N{REPLACEMENT CHARACTER}number\N{REPLACEMENT CHARACTER}"
DEEPEST: Final = 4
"""Objects inside one another, as far as the description is followed."""

Path = tuple[str | int, ...]


class Call(NamedTuple):
    method: str
    path: str
    body: Any


class Numbers:
    """Sends a walk's requests, and each again with numbers in the place of each of its numbers."""

    def __init__(self, system: System, described: Described) -> None:
        self._system = system
        self._described = described
        self.tried: set[tuple[str, str, Path]] = set()
        self._calls: list[Call] = []
        self._numbers = cycle(NUMBERS)
        self._in_queries = cycle(IN_QUERIES)
        self.failed: list[str] = []
        self.at_once = True
        """Whether a request is varied ahead of itself, where the walk has things in the state for it."""
        self.put_record = system.put_record
        address = urlsplit(system.url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)

    def __call__(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        path = path[1:] if path.startswith("//") else API + path
        call = Call(method, path, body)
        if body is not None and status < 300:
            if self.at_once:
                self._vary(call)
            self._calls.append(call)
        return self._system.request(method, path, body).body

    def close(self) -> None:
        self._connection.close()

    def vary_all(self) -> None:
        """Vary what could not be varied in its turn, as another number had led the walk astray."""
        for call in self._calls:
            self._vary(call)

    def push(self, queue: str = "nu.a", **options: Any) -> str:
        return str(self._system.push("a.b", 1, {"x": None}, queue=queue, **options)["id"])

    def fetch(self, queue: str = "nu.a") -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = self._system.fetch(queue, worker_id="w", count=10, wait_ms=0)
        return jobs

    def fail(self, queue: str = "nu.a", **options: Any) -> str:
        job_id = self.push(queue, retry={"max_attempts": 1}, **options)
        self.fetch(queue)
        body = {"job_id": job_id, "worker_id": "w", "attempt": 1, "error": {"message": "no"}}
        self._system.request("POST", f"{API}/workers/nack", body)
        return job_id

    def _vary(self, call: Call) -> None:
        template = self._described.template(call.path)
        assert template is not None, call.path
        schema = self._described.body_schema(call.method, template)
        for place in dict.fromkeys([*_numbers_in(call.body), *self._numbers_of(schema)]):
            key = (call.method, template, tuple("*" if isinstance(part, int) else part for part in place))
            if key not in self.tried:
                self.tried.add(key)
                text = json.dumps(_with(call.body, place, MARK))
                for number in islice(self._numbers, AT_EACH):
                    self._send(call.method, call.path, text.replace(json.dumps(MARK), number), place)

    def _numbers_of(self, schema: Any, at: Path = ()) -> Iterator[Path]:
        """Return where a request may have a number, by its description."""
        schema = self._described.resolved(schema)
        kinds = schema.get("type", "number")
        if at and {"number", "integer"} & set([kinds] if isinstance(kinds, str) else kinds):
            yield at
        for other in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            yield from self._numbers_of(other, at)
        if len(at) < DEEPEST:
            for name, member in schema.get("properties", {}).items():
                yield from self._numbers_of(member, (*at, name))

    def queries(self) -> None:
        """Send numbers in every parameter of every operation that reads."""
        for (method, template), operation in self._described.operations.items():
            if method != "GET" or "/ws" in template or "stream" in template or template.endswith("/events"):
                continue
            path = template
            for parameter in operation.get("parameters", ()):
                named = self._described.resolved(parameter)
                path = path.replace(f"{{{named['name']}}}", "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f")
            for parameter in operation.get("parameters", ()):
                named = self._described.resolved(parameter)
                for number in islice(self._in_queries, IN_EACH):
                    if named["in"] == "query":
                        self._send(method, f"{path}?{named['name']}={quote(number)}", None, (named["name"],))
                    elif named["in"] == "path":
                        where = template.replace(f"{{{named['name']}}}", quote(number) or "-")
                        self._send(method, where, None, (named["name"],))

    def _send(self, method: str, path: str, body: str | None, place: Path) -> None:
        data = None if body is None else body.encode()
        self._connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status in {500, 501, 502}:
            sent = (body or "")[:300]
            self.failed.append(f"{method} {path[:150]} at {place}: {answer.status} {text[:200]!r} for {sent}")


def _numbers_in(body: Any, at: Path = ()) -> Iterator[Path]:
    """Return where a request has a number."""
    if isinstance(body, dict):
        for name, member in body.items():
            yield from _numbers_in(member, (*at, name))
    elif isinstance(body, list):
        for index, member in enumerate(body):
            yield from _numbers_in(member, (*at, index))
    elif isinstance(body, int | float) and not isinstance(body, bool):
        yield at


def _with(body: Any, place: Path, value: Any) -> Any:
    """Return a request with a value in a place, which is made where it isn't there."""
    changed = deepcopy(body)
    within = changed
    for part in place[:-1]:
        if isinstance(within, dict) and not isinstance(within.get(part), dict | list):
            within[part] = {}
        within = within[part]
    if isinstance(within, Mapping | list):
        within[place[-1]] = value  # type: ignore[index]
    return changed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_number_of_any_request_makes_a_500(system: System) -> None:
    numbers = Numbers(system, Described.by(system.url))
    for walk in WALKS:
        with suppress(AssertionError, LookupError, TypeError, ValueError):
            walk(numbers)  # type: ignore[arg-type]
    system.reset()
    numbers.at_once = False
    for walk in WALKS:
        walk(numbers)  # type: ignore[arg-type]
    numbers.vary_all()
    numbers.queries()
    numbers.close()
    assert len(numbers.tried) > 150
    assert numbers.failed == []

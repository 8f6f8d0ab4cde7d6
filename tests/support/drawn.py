"""Requests drawn from the server's own description: what clients may send, and a little of what they may not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import aiohttp
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from support.described import Described
from support.examples import examples
from support.guarded import Guarded
from support.system import Answer, is_behind
from support.waiting import eventually

_DEEPEST: Final = 4
_WRONG: Final = st.sampled_from([None, -1, 0, 1e308, True, "", "*", "a b", "\u2028", [], {}, [None], {"x": None}])
_TEXTS: Final = st.sampled_from(
    ["", "1", "50", "-1", "true", "PT1S", "2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z", "*", "a.b", "x" * 300, "é", "%00"]
)
_AGAIN_S: Final = 0.25
_ONE_IN: Final = 12
"""How seldom something is sent that is wrong."""

Pools = Mapping[str, Sequence[Any]]
"""What members and parameters of a name are mostly drawn from."""


class Drawn(NamedTuple):
    """A request, and the operation that it is meant for."""

    operation: str
    need: str
    method: str
    path: str
    body: Any = None

    @property
    def sent(self) -> str:
        """All that the server is told by it."""
        return f"{self.path} {self.body!r}"


def asked(whole: int) -> settings:
    """How examples are tried that ask a server: `examples(whole)` of them. One that fails isn't made smaller, which takes long
    and may not fail again.
    """
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(
        max_examples=examples(whole, least=2, costly=True),
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )


def requests(described: Described, pools: Pools, *, wanted: Callable[[str, str], bool]) -> st.SearchStrategy[Drawn]:
    """Requests of all operations whose method and id are `wanted`."""
    return st.one_of(
        [
            _request(described, pools, method, path)
            for (method, path), operation in described.operations.items()
            if wanted(method, operation["operationId"])
        ]
    )


@st.composite
def _request(draw: st.DrawFn, described: Described, pools: Pools, method: str, template: str) -> Drawn:
    operation = described.operations[method, template]
    values = _Values(draw, described, pools)
    path, query = template, {}
    for parameter in map(described.resolved, operation.get("parameters", ())):
        name = parameter["name"]
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(str(values.of(parameter["schema"], name)) or "-", safe=""))
        elif parameter["in"] == "query" and draw(st.integers(0, 3)) == 0:
            query[name] = values.of(parameter["schema"], name)
    if query:
        path += "?" + urlencode(query)
    schema = described.body_schema(method, template)
    body = values.of(schema, "") if method not in {"GET", "DELETE"} and schema.get("type") != "null" else None
    return Drawn(operation["operationId"], operation["x-permission"], method, path, body)


class _Values:
    """Values as schemas have them, most of the time."""

    def __init__(self, draw: st.DrawFn, described: Described, pools: Pools) -> None:
        self._draw = draw
        self._described = described
        self._pools = pools

    def of(self, schema: Mapping[str, Any], name: str, depth: int = 0) -> Any:
        """One value of a member or parameter of this name."""
        draw = self._draw
        chance = draw(st.integers(0, _ONE_IN - 1))
        if name in self._pools and chance != 1:
            return draw(st.sampled_from(self._pools[name]))
        if chance == 0:
            return draw(_WRONG)
        schema = self._described.resolved(dict(schema))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return draw(st.sampled_from(schema["enum"]))
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.of(draw(st.sampled_from(schema[several])), name, depth)
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
        return self._of_kind(kind, schema, name, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        draw = self._draw
        match kind:
            case "integer":
                return draw(st.integers(schema.get("minimum", -1), min(schema.get("maximum", 100), 1_000)))
            case "number":
                return draw(st.sampled_from([0, 0.5, 1, 60]))
            case "boolean":
                return draw(st.booleans())
            case "null":
                return None
            case "array":
                size = 0 if depth > _DEEPEST else draw(st.integers(min(schema.get("minItems", 0), 1), 2))
                return [self.of(schema.get("items", {}), name.removesuffix("s"), depth + 1) for _ in range(size)]
            case "object":
                return self._object(schema, depth)
            case _:
                return draw(_TEXTS)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        found = {}
        for name, member in schema.get("properties", {}).items():
            if name in required or (depth <= _DEEPEST and self._draw(st.integers(0, 2)) == 0):
                found[name] = self.of(member, name, depth + 1)
        return found


class Asker:
    """Sends requests of one key, all over the same connections, and reads their answers."""

    def __init__(self, runner: asyncio.Runner, guarded: Guarded, session: aiohttp.ClientSession) -> None:
        self._runner = runner
        self._guarded = guarded
        self._session = session

    def __call__(self, drawn: list[Drawn]) -> list[tuple[Answer, str]]:
        """Their answers, decoded and as they are. Of one that goes on, nothing is read.

        Whoever reads what the index can't tell yet asks again, as clients do.
        """
        return self._runner.run(self._all(drawn))

    async def _all(self, drawn: list[Drawn]) -> list[tuple[Answer, str]]:
        return await asyncio.gather(*map(self._one, drawn))

    async def _one(self, one: Drawn) -> tuple[Answer, str]:
        async def told() -> tuple[Answer, str] | None:
            found = await self._sent(one)
            return None if one.method == "GET" and is_behind(found[0]) else found

        found: tuple[Answer, str] | None = await eventually(told, every=_AGAIN_S)
        assert found is not None
        return found

    async def _sent(self, one: Drawn) -> tuple[Answer, str]:
        body = None if one.body is None else json.dumps(one.body).encode()
        headers = {"Content-Type": "application/openjobspec+json", "Accept": "application/openjobspec+json"}
        url = self._guarded.url + one.path
        async with self._session.request(one.method, url, data=body, headers=headers) as answer:
            told = "" if answer.content_type == "text/event-stream" else await answer.text()
            decoded = json.loads(told) if told and "json" in answer.content_type else None
            return Answer(answer.status, decoded, answer.headers), told


_VOLATILE: Final = re.compile(
    r'"(?:request_id|uptime_seconds|uptime|computed_at|server_time|timestamp|as_of|generated_at|from|to|cursor|next_cursor)":'
    r'(?:"[^"]*"|[\d.]+|null)'
    r"|beyond the last event, \d+"
)


def steady(text: str) -> str:
    """An answer without what differs each time that it is given, and without cursors: events of all are counted in them."""
    return _VOLATILE.sub('""', text)

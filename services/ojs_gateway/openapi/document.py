"""The OpenAPI 3.1 document, made from the routes and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import msgspec

from ojs_engine.api.common import JOB_ID, QUEUE_NAME, SHORT
from ojs_engine.api.route import Other, Parameter, Part, Route
from ojs_engine.api.schema import TEXT, Named, Schema, answer_of, either, whole
from ojs_engine.base.errors import CODES
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.errors import ErrorAnswer, wire_code
from ojs_engine.wire.media_types import JSON_TYPE, OJS_TYPE
from ojs_gateway.openapi.queries import checks

_WORD: Final = re.compile(r"[a-z0-9]+")
_BASE: Final = "/ojs/v1"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_IN_PATHS: Final[dict[str, tuple[Schema, str]]] = {
    "job_id": (JOB_ID, "The job's id."),
    "attempt": (whole(1), "The number of the attempt, from 1."),
    "worker_id": (SHORT, "What the worker calls itself."),
    "workflow_id": (JOB_ID, "The workflow's id."),
    "queue": (QUEUE_NAME, "The queue's name."),
    "schema": (
        {"type": "string", "minLength": 1, "maxLength": 2_048},
        "The job type; by itself under /schemas also the schema's URI, with `:` and `/` encoded.",
    ),
    "version": (SHORT, "The version."),
    "key_id": (SHORT, "The key's id, the part of it behind `ojs_sk_`."),
    "key": ({"type": "string", "minLength": 1, "maxLength": 255}, "The limit's key."),
    "subscription": (SHORT, "The subscription's id."),
    "delivery": (SHORT, "The delivery's id."),
}
_ALWAYS: Final = (
    "unsupported",
    "extension_not_supported",
    "permission_denied",
    "backend_error",
    "unreadable_record",
    "backend_unavailable",
)
"""What any request may meet."""
_WITH_BODY: Final = ("invalid_payload", "invalid_request", "request_timeout", "envelope_too_large", "unsupported_compression")
_ASK_AGAIN: Final = {408, 429, 503}
_OF_COOKIE: Final = (
    "A browser that has signed in has it. Its name is `ojs_session_`, the namespace, `_` and the port where that is no "
    "default, and `.` and the segments of the path prefix."
)
_HEADERS: Final = {
    "RequestId": {"description": "Names the request in the server's log; a client may choose it.", "schema": TEXT},
    "RetryAfter": {"description": "Seconds to wait before the next try.", "schema": {"type": "integer", "minimum": 0}},
}

_SCHEMES: Final = {
    "key": {"type": "http", "scheme": "bearer", "description": "A key, once there are any (docs/security.md)."},
    "session": {"type": "apiKey", "in": "cookie", "name": "ojs_session_ojs", "description": _OF_COOKIE},
}
_SECURITY: Final[list[dict[str, list[str]]]] = [{"key": []}, {"session": []}]


class OperationPlace(NamedTuple):
    """One of a route's names; parameters stand in braces."""

    method: str
    path: str
    operation_id: str


def places(route: Route) -> Iterator[OperationPlace]:
    """Where the route is, its own place first."""
    return iter(_places(route.paths, "" if route.absolute else _BASE))


@cache
def _places(paths: tuple[str, ...], base: str) -> tuple[OperationPlace, ...]:
    found: list[OperationPlace] = []
    for place in paths:
        method, below, *named = place.split(" ")
        words = "".join(word.capitalize() for word in _WORD.findall(below))
        found.append(OperationPlace(method, base + below, named[0] if named else f"{found[0].operation_id}At{words}"))
    return tuple(found)


@cache
def parameters_of(path: str) -> tuple[str, ...]:
    """The names in a path, in order."""
    return tuple(_PARAMETER.findall(path))


def document(parts: Sequence[Part], limits: PayloadLimits, *, test_mode: bool, prefix: str = "") -> bytes:
    """The document as JSON. It has each path of each route, those of test mode only where that is on."""
    paths: dict[str, dict[str, Any]] = {}
    components = _Components()
    for part in parts:
        for route in part.routes:
            if route.test_only and not test_mode:
                continue
            own, *others = places(route)
            for place in (own, *others):
                paths.setdefault(place.path, {})[place.method.lower()] = _operation(part, route, place, own, components)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "ojs-nats",
                "summary": "An Open Job Spec server on NATS JetStream",
                "version": version("ojs-nats-server"),
                "description": _about(limits),
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "externalDocs": {"description": "The specification", "url": "https://openjobspec.org"},
            "servers": [{"url": prefix or "/", "description": "The server that this document comes from"}],
            "tags": [{"name": part.name, "description": part.about} for part in parts],
            "paths": paths,
            "components": components.view,
        }
    )


def _about(limits: PayloadLimits) -> str:
    return f"""\
Bodies are JSON, sent as `{OJS_TYPE}` or `{JSON_TYPE}`, as they are or with `Content-Encoding: gzip` or `deflate`, up to \
{limits.max_body_bytes} bytes. Answers come as `{OJS_TYPE}`, or as `{JSON_TYPE}` where `Accept` asks for it. A member that is \
null in a request counts as left out. Answers may get more members with later versions.

Every answer has `OJS-Version`, `X-Request-Id` and `X-Content-Type-Options`. What answers GET answers HEAD, too; a method that \
a path doesn't have is answered 405 with `Allow`. A query parameter that an operation doesn't have is refused, and so is one \
that is given twice where one counts; `_`, `cb` and those that begin with `ext_` or `x_` pass. `/v1/…` is another name of \
`/ojs/v1/…`. What the server can do stands in `/ojs/manifest`, its limits do, too.
"""


def _operation(part: Part, route: Route, place: OperationPlace, own: OperationPlace, components: _Components) -> dict[str, Any]:
    about = [route.about] if route.about else []
    view: dict[str, Any] = {"tags": [part.name], "summary": route.summary, "operationId": place.operation_id}
    if place != own:
        view["x-another-name-of"] = f"{own.method} {own.path}"
        about.insert(0, f"Another name of `{own.method} {own.path}`.")
    if route.test_only:
        about.insert(0, "In test mode only.")
        view["x-test-mode-only"] = True
    view["x-permission"] = route.need
    if route.besides:
        view["x-permissions-besides"] = list(route.besides)
    view["security"] = [] if route.need == "nothing" else _SECURITY
    if about:
        view["description"] = " ".join(about)
    parameters = [_in_path(part, found) for found in parameters_of(place.path)]
    parameters += [_parameter(parameter) for parameter in route.query]
    if parameters:
        view["parameters"] = components.placed(parameters)
    title = own.operation_id[0].upper() + own.operation_id[1:]
    if route.body is not None:
        body = components.named(route.body, f"{title}Body")
        required = bool(isinstance(route.body, dict) and route.body.get("required"))
        view["requestBody"] = {"required": required, "content": _json(body)}
    responses: dict[str, Any] = {}
    refusals = dict(_refusals(route, place))
    for status, answer in route.answers.items():
        suffix = "Answer" if len(route.answers) == 1 else f"Answer{status}"
        told = answer
        if status in refusals and not isinstance(answer, Other):  # an answer about each item, or a refusal of all
            told = either(answer, ErrorAnswer)
        responses[str(status)] = _answer(status, told, f"{title}{suffix}", components)
    if route.also is not None and route.also.media_type is not None:
        responses["200"]["content"] |= _text(route.also.media_type)
    for status, codes in refusals.items():
        if status not in route.answers:
            responses[str(status)] = components.refusal(status, codes)
    view["responses"] = dict(sorted(responses.items()))
    return view


def _in_path(part: Part, name: str) -> dict[str, Any]:
    own = next((each for each in part.in_paths if each.name == name), None)
    schema, about = _IN_PATHS[name] if own is None else (own.schema, own.about)
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": about}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    view = {"name": parameter.name, "in": parameter.place, "schema": parameter.schema}
    return view | ({"description": parameter.about} if parameter.about else {})


def _answer(status: int, answer: Schema | Other, name: str, components: _Components) -> dict[str, Any]:
    if not isinstance(answer, Other):
        return {"description": HTTPStatus(status).phrase, "content": _json(components.named(answer, name))}
    view: dict[str, Any] = {"description": answer.about}
    if answer.media_type is not None:
        view["content"] = _text(answer.media_type)
    return view


def _text(media_type: str) -> dict[str, Any]:
    return {media_type: {"schema": TEXT}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {OJS_TYPE: {"schema": schema}, JSON_TYPE: {"schema": schema}}


def _refusals(route: Route, place: OperationPlace) -> Iterable[tuple[int, tuple[str, ...]]]:
    """The codes that the route may be refused with, by status."""
    codes = list(route.errors) + list(_ALWAYS)
    if route.need != "nothing":
        codes.append("unauthenticated")
    if route.need == "enqueue" or route.streams:
        codes.append("rate_limited")
    if route.body is not None or place.method != "GET":
        codes += _WITH_BODY
    elif checks(route, place.method) or "{" in place.path:
        codes.append("invalid_request")
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(CODES[code].status, []).append(code)
    return [(status, tuple(sorted(listed))) for status, listed in found.items()]


class _Components:
    """What is said once and referred to."""

    def __init__(self) -> None:
        self._schemas: dict[str, Any] = {}
        self._sources: dict[str, Any] = {}
        self._responses: dict[str, Any] = {}

    @property
    def view(self) -> dict[str, Any]:
        schemas, responses = dict(sorted(self._schemas.items())), dict(sorted(self._responses.items()))
        return {"schemas": schemas, "responses": responses, "headers": _HEADERS, "securitySchemes": _SCHEMES}

    def named(self, schema: Schema, name: str) -> dict[str, Any]:
        """A reference to the schema, which stands under `name` if it has none of its own."""
        placed: dict[str, Any] = self.placed(Named(name, schema) if isinstance(schema, dict) else schema)
        return placed

    def placed(self, node: Any) -> Any:
        """The same with references in place of what has a name."""
        if isinstance(node, type):
            node = answer_of(node)
        if isinstance(node, Named):
            self._place(node)
            return {"$ref": f"#/components/schemas/{node.name}"}
        if isinstance(node, dict):
            return {key: self.placed(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self.placed(value) for value in node]
        return node

    def _place(self, node: Named) -> None:
        if node.name not in self._schemas:
            self._sources[node.name] = node.schema
            self._schemas[node.name] = {}  # holds the place of a schema that refers to itself
            self._schemas[node.name] = self.placed(node.schema)
        elif self._sources[node.name] != node.schema:
            raise TypeError(f"two schemas are called {node.name}")

    def refusal(self, status: int, codes: tuple[str, ...]) -> dict[str, Any]:
        """A reference to the answer that has one of these codes."""
        name = "-".join(codes)
        if name not in self._responses:
            headers = {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}}
            if status in _ASK_AGAIN:
                headers["Retry-After"] = {"$ref": "#/components/headers/RetryAfter"}
            told = [f"`{wire_code(code)}`: {CODES[code].hint}" for code in codes]
            content = _json(self.placed(ErrorAnswer))
            self._responses[name] = {"description": " ".join(dict.fromkeys(told)), "headers": headers, "content": content}
        return {"$ref": f"#/components/responses/{name}"}

"""A description in OpenAPI as a text that is easy to compare: an operation or a schema is a block, a fact of it a line.

`PYTHONPATH=tests .venv/bin/python -m support.openapi_text > tests/unit/gateway/openapi.txt` renews the snapshot.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import document
from ojs_gateway.routes import parts

RENEW: Final = "PYTHONPATH=tests .venv/bin/python -m support.openapi_text > tests/unit/gateway/openapi.txt"
_REFERENCE: Final = "#/components/"
_JSON: Final = "application/json"
_OJS: Final = "application/openjobspec+json"

_Node = Mapping[str, Any]


def current() -> str:
    """Return the text of what gateways of this version serve, in test mode, without the version's number."""
    described = json.loads(document(parts(FEATURES), DEFAULT_LIMITS, test_mode=True))
    del described["info"]["version"]  # or each release would change it
    return openapi_text(described)


def openapi_text(described: _Node) -> str:
    """Return a text that has all of a document: two documents that differ in more than order have different ones.

    The order of lists counts, that of members doesn't. Another name of an operation has only what differs from it.
    """
    rest = dict(described)
    paths, components = rest.pop("paths"), rest.pop("components")
    blocks = [[f"document {name}", *_facts(value)] for name, value in sorted(rest.items())]
    operations = {f"{method.upper()} {path}": one for path, methods in paths.items() for method, one in methods.items()}
    for place, operation in sorted(operations.items(), key=lambda entry: entry[0].split(" ")[::-1]):
        own = operations.get(operation.get("x-another-name-of", ""))
        blocks.append(_operation(place, operation if own is None else _beside(own, operation)))
    for kind, members in sorted(components.items()):
        blocks += [[f"{kind}/{name}", *_component(one)] for name, one in sorted(members.items())]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _beside(own: _Node, other: _Node) -> _Node:
    """Return what another name of an operation has that the operation hasn't; what it lacks is None."""
    return {key: other.get(key) for key in {*own, *other} if own.get(key) != other.get(key)}


def _operation(place: str, operation: _Node) -> list[str]:
    rest = dict(operation)
    lines = [f"{place}  {rest.pop('operationId', '')}"]
    parameters, body = rest.pop("parameters", None) or (), rest.pop("requestBody", None)
    responses = rest.pop("responses", None) or {}
    lines += _facts(rest)
    for parameter in parameters:
        about = dict(parameter)
        lines.append(f"  {about.pop('in')} {about.pop('name')}: {_schema(about.pop('schema', {}))}{_more(about)}")
    if body is not None:
        about = dict(body)
        lines.append(f"  body: {_content(about.pop('content'))}{_more(about)}")
    lines += [f"  {status}: {_response(response)}" for status, response in sorted(responses.items())]
    return lines


def _response(response: _Node) -> str:
    rest = dict(response)
    if "content" not in rest:
        return _schema(rest)
    return _content(rest.pop("content")) + _more(rest)


def _content(content: _Node) -> str:
    """Return what a body is by its media types; the two of a job's document, when they agree, are `json`."""
    rest = dict(content)
    if set(rest) >= {_JSON, _OJS} and rest[_JSON] == rest[_OJS]:
        rest["json"] = rest.pop(_JSON)
        del rest[_OJS]
    return ", ".join(f"{name} {_media(about)}" for name, about in sorted(rest.items()))


def _media(about: _Node) -> str:
    rest = dict(about)
    return _schema(rest.pop("schema", {})) + _more(rest)


def _component(node: _Node) -> Iterator[str]:
    rest = dict(node)
    properties, required = rest.pop("properties", {}), rest.pop("required", [])
    yield from _facts(rest)
    if strays := sorted(set(required) - set(properties)):
        yield f"  required: {_plain(strays)}"
    for name, schema in sorted(properties.items()):
        yield f"  .{name}{'!' if name in required else ''}: {_schema(schema)}"


def _facts(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (f"  {name}: {_schema(value)}" for name, value in sorted(node.items()))
    elif isinstance(node, list):
        yield from (f"  - {_schema(value)}" for value in node)
    else:
        yield f"  {_schema(node)}"


def _schema(node: object) -> str:
    """Return a part on one line: what it refers to by its name alone."""
    if isinstance(node, dict):
        if set(node) == {"$ref"}:
            return str(node["$ref"]).removeprefix(_REFERENCE)
        return "{" + ", ".join(f"{name}: {_schema(value)}" for name, value in sorted(node.items())) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(_schema, node)) + "]"
    return _plain(node)


def _more(rest: _Node) -> str:
    return f"  {_schema(dict(rest))}" if rest else ""


def _plain(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one 1; which of the two Python has here depends on what was imported first
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(current())

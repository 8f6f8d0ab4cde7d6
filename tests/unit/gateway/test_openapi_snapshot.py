"""The description of the API is the one in openapi.txt: a change of it shows in the diff of its commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

from support.openapi_text import RENEW, current, openapi_text

SNAPSHOT: Final = Path(__file__).with_name("openapi.txt")
SHOWN: Final = 200
"""Lines of the difference."""
NEEDED = {"paths", "get", "components", "schemas", "info", "in", "name", "content"}
NEEDED |= {"parameters", "properties", "schema", "responses"}
"""Members that are not left out here: an empty one says the same as none."""
BODY: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}
SMALL: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "t"},
    "paths": {
        "/a/{id}": {
            "get": {
                "operationId": "getA",
                "tags": ["A"],
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                "requestBody": {"required": False, "content": BODY},
                "responses": {
                    "200": {"description": "OK", "content": {"text/plain": {"schema": {"minLength": 0}}}},
                    "404": {"$ref": "x"},
                },
            }
        },
        "/b/{id}": {
            "get": {
                "operationId": "getB",
                "tags": ["A"],
                "x-another-name-of": "GET /a/{id}",
                "responses": {"2": {"$ref": "x"}},
            }
        },
    },
    "components": {"schemas": {"A": {"type": "object", "properties": {"b": {"maximum": 1}}, "required": ["b", "c"]}}},
}


def changed(node: Any) -> Iterator[Any]:
    """Yield copies of a document, each of which has another leaf or lacks a member that it needn't have."""
    if not isinstance(node, dict | list):
        yield f"another {node}"
        return
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        if name not in NEEDED:
            less = deepcopy(node)
            del less[name]
            yield less
        for other in changed(value):
            copy = deepcopy(node)
            copy[name] = other
            yield copy


def test_the_api_is_described_as_in_the_snapshot() -> None:
    then, now = SNAPSHOT.read_text(encoding="utf-8").splitlines(), current().splitlines()
    lines = list(unified_diff(then, now, "openapi.txt", "now", lineterm="", n=1))
    shown = "\n".join(lines[:SHOWN])
    assert then == now, f"The API is described differently. If that is meant, renew the snapshot:\n{RENEW}\n{shown}"


def test_each_difference_of_two_documents_shows() -> None:
    texts = [openapi_text(SMALL), *map(openapi_text, changed(SMALL))]
    assert len(texts) > 30
    assert [text for text, times in Counter(texts).items() if times > 1] == []

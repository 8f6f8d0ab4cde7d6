"""The table of the specification's endpoints and of this server's, for the documentation.

`python -m script.pages.endpoints > docs/reference/endpoints.md` renews it. With the address of a running gateway
(`… http://127.0.0.1:8080`) it is made from what that one says of itself.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import msgspec
from msgspec import Struct

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import document
from ojs_gateway.routes import parts

_DOCUMENT: Final = "/ojs/v1/openapi.json"

INSTEAD: Final[dict[str, str]] = {}
"""Why an operation of the specification is not served: what there is for it."""


class Specification(Struct, frozen=True):
    """The specification's own list; each operation is an id, a method and a path."""

    version: str
    commit: str
    date: str
    operations: list[tuple[str, str, str]]


class _Operation(Struct, frozen=True):
    method: str
    path: str
    summary: str
    part: str
    other_names: list[str]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def specification() -> Specification:
    """As it was when it was last looked at."""
    text = Path(__file__).with_name("specification.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Specification)


def own_description(url: str | None = None) -> dict[str, Any]:
    """The OpenAPI document of the gateway at `url`, or the one that any gateway of this version has."""
    if url is None:
        made = document(parts(FEATURES), DEFAULT_LIMITS, test_mode=False)
    else:
        with urlopen(url.rstrip("/") + _DOCUMENT, timeout=10) as answer:  # noqa: S310 - whoever runs this names the address
            made = answer.read()
    found: dict[str, Any] = msgspec.json.decode(made)
    return found


def reference(described: dict[str, Any]) -> str:
    """The page in Markdown. What is there in test mode only is left out."""
    specified = specification()
    served = list(_served(described))
    by_place = {_place(operation.method, operation.path): operation for operation in served}
    rows = [_row(entry, by_place.get(_place(entry[1], entry[2]))) for entry in specified.operations]
    number = sum(_place(method, path) in by_place for _, method, path in specified.operations)
    return f"""\
# Endpoints

The description of all endpoints, for programs, is at `{_DOCUMENT}` of every gateway ([api.md](../api.md)). This page
compares it with `openapi.yaml` of the specification (github.com/openjobspec/spec), version {specified.version},
commit `{specified.commit[:12]}` of {specified.date}. `/v1/…` is another name of `/ojs/v1/…` throughout.

## Of the specification

{number} of {len(rows)} operations are served.

| Operation | Specification | Served here as |
|---|---|---|
{_lines(rows)}

## Beyond it

Operations that other documents of the specification describe, that the official SDKs, the `ojs` CLI or the admin UI call,
or that are this server's own.
{"".join(_beyond(described, served, specified))}
This page is made by `python -m script.pages.endpoints`.
"""


def _served(described: dict[str, Any]) -> Iterator[_Operation]:
    """Each operation with its other names; what is another name of one is there itself, too."""
    every = [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
        if not operation.get("x-test-mode-only")
    ]
    others: dict[str, list[str]] = {}
    for method, path, operation in every:
        if (first := operation.get("x-another-name-of")) is not None:
            others.setdefault(first, []).append(f"{method} {path}")
    for method, path, operation in every:
        first = operation.get("x-another-name-of")
        names = [first, *others[first]] if first is not None else others.get(f"{method} {path}", [])
        yield _Operation(
            method=method,
            path=path,
            summary=operation["summary"],
            part=operation["tags"][0],
            other_names=[name for name in names if name != f"{method} {path}"],
        )


def _place(method: str, path: str) -> tuple[str, str]:
    """Method and path, whatever its parameters are called."""
    return method, re.sub(r"\{\w+\}", "{}", path)


def _row(entry: tuple[str, str, str], operation: _Operation | None) -> str:
    name, method, path = entry
    here = f"no; {INSTEAD[name]}" if operation is None else f"`{operation.name}`: {operation.summary}"
    return f"| `{name}` | `{method} {path}` | {here} |"


def _beyond(described: dict[str, Any], served: Sequence[_Operation], specified: Specification) -> Iterator[str]:
    """A table for each part. An operation is listed by its first name that the specification doesn't have."""
    known = {_place(method, path) for _, method, path in specified.operations}
    listed: set[str] = set()
    for tag in described["tags"]:
        rows = []
        for operation in served:
            if operation.part != tag["name"] or operation.name in listed or _place(operation.method, operation.path) in known:
                continue
            listed.update([operation.name, *operation.other_names])
            also = ", ".join(f"`{name}`" for name in operation.other_names)
            rows.append(f"| `{operation.name}` | {operation.summary} | {also} |")
        if rows:
            table = _lines(["| Operation | What it does | Also as |", "|---|---|---|", *rows])
            yield f"\n### {tag['name']}\n\n{tag['description']}.\n\n{table}\n"


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(reference(own_description(*sys.argv[1:2])))

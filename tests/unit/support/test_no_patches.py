"""Tests ask for what is promised: what they need otherwise, times or the network's trouble, constructors take (ADR 034)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[2]
OUTSIDE: Final = frozenset({"asyncio", "resource", "socket", "sys", "app", "jobs.app", "loop", "supply_chain"})
"""The world outside, a script, and settings of an app that an example has made: `app.url` is meant to be set."""
MOCK: Final = "unittest.mock"


def patched(source: str) -> Iterator[str]:
    """What a module replaces in the product by `setattr` or `unittest.mock`: the targets, as they are written."""
    if "setattr" not in source and "mock" not in source:  # nearly all, and parsing takes ten milliseconds each
        return
    nodes = list(ast.walk(ast.parse(source)))
    names = dict(mock_names(nodes))
    for node in nodes:
        if isinstance(node, ast.Call) and replaces(node.func, names):
            first = next(iter((*node.args, *(keyword.value for keyword in node.keywords))), node)
            target = ast.unparse(first)
            if target not in OUTSIDE:
                yield target


def mock_names(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """What a module calls `unittest.mock` and what it has of it, with the full names."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                found = [(alias.asname, alias.name) for alias in names if alias.asname]
            case ast.ImportFrom(module=str(module), names=names):
                found = [(alias.asname or alias.name, f"{module}.{alias.name}") for alias in names]
            case _:
                continue
        yield from ((name, full) for name, full in found if full.startswith(MOCK))


def replaces(function: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether a function that is called is a `setattr`, or one of those that patch: `patch`, `patch.object` …"""
    if isinstance(function, ast.Attribute) and function.attr == "setattr":
        return True
    begin, *rest = ast.unparse(function).split(".")
    written = ".".join([names.get(begin, begin), *rest])
    return written == f"{MOCK}.patch" or written.startswith(f"{MOCK}.patch.")


def test_no_test_replaces_a_part_of_the_product() -> None:
    found = {str(path.relative_to(TESTS)): list(patched(path.read_text())) for path in TESTS.rglob("*.py")}
    assert {path: targets for path, targets in found.items() if targets} == {}, (
        "give the component's constructor what the test needs (its timings, a clock, a connection: tests/support/outside.py)"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('monkeypatch.setattr("ojs_engine.base.loops._WAIT_S", 0)', ["'ojs_engine.base.loops._WAIT_S'"]),
        ("monkeypatch.setattr(module, '_WAIT_S', 0)", ["module"]),
        ("patch.setattr(store.jobs, 'push', away)", ["store.jobs"]),
        ("monkeypatch.setattr(socket, 'getaddrinfo', look_up)", []),
        ("monkeypatch.setenv('OJS_URL', url)", []),
        ("from unittest.mock import patch\nwith patch.object(module, '_WAIT_S', 0): ...", ["module"]),
        (
            "from unittest.mock import patch\nwith patch('ojs_engine.base.loops._WAIT_S', 0): ...",
            ["'ojs_engine.base.loops._WAIT_S'"],
        ),
        ("from unittest.mock import patch\n@patch.multiple(module, _WAIT_S=0)\ndef test(): ...", ["module"]),
        ("from unittest.mock import patch as other\nother.dict(module.NAMES, a='b')", ["module.NAMES"]),
        ("from unittest import mock\nmock.patch.object(target=module, attribute='_WAIT_S')", ["module"]),
        ("from unittest import mock as m\nm.patch.object(module, '_WAIT_S', 0)", ["module"]),
        ("import unittest.mock\nunittest.mock.patch.object(module, '_WAIT_S', 0)", ["module"]),
        ("import unittest.mock as m\nm.patch.object(module, '_WAIT_S', 0)", ["module"]),
        ("from unittest.mock import patch\npatch.object(socket, 'getaddrinfo', look_up)", []),
        ("from unittest.mock import ANY\nawait session.patch(url, json=ANY)", []),
    ],
)
def test_a_patch_is_seen(line: str, expected: list[str]) -> None:
    assert list(patched(line)) == expected

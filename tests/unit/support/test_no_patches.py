"""Tests ask for what is promised: what they need otherwise, times or the network's trouble, constructors take (ADR 071)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[2]
OUTSIDE: Final = frozenset({"asyncio", "resource", "socket", "sys", "app", "jobs.app", "loop", "supply_chain"})
"""The world outside, a script, and settings of an app that an example has made: `app.url` is meant to be set."""


def patched(source: str) -> Iterator[str]:
    """What a module replaces in the product by `setattr`: the targets, as they are written."""
    if "setattr" not in source:  # nearly all, and parsing takes ten milliseconds each
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            target = ast.unparse(node.args[0])
            if target not in OUTSIDE:
                yield target


def test_no_test_replaces_a_part_of_the_product() -> None:
    found = {str(path.relative_to(TESTS)): list(patched(path.read_text())) for path in TESTS.rglob("*.py")}
    assert {path: targets for path, targets in found.items() if targets} == {}, (
        "give the component's constructor what the test needs (its timings, a clock, a connection: tests/support/outside.py)"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('monkeypatch.setattr("ojs_core.base.loops._WAIT_S", 0)', ["'ojs_core.base.loops._WAIT_S'"]),
        ("monkeypatch.setattr(module, '_WAIT_S', 0)", ["module"]),
        ("patch.setattr(store.jobs, 'push', away)", ["store.jobs"]),
        ("monkeypatch.setattr(socket, 'getaddrinfo', look_up)", []),
        ("monkeypatch.setenv('OJS_URL', url)", []),
    ],
)
def test_a_patch_is_seen(line: str, expected: list[str]) -> None:
    assert list(patched(line)) == expected

"""Tests ask for what is promised: what they need otherwise, times or the network's trouble, constructors take (ADR 071)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[2]
OUTSIDE: Final = frozenset({"asyncio", "resource", "socket", "sys", "app", "jobs.app", "loop", "supply_chain"})
"""The world outside, a script, and settings of an app that an example has made: `app.url` is meant to be set."""
LEFT: Final = {
    "integration/projector/test_answers.py": 1,
    "integration/runtime/test_timekeeping.py": 1,
    "integration/store/test_outage.py": 1,
    "integration/store/workers/test_presence.py": 2,
    "integration/telemetry/test_metrics.py": 1,
    "unit/gateway/test_edge.py": 1,
    "unit/telemetry/metrics/test_counting.py": 1,
    "unit/telemetry/test_transitions.py": 1,
}
"""Patches of the product from before there was this rule, by file: a number only ever becomes smaller."""


def patched(source: str) -> Iterator[str]:
    """What a module replaces in the product by `setattr`: the targets, as they are written."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            target = ast.unparse(node.args[0])
            if target not in OUTSIDE:
                yield target


def test_nothing_new_replaces_a_part_of_the_product() -> None:
    found = {
        str(path.relative_to(TESTS)): sum(1 for _ in patched(path.read_text())) for path in sorted(TESTS.rglob("test_*.py"))
    }
    found |= {str(path.relative_to(TESTS)): sum(1 for _ in patched(path.read_text())) for path in TESTS.rglob("conftest.py")}
    assert Counter(found) == Counter(LEFT), (
        "give the component's constructor what the test needs (its timings, a clock, a connection: tests/support/outside.py); "
        "where there is less left than LEFT says, make its number smaller"
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

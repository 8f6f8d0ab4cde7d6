"""Which failed tests are tried once more (script/test_again.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_again", ROOT / "script/test_again.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_few_tests_are_tried_again(script: ModuleType) -> None:
    assert script.chosen(["tests/acceptance/test_events.py::test_a", "tests/unit/test_b.py::test_b"]) is None


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        ([], "the run itself has failed"),
        ([f"tests/unit/test_a.py::test_{number}" for number in range(11)], "11 tests have failed"),
    ],
)
def test_many_failures_count_at_once(script: ModuleType, failed: list[str], why: str) -> None:
    assert why in script.chosen(failed)


def test_a_promise_under_faults_has_to_hold_three_times(script: ModuleType) -> None:
    failed = ["tests/faults/test_pause.py::test_p", "tests/unit/test_a.py::test_a"]
    assert script.runs(failed) == [failed, failed[:1], failed[:1]]
    assert script.runs(failed[1:]) == [failed[1:]]

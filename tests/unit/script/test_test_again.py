"""Which failed tests run once more (script/test_again.py), and what the end of a run tells of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
SYSTEM = "tests/acceptance/test_events.py::test_a"
FAULT = "tests/faults/test_pause.py::test_p"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("test_again", ROOT / "script/test_again.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("failed", [[SYSTEM], [FAULT], [SYSTEM, FAULT]])
def test_two_tests_of_whole_systems_run_again(script: ModuleType, failed: list[str]) -> None:
    assert script.refused(1, failed) is None


@pytest.mark.parametrize(
    ("code", "failed", "why"),
    [
        (1, ["tests/unit/test_a.py::test_a"], "tests/unit/test_a.py::test_a runs no system of processes"),
        (1, [SYSTEM, "tests/integration/test_a.py::test_a"], "tests/integration/test_a.py::test_a runs no system"),
        (1, ["tests/unit/test_a.py"], "tests/unit/test_a.py runs no system"),
        (1, [f"{SYSTEM}{number}" for number in range(3)], "3 tests have failed, and more than 2"),
        (1, [], "the run itself has failed, with exit code 1"),
        (2, [SYSTEM], "the run itself has failed, with exit code 2"),
        (137, [SYSTEM], "the run itself has failed, with exit code 137"),
    ],
)
def test_all_others_count_at_once(script: ModuleType, code: int, failed: list[str], why: str) -> None:
    assert why in script.refused(code, failed)


def test_a_promise_under_faults_has_to_hold_three_times(script: ModuleType) -> None:
    assert script.runs([FAULT, SYSTEM]) == [[FAULT, SYSTEM], [FAULT], [FAULT]]
    assert script.runs([SYSTEM]) == [[SYSTEM]]


FAILS = """
import pytest

@pytest.fixture
def ends_badly():
    yield
    raise OSError("no room")

def test_passes():
    pass

def test_fails(ends_badly):
    print("seen by it")
    assert [1] == [2]
"""


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_each_failure_is_written_down_with_what_it_said(script: ModuleType, tmp_path: Path, processes: str) -> None:
    (tmp_path / "test_it.py").write_text(FAILS, encoding="utf-8")
    failures = tmp_path / "failures"
    plugins = ["-p", "xdist.plugin", "-p", "support.failures", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", processes, "-q", *plugins, "--failures", str(failures), "test_it.py"]
    env = {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    said = script.read(failures)
    assert list(said) == ["test_it.py::test_fails"]
    for text in ("assert [1] == [2]", "seen by it", "no room"):
        assert text in said["test_it.py::test_fails"]


def test_the_end_of_a_run_has_what_both_runs_said(script: ModuleType) -> None:
    text = script.summary({SYSTEM: "assert 1 == 2\n", FAULT: "timed out\n"}, "UNSTEADY", "2 passed\n")
    assert text.startswith(f"\nUNSTEADY\n  {SYSTEM}\n  {FAULT}\n")
    for said in ("assert 1 == 2", "timed out", "2 passed"):
        assert said in text


def test_a_run_that_is_not_tried_again_names_what_has_failed(script: ModuleType, tmp_path: Path) -> None:
    failures, summary = tmp_path / "failures", tmp_path / "summary"
    failures.write_text('{"test": "tests/unit/test_a.py::test_a", "said": "assert 1 == 2"}\n', encoding="utf-8")
    assert script.main(["1", str(failures), str(summary)]) == 1
    assert "FAILED, and not run again" in summary.read_text(encoding="utf-8")
    assert "tests/unit/test_a.py::test_a\n" in summary.read_text(encoding="utf-8")

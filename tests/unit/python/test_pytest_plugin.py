"""What pytest's runs have of the plugin in projects that don't ask for it, and in those that do."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = "ojs_nats.testing.plugin"
LOOKS = """\
import sys

def pytest_sessionfinish(session):
    print("loaded:", *sys.modules)
"""
JOBS = """\
from ojs_nats import App

app = App()


@app.job("greet")
async def greet(name: str) -> str:
    return f"hello {name}"
"""
TESTS = """\
def test_a_greeting_is_pushed(ojs_app, ojs_inline):
    from app.jobs import greet

    greet.push_sync("ada")
    ojs_inline.assert_performed(greet)
"""


def ran(folder: Path, *arguments: str, code: int) -> str:
    """Return what a run of pytest prints in which only the plugins are loaded that are named."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", *arguments]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""}
    said = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == code, said.stdout + said.stderr
    return said.stdout


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    found = [each.value for each in importlib.metadata.entry_points(group="pytest11")]
    assert found.count(PLUGIN) == 1


def test_a_project_that_has_no_jobs_imports_nothing_for_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(LOOKS)

    def loaded(*arguments: str) -> set[str]:
        said = ran(tmp_path, "--collect-only", *arguments, code=pytest.ExitCode.NO_TESTS_COLLECTED)
        [line] = [line for line in said.splitlines() if line.startswith("loaded:")]
        return set(line.split()[1:])

    assert loaded("-p", PLUGIN) - loaded() == {"ojs_nats", "ojs_nats._lazy", "ojs_nats.testing", PLUGIN}


def test_the_lines_of_a_module_that_the_plugin_imports_are_covered(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app/jobs.py").write_text(JOBS)
    (tmp_path / "test_greeting.py").write_text(TESTS)
    ran(
        tmp_path,
        *("-p", PLUGIN, "-p", "pytest_cov", "-o", "ojs_app=app.jobs:app", "-o", "pythonpath=."),
        *("--cov=app", "--cov-report=json"),
        code=pytest.ExitCode.OK,
    )
    found = json.loads((tmp_path / "coverage.json").read_text())["files"]["app/jobs.py"]
    assert (found["missing_lines"], found["summary"]["percent_covered"]) == ([], 100)

"""The walks of the README and of docs/cron.md, run as they are written.

All `sh` blocks run in one shell; each answer is compared with the `json` block after it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.python_worker import WorkerProcess
from support.system import System

ROOT = Path(__file__).parents[2]
ADDRESS = "http://127.0.0.1:8080"
BLOCK = re.compile(r"```(sh|json)\n(.*?)```", re.DOTALL)


def steps(page: str, heading: str) -> list[tuple[str, Any]]:
    """(command, expected answer) in order."""
    section = (ROOT / page).read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    blocks = BLOCK.findall(section)
    commands = [text for kind, text in blocks if kind == "sh"]
    answers = [json.loads(text) for kind, text in blocks if kind == "json"]
    assert len(commands) == len(answers) >= 4
    return list(zip(commands, answers, strict=True))


def missing(expected: Any, actual: Any, path: str = "$") -> list[str]:
    """What of `expected` the answer does not hold."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [text for key, value in expected.items() for text in missing(value, actual.get(key), f"{path}.{key}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [text for i, (value, found) in pairs for text in missing(value, found, f"{path}[{i}]")]
    return [] if expected == actual else [f"{path}: the page says {expected!r}, the server {actual!r}"]


@pytest.mark.parametrize(("page", "heading"), [("README.md", "A first job"), ("docs/cron.md", "A first entry")])
def test_a_walk_runs_as_written(system: System, tmp_path: Path, page: str, heading: str) -> None:
    system.reset()
    walk = steps(page, heading)
    marker = "@@answer@@"
    script = f"\necho; echo {marker}\n".join(command for command, _ in walk)
    script = script.replace(ADDRESS, system.url).replace("/tmp/", f"{tmp_path}/")
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(text) for text in run.stdout.split(marker)]
    differences = [text for (_, expected), actual in zip(walk, answers, strict=True) for text in missing(expected, actual)]
    assert differences == []


def test_the_first_job_in_python_runs_as_written(system: System, tmp_path: Path) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## A first job in Python\n")[1].split("\n## ")[0]
    (tmp_path / "app").mkdir()
    for name, program in zip(("jobs.py", "push.py"), re.findall(r"```python\n(.*?)```", section, re.DOTALL), strict=True):
        (tmp_path / "app" / name).write_text(program, encoding="utf-8")
    [push] = re.findall(r"```sh\n\.venv/bin/python (.*)\n```", section)
    worker = WorkerProcess.started(tmp_path, "app.jobs", url=system.url)
    try:
        surroundings = WorkerProcess.surroundings(tmp_path, system.url)
        command = [sys.executable, *push.split()]
        ran = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=120, check=False)
    finally:
        worker.end()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "{'sent': 'ada@example.org'}\n", "")

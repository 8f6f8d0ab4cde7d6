"""The README's first job, run as it is written.

All `sh` blocks run in one shell; each answer is compared with the `json` block after it.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from support.system import System

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "http://127.0.0.1:8080"
BLOCK = re.compile(r"```(sh|json)\n(.*?)```", re.DOTALL)


def steps() -> list[tuple[str, Any]]:
    """(command, expected answer) in order."""
    section = README.read_text().split("## A first job\n")[1].split("\n## ")[0]
    blocks = BLOCK.findall(section)
    commands = [text for kind, text in blocks if kind == "sh"]
    answers = [json.loads(text) for kind, text in blocks if kind == "json"]
    assert len(commands) == len(answers) == 4
    return list(zip(commands, answers, strict=True))


def missing(expected: Any, actual: Any, path: str = "$") -> list[str]:
    """What of `expected` the answer does not hold."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [text for key, value in expected.items() for text in missing(value, actual.get(key), f"{path}.{key}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [text for i, (value, found) in pairs for text in missing(value, found, f"{path}[{i}]")]
    return [] if expected == actual else [f"{path}: the README says {expected!r}, the server {actual!r}"]


def test_the_first_job_of_the_readme_runs_as_written(system: System, tmp_path: Path) -> None:
    system.reset()
    walk = steps()
    marker = "@@answer@@"
    script = f"\necho; echo {marker}\n".join(command for command, _ in walk)
    script = script.replace(ADDRESS, system.url).replace("/tmp/", f"{tmp_path}/")
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 0, run.stderr
    answers = [json.loads(text) for text in run.stdout.split(marker)]
    differences = [text for (_, expected), actual in zip(walk, answers, strict=True) for text in missing(expected, actual)]
    assert differences == []

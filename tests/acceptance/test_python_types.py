"""What users write is checked by types, in the project of somebody who installed the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TYPED = Path(__file__).parent.parent / "fixtures" / "python" / "typed.py"
CACHE = Path(__file__).parents[2] / ".mypy_cache" / "of-a-user"
"""What mypy has found out about the package and what it imports is good for the next run, as in anybody's project."""
LINES = list(enumerate(TYPED.read_text(encoding="utf-8").splitlines(), 1))
WRONG = [(number, code) for number, line in LINES if "# E: " in line for code in line.rpartition("# E: ")[2].split(", ")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "typed.py").write_text(TYPED.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def checked(project: Path, *command: str) -> str:
    run = subprocess.run([sys.executable, "-m", *command], check=False, cwd=project, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


def test_mypy_finds_what_is_wrong_and_nothing_else(project: Path) -> None:
    found = checked(project, "mypy", "--strict", "--no-error-summary", "--cache-dir", str(CACHE), "typed.py")
    said = re.findall(r"^typed\.py:(\d+): error: .* \[([a-z-]+)\]$", found, re.MULTILINE)
    assert list(dict.fromkeys((int(number), code) for number, code in said)) == WRONG, found
    assert len(WRONG) == 25


def test_pyright_does_as_well(project: Path) -> None:
    """In its strict mode, in which nothing of the package may be of an unknown type."""
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    found = checked(project, "basedpyright", "--outputjson", "--pythonpath", sys.executable, "typed.py")
    told = json.loads(found)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] + 1 for one in told}
    assert sorted(lines) == sorted({number for number, _ in WRONG}), found

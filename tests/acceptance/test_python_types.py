"""What users write is checked by types, in the project of somebody who installed the package.

`script/types` has mypy check the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TYPED = Path(__file__).parent.parent / "fixtures" / "python" / "typed.py"
LINES = TYPED.read_text(encoding="utf-8").splitlines()
WRONG = [number for number, line in enumerate(LINES, 1) if "  # type: ignore[" in line]
SETTINGS = {"typeCheckingMode": "strict", "enableTypeIgnoreComments": False}


def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    """In its strict mode, in which nothing of the package may be of an unknown type."""
    (tmp_path / "typed.py").write_text(TYPED.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "typed.py"]
    run = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1, run.stdout + run.stderr
    told = json.loads(run.stdout)["generalDiagnostics"]
    assert sorted({one["range"]["start"]["line"] + 1 for one in told}) == WRONG, run.stdout
    assert len(WRONG) == 23

"""Pushes are checked as calls of their handlers, in the project of somebody who installed the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TYPED = Path(__file__).parent.parent / "fixtures" / "python" / "typed.py"


def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "typed.py"]
    found = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    said = re.findall(r"^typed\.py:(\d+): error: .* \[([a-z-]+)\]$", found.stdout, re.MULTILINE)
    lines = TYPED.read_text(encoding="utf-8").splitlines()
    wanted = [(number, line.rpartition("# E: ")[2]) for number, line in enumerate(lines, 1) if "# E: " in line]
    assert [(int(number), code) for number, code in said] == wanted, found.stdout
    assert len(wanted) == 12

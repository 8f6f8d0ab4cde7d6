"""Prometheus' own tool, which checks rules and plays them on series."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def promtool_program() -> str | None:
    """The promtool of this machine, or None; `OJS_PROMTOOL` names another."""
    return os.environ.get("OJS_PROMTOOL") or shutil.which("promtool")


def promtool(*arguments: str, cwd: Path) -> str:
    """What it prints. Raises AssertionError with that if it finds something wrong."""
    program = promtool_program()
    assert program is not None, "there is no promtool: install Debian's package prometheus, or name one in OJS_PROMTOOL"
    ran = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr

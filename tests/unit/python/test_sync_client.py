"""The client for code without an event loop is the one that has one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_it_is_as_the_script_makes_it() -> None:
    command = [sys.executable, str(ROOT / "script" / "sync_client.py"), "--check"]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr

"""Runs the tests that have failed once more, alone: `.venv/bin/python script/test_again.py`, after `script/test`.

A test that fails beside hundreds of processes on two processors, and passes alone, has met the machine most often. It is named
as unsteady, and doesn't fail the run; whoever reads that looks for its cause. A promise under faults has to hold three times
then, since its failures are by chance. Nothing is tried again if more than `MOST` failed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
FAILED: Final = ROOT / ".pytest_cache/v/cache/lastfailed"
MOST: Final = 10
PROMISES: Final = "tests/faults/"
TIMES: Final = 3


def chosen(failed: list[str]) -> str | None:
    """Return why these tests aren't tried again; None if they are."""
    if not failed:
        return "no failed test is known, so the run itself has failed"
    if len(failed) > MOST:
        return f"{len(failed)} tests have failed, and more than {MOST} aren't chance"
    return None


def runs(failed: list[str]) -> list[list[str]]:
    """Return what to run, one after the other."""
    promises = [name for name in failed if name.startswith(PROMISES)]
    return [failed, *[promises] * (TIMES - 1 if promises else 0)]


def main() -> int:
    failed = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if (why := chosen(failed)) is not None:
        print(f"Not tried again: {why}.")
        return 1
    print(f"\n== {len(failed)} failed and are tried once more, alone")
    sys.stdout.flush()
    for names in runs(failed):
        code = subprocess.run([sys.executable, "-m", "pytest", "-v", *names], cwd=ROOT, check=False).returncode
        if code:
            return code
    print("\nUNSTEADY, they failed beside others and passed alone: look for the cause.")
    print("".join(f"  {name}\n" for name in failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

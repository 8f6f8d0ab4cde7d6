"""Decides over failed tests: `.venv/bin/python script/test_again.py CODE FAILURES SUMMARY`, after `script/test`.

CODE is the exit code of `script/test`, FAILURES the file that its `--failures` has written. A test that runs a whole
system of processes next to hundreds of others may fail for what the machine does. If no more than two of those failed,
and nothing else, they run once more, alone, and don't fail the run if they pass. A promise under faults has to hold
three times then. Any other test counts at once. The file SUMMARY gets the names, and the output of both runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
SYSTEMS: Final = ("tests/acceptance/", "tests/faults/")
PROMISES: Final = "tests/faults/"
MOST: Final = 2
TIMES: Final = 3
TESTS_FAILED: Final = 1
"""How pytest ends that has run all tests, and some have failed."""


def refused(code: int, failed: Sequence[str]) -> str | None:
    """Return why these tests don't run again; None if they do."""
    if code != TESTS_FAILED or not failed:
        return f"the run itself has failed, with exit code {code}"
    if steady := [name for name in failed if not name.startswith(SYSTEMS)]:
        return f"{steady[0]} runs no system of processes, so its failure counts"
    if len(failed) > MOST:
        return f"{len(failed)} tests have failed, and more than {MOST} aren't chance"
    return None


def runs(failed: list[str]) -> list[list[str]]:
    """Return what to run, one after the other."""
    promises = [name for name in failed if name.startswith(PROMISES)]
    return [failed, *[promises] * (TIMES - 1 if promises else 0)]


def read(file: Path) -> dict[str, str]:
    """Return what each failed test has said."""
    said: dict[str, str] = {}
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        failure = json.loads(line)
        said[failure["test"]] = said.get(failure["test"], "") + failure["said"] + "\n"
    return said


def summary(said: dict[str, str], verdict: str, again: str = "") -> str:
    """Return the text for the end of the run."""
    first = "".join(f"\n-- {name}, the first time\n{text}" for name, text in said.items())
    names = "".join(f"  {name}\n" for name in said)
    return f"\n{verdict}\n{names}{first if again else ''}" + (f"\n-- once more, alone\n{again}" if again else "")


def main(arguments: Sequence[str]) -> int:
    """Return 0 if what had failed has passed now."""
    code, failures, file = int(arguments[0]), Path(arguments[1]), Path(arguments[2])
    said = read(failures)
    if (why := refused(code, list(said))) is not None:
        print(f"Nothing runs again: {why}.")
        if said:
            file.write_text(summary(said, f"FAILED, and not run again: {why}."), encoding="utf-8")
        return 1
    print(f"\n== {len(said)} failed and run once more, alone", flush=True)
    printed, ended = "", 0
    for names in runs(list(said)):
        command = [sys.executable, "-m", "pytest", "-v", *names]
        out = subprocess.PIPE
        done = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, flush=True)
        printed, ended = printed + done.stdout, done.returncode
        if ended:
            break
    verdict = "FAILED again, alone:" if ended else "UNSTEADY: failed next to others, passed alone. Find the cause."
    file.write_text(summary(said, verdict, printed), encoding="utf-8")
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

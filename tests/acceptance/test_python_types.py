"""What users write is checked by types, in the project of somebody who installed the package, by four type checkers.

`script/types` has mypy check the same file, with the code of each error.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.slow

TYPED: Final = Path(__file__).parent.parent / "fixtures" / "python" / "typed.py"
LINES: Final = TYPED.read_text(encoding="utf-8").splitlines()
WRONG: Final = {number for number, line in enumerate(LINES, 1) if "  # type: ignore[" in line}

SETTINGS: Final = {
    "mypy.ini": "[mypy]\nstrict = true\n",
    "pyrightconfig.json": json.dumps({"typeCheckingMode": "strict"}),
    "ty.toml": '[rules]\nall = "error"\n',
    "pyrefly.toml": 'preset = "strict"\nproject-includes = ["typed.py"]\n',
}
"""The strictest that each has; of ty, which has no such word, every rule."""
COMMANDS: Final = {
    "mypy": ("mypy", "--cache-dir=cache", "--no-error-summary", "typed.py"),
    "pyright": ("basedpyright", "--pythonpath", sys.executable, "typed.py"),
    "ty": ("ty", "check", "--python", sys.executable, "--output-format", "concise", "typed.py"),
    "pyrefly": ("pyrefly", "check", "--python-interpreter-path", sys.executable, "--output-format", "min-text"),
}
CANNOT: Final = {"ty": ("qeue=", "queeu=", "concurency=", "staet=", 'runs_in="thread"')}
"""The wrong lines that a checker doesn't find: ty knows the members of `**options: Unpack[…]`, and lets others pass."""


def project(place: Path) -> None:
    """Make the user's project, in which nothing says what is wrong."""
    text = "\n".join(line.partition("  # type: ignore[")[0] for line in LINES)
    (place / "typed.py").write_text(f"{text}\n", encoding="utf-8")
    for name, settings in SETTINGS.items():
        (place / name).write_text(settings, encoding="utf-8")


def passed_over(checker: str) -> set[int]:
    return {number for number in WRONG if any(said in LINES[number - 1] for said in CANNOT.get(checker, ()))}


def checked(place: Path, checker: str) -> subprocess.CompletedProcess[str]:
    program, *rest = COMMANDS[checker]
    command = [str(Path(sys.executable).parent / program), *rest]
    return subprocess.run(command, check=False, cwd=place, capture_output=True, text=True)


@pytest.mark.parametrize("checker", list(COMMANDS))
def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path, checker: str) -> None:
    """In its strict mode, in which nothing of the package may be of an unknown type."""
    project(tmp_path)
    run = checked(tmp_path, checker)
    found = {int(number) for number in re.findall(r"typed\.py:(\d+):(?!.*(?:note|info|warning)[:\[])", run.stdout)}
    assert found == WRONG - passed_over(checker), run.stdout + run.stderr
    assert run.returncode == 1


def test_the_project_has_something_wrong_of_each_kind() -> None:
    assert len(WRONG) == 43


def test_each_line_that_a_checker_passes_over_is_there() -> None:
    assert {checker: len(passed_over(checker)) for checker in CANNOT} == {
        checker: len(said) for checker, said in CANNOT.items()
    }

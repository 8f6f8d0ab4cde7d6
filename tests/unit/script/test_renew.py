"""`script/renew` writes every file that is made by a program."""

from __future__ import annotations

import re
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "script"
RENEW = (SCRIPT / "renew").read_text(encoding="utf-8")


def programs(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.py")) if '__name__ == "__main__"' in file.read_text(encoding="utf-8")]


def test_each_program_that_prints_a_file_is_run() -> None:
    named = re.findall(r'^ {4}"(script\.\S+) \S+"$', RENEW, re.MULTILINE)
    assert named == [f"script.{folder}.{file.stem}" for folder in ("pages", "monitoring") for file in programs(SCRIPT / folder)]


def test_each_program_that_writes_a_file_is_run() -> None:
    [named] = re.findall(r"^writers=\((.+)\)$", RENEW, re.MULTILINE)
    writing = [file.stem for file in programs(SCRIPT) if "\nWRITTEN" in file.read_text(encoding="utf-8")]
    assert sorted(named.split()) == writing

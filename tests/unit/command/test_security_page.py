"""The requirements of ojs-security, as docs/security.md answers them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
ROWS: Final = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| SEC-")
]


def test_each_requirement_has_a_row() -> None:
    required = [f"SEC-{number:03}" for number in range(1, 23)]
    recommended = [f"SEC-R{number:03}" for number in range(1, 8)]
    assert [row[0] for row in ROWS] == [*required, *recommended]


def test_each_requirement_is_shown_by_tests_that_are_there() -> None:
    for requirement, _, met_by, shown_by in ROWS:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", shown_by)
        assert named or met_by.startswith("Not here"), requirement
        for file, test in named:
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^(?:async )?def {test}\(", text, re.MULTILINE), (requirement, file, test)

"""What a run of all cases says, beside what docs/conformance.md says of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypedDict

from script.pages.conformance import Conformance


class Ran(TypedDict):
    """One case in a runner's report; `file` is its path in the suites."""

    file: str
    passed: bool


def differences(cases: Sequence[Ran], known: Conformance) -> list[str]:
    """A sentence for each case that ran and whose verdict is another one than the page's."""
    return list(_differences(cases, known))


def _differences(cases: Sequence[Ran], known: Conformance) -> Iterator[str]:
    failing = {(entry.suite, case) for entry in known.failing for case in entry.cases}
    for case in cases:
        file = PurePosixPath(case["file"])
        listed = (file.parts[0], file.stem) in failing
        if case["passed"] and listed:
            yield f"{file} passes, and is listed as failing"
        elif not case["passed"] and not listed:
            yield f"{file} fails, and isn't listed"

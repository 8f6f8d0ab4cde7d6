"""The programs of docs/python.md and docs/python/, as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.system import System
from support.walks import blocks, walked


def test_the_first_worker(system: System, tmp_path: Path) -> None:
    jobs, command, push, printed = blocks("docs/python.md", "A first worker")
    assert command == "ojs-nats worker app.jobs\n"
    assert walked(system, tmp_path, jobs, push) == printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "heading"),
    [
        *(("docs/python.md", heading) for heading in ("Ask the server", "Schedule", "Workflows")),
        *(("docs/python/client.md", heading) for heading in ("Ask the server", "Without a loop", "Events")),
    ],
)
def test_what_else_is_shown(system: System, tmp_path: Path, page: str, heading: str) -> None:
    jobs = blocks("docs/python.md", "A first worker")[0]
    program, printed = blocks(page, heading)
    assert walked(system, tmp_path, jobs, program) == printed


@pytest.mark.slow
def test_what_is_shown_of_failures(system: System, tmp_path: Path) -> None:
    jobs, program, printed = blocks("docs/python.md", "Fail")
    assert walked(system, tmp_path, jobs, program) == printed

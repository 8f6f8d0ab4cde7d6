"""The first worker of docs/python.md, and what else it shows, as they are written."""

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
@pytest.mark.parametrize("heading", ["Without a loop", "Ask the server", "Workflows", "Events"])
def test_what_else_is_shown(system: System, tmp_path: Path, heading: str) -> None:
    jobs = blocks("docs/python.md", "A first worker")[0]
    program, printed = blocks("docs/python.md", heading)
    assert walked(system, tmp_path, jobs, program) == printed

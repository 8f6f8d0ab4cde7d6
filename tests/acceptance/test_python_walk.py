"""The first worker of docs/python.md, and the README's, as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.system import Command, System, environment
from support.waiting import until

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```(python|sh|)\n(.*?)```", re.DOTALL)
README_PUSH = "import asyncio\nfrom app.jobs import send_email\n\nasync def main() -> None:\n{}\nasyncio.run(main())\n"


def blocks(page: str, heading: str) -> list[str]:
    section = (ROOT / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return [text for _, text in BLOCK.findall(section)]


def walked(system: System, folder: Path, jobs: str, push: str) -> str:
    """What the push prints, while a worker runs the jobs."""
    (folder / "app").mkdir()
    (folder / "app" / "jobs.py").write_text(jobs, encoding="utf-8")
    (folder / "push.py").write_text(push, encoding="utf-8")
    env = environment(OJS_URL=system.url)
    worker = Command(folder, "worker", "app.jobs", "--log-format", "json", env=env)
    try:
        until(lambda: worker.events("the worker runs"))
        command = [sys.executable, "-X", "dev", "push.py"]  # which tells of everything that isn't closed
        run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout
    finally:
        assert worker.stop() == 0


def test_the_first_worker(system: System, tmp_path: Path) -> None:
    jobs, command, push, printed = blocks("docs/python.md", "A first worker")
    assert command == "ojs-nats worker app.jobs\n"
    assert walked(system, tmp_path, jobs, push) == printed


@pytest.mark.parametrize("heading", ["Ask the server", "Without a loop", "Workflows", "Events"])
def test_what_else_is_shown(system: System, tmp_path: Path, heading: str) -> None:
    jobs = blocks("docs/python.md", "A first worker")[0]
    program, printed = blocks("docs/python.md", heading)
    assert walked(system, tmp_path, jobs, program) == printed


def test_the_readme_s(system: System, tmp_path: Path) -> None:
    jobs, push = blocks("README.md", "A first job in Python")
    body = textwrap.indent(push, "    ")
    assert walked(system, tmp_path, jobs, README_PUSH.format(body)) == "{'sent': 'ada@example.org'}\n"

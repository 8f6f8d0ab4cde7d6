"""Programs that stand in the documentation, run as they are written."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.system import OJS_NATS, Command, System, environment
from support.waiting import until

ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"```(python|sh|)\n(.*?)```", re.DOTALL)


def blocks(page: str, heading: str) -> list[str]:
    """The programs, commands and outputs of a section."""
    section = (ROOT / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return [text for _, text in _BLOCK.findall(section)]


def walked(
    system: System,
    folder: Path,
    jobs: str,
    push: str,
    *,
    python: str = sys.executable,
    program: Sequence[str] = OJS_NATS,
) -> str:
    """What the push prints, while a worker runs the jobs; `python` and `program` are another installation's."""
    (folder / "app").mkdir()
    (folder / "app" / "jobs.py").write_text(jobs, encoding="utf-8")
    (folder / "push.py").write_text(push, encoding="utf-8")
    env = environment(OJS_URL=system.url)
    worker = Command(folder, "worker", "app.jobs", "--log-format", "json", env=env, program=program)
    try:
        until(lambda: worker.events("the worker runs"))
        command = [python, "-X", "dev", "push.py"]  # which tells of everything that isn't closed
        run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout
    finally:
        assert worker.stop() == 0

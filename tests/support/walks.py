"""Programs that stand in the documentation, run as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from support.forked import OJS_NATS, PYTHON, completed
from support.system import Command, System, environment
from support.waiting import until

ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
_RUN: Final = ("python", "sh", "")
_PATH: Final = re.compile(r"(?:#|//) (\S+)\n")


class File(NamedTuple):
    """A file that a page shows: its first line is a comment with its path."""

    path: str
    text: str


def blocks(page: str, heading: str) -> list[str]:
    """The programs, commands and outputs of a section."""
    return [text for language, text in _BLOCK.findall(_section(page, heading)) if language in _RUN]


def files(page: str, heading: str) -> list[File]:
    """The files of a section, in order; those with one path belong together."""
    found = ((_PATH.match(text), text) for _, text in _BLOCK.findall(_section(page, heading)))
    return [File(named[1], text) for named, text in found if named is not None]


def output(page: str, heading: str) -> str:
    """What a section's program prints: its only block without a language."""
    [printed] = [text for language, text in _BLOCK.findall(_section(page, heading)) if not language]
    return str(printed)


def _section(page: str, heading: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]


class Run(Protocol):
    """Runs a command beside a worker, and returns what it prints."""

    def __call__(self, *command: str) -> str: ...


@contextmanager
def at_work(system: System, folder: Path, jobs: str, *, program: Sequence[str] = OJS_NATS) -> Iterator[Run]:
    """A worker that runs the jobs, as `app/jobs.py` in the folder; `program` is another installation's."""
    (folder / "app").mkdir()
    (folder / "app" / "jobs.py").write_text(jobs, encoding="utf-8")
    env = environment(OJS_URL=system.url)

    def run(*command: str) -> str:
        ran = completed(command, env, folder=folder, seconds=120)
        assert (ran.returncode, ran.stderr) == (0, ""), ran
        return ran.stdout

    worker = Command(folder, "worker", "app.jobs", "--log-format", "json", env=env, program=program)
    try:
        until(lambda: worker.events("the worker runs"))
        yield run
    finally:
        assert worker.stop() == 0


def walked(
    system: System,
    folder: Path,
    jobs: str,
    push: str,
    *,
    python: Sequence[str] = PYTHON,
    program: Sequence[str] = OJS_NATS,
) -> str:
    """What the push prints, while a worker runs the jobs; `python` and `program` are another installation's."""
    (folder / "push.py").write_text(push, encoding="utf-8")
    with at_work(system, folder, jobs, program=program) as run:
        return run(*python, "push.py")

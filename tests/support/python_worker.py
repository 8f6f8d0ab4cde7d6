"""`ojs-nats worker` as a process, with the handlers of tests/fixtures/python."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from support.system import Command, System, environment
from support.waiting import until

TESTS = Path(__file__).parent.parent
FIXTURES = TESTS / "fixtures" / "python"

_RUNS_SECONDS: Final = 120.0


def installed(name: str, folder: Path) -> None:
    """Put the module where workers of this folder find it."""
    shutil.copy(FIXTURES / f"{name}.py", folder)


def imported(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a worker's jobs, to push them."""
    spec = importlib.util.spec_from_file_location(name, FIXTURES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def pushed(system: System, job_type: str, *args: object, queue: str = "hostile", **options: object) -> str:
    """Push a job that has one attempt, and return its id."""
    given = {"queue": queue, "retry": {"max_attempts": 1}, **options}
    return str(system.push(job_type, *args, **given)["id"])


def completed(system: System, job_id: str, seconds: float = 60.0) -> dict[str, Any]:
    """Wait until it has completed, and return it."""

    def has_completed() -> bool:
        return str(system.job(job_id)["state"]) == "completed"

    until(has_completed, seconds)
    return system.job(job_id)


class WorkerProcess(Command):
    def notes(self) -> list[str]:
        """What its handlers noted."""
        path = self._output.parent / "notes"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def state(self, system: System) -> str:
        """As the server knows it."""
        workers = system.request("GET", "/ojs/v1/admin/workers").body["items"]
        return next((str(worker["state"]) for worker in workers if worker["pid"] == self.pid), "")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def beats(self) -> None:
        """Have it tell the server of itself at once, and so hear what the server has for it: it fetches no more."""
        self.signal(signal.SIGTSTP)

    @classmethod
    def started(
        cls, folder: Path, module: str, *arguments: str, url: str, label: str = "worker", **variables: str
    ) -> WorkerProcess:
        """It runs, or the test fails with what it said."""
        said = ("worker", module, "--log-format", "json", *arguments)
        worker = cls(folder, *said, env=cls.surroundings(folder, url, **variables), label=label)
        try:
            until(lambda: worker.events("the worker runs") or worker.has_ended(), _RUNS_SECONDS)
        except AssertionError:
            worker.end()
            raise
        return worker

    @staticmethod
    def surroundings(folder: Path, url: str, **variables: str) -> dict[str, str]:
        """Return its environment; modules may import what tests share."""
        return environment(OJS_URL=url, FOLDER=str(folder), PYTHONPATH=str(TESTS), **variables)

    def has_ended(self) -> bool:
        """Fails if it has."""
        assert self.process.poll() is None, self.output
        return False

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def exits(worker: WorkerProcess, code: int = 0) -> Iterator[None]:
    yield
    assert worker.process.wait(timeout=60) == code, worker.output

"""The data folder of `ojs-nats dev`: who uses it, and what runs there."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ojs_engine.base.problems import StartupProblem
from ojs_link.timings import Timings


class FolderTimings(Timings, frozen=True, kw_only=True):
    """How long the nats-server of an earlier run is waited for."""

    server_s: float = 3.0
    """Until the command says that it still works there, and fails."""
    poll_s: float = 0.05
    """Between two looks whether it has let the folder go."""


class RunState(msgspec.Struct, frozen=True):
    """`run.json`: what runs now. `pid` is that of `dev`; `children` and `urls` are by name of the service."""

    pid: int
    ready: bool
    url: str | None
    nats_url: str | None
    children: dict[str, int]
    urls: dict[str, str]


class DataFolder:
    """One folder, used by one `ojs-nats dev` at a time."""

    def __init__(self, path: Path, timings: FolderTimings = FolderTimings()) -> None:
        self._timings = timings
        self.path = path.resolve()

    @contextmanager
    def claimed(self) -> Iterator[int]:
        """Hold the folder; yields the descriptor of the lock that the embedded nats-server is to inherit.

        Raises `StartupProblem` if another `dev` or the nats-server of an earlier one still works there.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StartupProblem(f"can't make the folder {self.path}: {error.strerror}; choose another with --data") from error
        dev = self._open("dev.lock")
        server = self._open("nats-server.lock")
        try:
            if not _locked(dev):
                raise StartupProblem(self._in_use())
            self._wait_for_server(server)
            try:
                self._run_file.unlink(missing_ok=True)  # that of a `dev` that was killed
            except OSError as error:
                raise self.unusable(error) from error
            yield server
            self._run_file.unlink(missing_ok=True)
        finally:
            os.close(server)
            os.close(dev)

    def write(self, state: RunState) -> None:
        """Replace `run.json`, which nobody ever sees half-written.

        The NATS URL in it may hold a password: owner only.
        """
        draft = self._run_file.with_suffix(".tmp")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(state))
        draft.replace(self._run_file)

    @property
    def _run_file(self) -> Path:
        return self.path / "run.json"

    def _open(self, name: str) -> int:
        try:
            return os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self.unusable(error) from error

    def unusable(self, error: OSError) -> StartupProblem:
        """Return which file is in the way, why, and the remedy."""
        file = f" ({error.filename})" if error.filename else ""
        return StartupProblem(f"can't write in {self.path}: {error.strerror}{file}; choose another folder with --data")

    def _wait_for_server(self, lock: int) -> None:
        # A `dev` that was killed leaves a nats-server which is just about to stop.
        deadline = time.monotonic() + self._timings.server_s
        while not _locked(lock):
            if time.monotonic() > deadline:
                pid = _text(self.path / "nats-server.pid") or "unknown"
                raise StartupProblem(
                    f"the nats-server of an earlier run (pid {pid}) still works in {self.path}: stop it (kill {pid}), "
                    "or choose another folder with --data"
                )
            time.sleep(self._timings.poll_s)

    def _in_use(self) -> str:
        try:
            state = msgspec.json.decode(_text(self._run_file), type=RunState)
        except (OSError, msgspec.MsgspecError):  # not written yet, or not by `dev`
            state = None
        who = f"pid {state.pid}, {state.url or 'starting'}" if state else "starting"
        return f"another 'ojs-nats dev' ({who}) uses {self.path}: stop it, or choose another folder with --data"


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""

"""Where a projector keeps its index: a folder for all of a machine, a file for each."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from ojs_engine.base.problems import StartupProblem


class IndexFile:
    """The first file that no other process uses. A projector that is started again finds its own, or one like it."""

    def __init__(self, folder: Path, places: int = 64) -> None:
        """`places` is how many projectors may use the folder."""
        self._places = places
        self._folder = folder
        self._lock: int | None = None

    def take(self) -> Path:
        """Lock a place and return its file. Raises StartupProblem if the folder can't be used."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for number in range(self._places):
                lock = os.open(self._folder / f"index-{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(lock)
                else:
                    self._lock = lock
                    return self._folder / f"index-{number}.sqlite"
        except OSError as error:
            raise self.unusable(error) from None
        raise StartupProblem(f"{self._places} projectors use {self._folder} already; choose another with --projector-data")

    def unusable(self, error: OSError | sqlite3.Error) -> StartupProblem:
        """Return why no index can be kept there, and the remedy."""
        reason = str(error)
        if isinstance(error, OSError):
            reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror or reason
        return StartupProblem(
            f"can't keep the projector's index in {self._folder} ({reason}); choose another folder with --projector-data"
        )

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

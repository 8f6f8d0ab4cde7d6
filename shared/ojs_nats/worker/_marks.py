"""The proof that a list of jobs is complete, so that the server takes back what was handed out and never arrived."""

from __future__ import annotations

import threading

import msgspec


class Complete(msgspec.Struct, frozen=True):
    """Two marks of the server: all jobs that the worker was given between them, and holds, are named."""

    since: str
    until: str


class Marks:
    """The marks that the server has sent, and the fetches that were under way when they came; for any thread.

    A fetch that was sent behind a mark is carried out behind it. So once all fetches have ended that were sent
    before it came, whatever was handed out before the mark has arrived, or never will.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: str | None = None
        self._fetches = 0
        self._under_way: dict[int, None] = {}
        self._noted: list[tuple[str, int]] = []
        """Marks with the number of the last fetch that had been sent when they came, oldest first."""

    def registered(self, mark: str | None) -> None:
        """Begin anew with the mark of a registration; None is that of a server that has no marks."""
        with self._lock:
            self._since, self._noted = mark, []
            if mark is not None:
                self._noted.append((mark, self._fetches))

    def marked(self, mark: str) -> None:
        """Note the mark of a heartbeat's answer."""
        with self._lock:
            self._noted.append((mark, self._fetches))
            self._drop()

    def sent(self) -> int:
        """Note that a fetch is about to be sent, and return its number."""
        with self._lock:
            self._fetches += 1
            self._under_way[self._fetches] = None
            return self._fetches

    def ended(self, number: int) -> None:
        """Note that a fetch has ended: its jobs are in the list, or its answer can't be read any more."""
        with self._lock:
            del self._under_way[number]
            self._drop()

    def complete(self) -> Complete | None:
        """Return what the list of jobs that is made next can be said to be complete for."""
        with self._lock:
            if self._since is None or not self._noted or not self._proven(self._noted[0]):
                return None
            return Complete(self._since, self._noted[0][0])

    def _proven(self, noted: tuple[str, int]) -> bool:
        oldest = next(iter(self._under_way), self._fetches + 1)
        return noted[1] < oldest

    def _drop(self) -> None:
        """Forget marks that are older than the newest one that is proven."""
        while len(self._noted) > 1 and self._proven(self._noted[1]):
            del self._noted[0]

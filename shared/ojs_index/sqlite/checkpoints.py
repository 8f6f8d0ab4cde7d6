"""SQLite's checkpoints of the index: what was saved goes from the log into the file, beside the work.

A checkpoint waits for the disk, some 100 ms and more, and SQLite makes it where the transaction ends that is one too
many: whoever asked something or waited for an event would wait for it. Here a thread makes it, on a connection of its
own. What is taken up goes on meanwhile; the log starts anew when a checkpoint ends ahead of the next transaction,
which is waited for where it has grown long.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

_HEADER_BYTES: Final = 100
_FRAMES: Final = struct.Struct("=I")
_WRITTEN_AT: Final = 16
_MOVED_AT: Final = 96
"""Where the header of the log's index has how many pages are in the log, and how many were moved (SQLite's walformat, §2.2)."""


class CheckpointBounds(Struct, frozen=True, kw_only=True):
    """How long the log may become, in pages of 8 KiB: only tests have others than these."""

    moved_together: int = 4_000
    """Pages before they are moved into the file: what changes often is moved once for many transactions."""
    long: int = 16_000
    """Pages of a log (128 MiB) that has to start anew before more is written."""


class Pages(NamedTuple):
    """Of the log: since it was started anew, and how many of them are in the file."""

    written: int
    moved: int


def checkpoint(path: Path) -> None:
    """Make one, as far as nobody who reads needs the log. Raises sqlite3.DatabaseError."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")


class Checkpoints:
    """Those of one file, which has to be open meanwhile. One at a time."""

    def __init__(
        self, path: Path, bounds: CheckpointBounds = CheckpointBounds(), make: Callable[[Path], None] = checkpoint
    ) -> None:
        """`bounds` and `make` (which makes one, in a thread) are for tests."""
        self._path = path
        self._bounds = bounds
        self._make = make
        self._under_way: asyncio.Future[None] | None = None

    async def keep_up(self) -> None:
        """Begin one if it is time for it; nothing may be being written. A long log is waited for until it can start
        anew.

        Raises sqlite3.DatabaseError for one that has failed since the last time.
        """
        if self._under_way is not None and self._under_way.done():
            await self.ended()
        pages = self.pages()
        if pages.written >= self._bounds.long:
            # One that began earlier leaves out what was saved since.
            await self.ended()
            self._begin()
            await self.ended()
        elif pages.written - pages.moved >= self._bounds.moved_together and self._under_way is None:
            self._begin()

    async def ended(self) -> None:
        """Wait for the one that is under way. Raises what it met."""
        work, self._under_way = self._under_way, None
        if work is not None:
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                self._under_way = work
                raise

    def pages(self) -> Pages:
        """Those of the log; none where there is no log yet."""
        with contextlib.suppress(FileNotFoundError), self._path.with_name(f"{self._path.name}-shm").open("rb") as index:
            header = index.read(_HEADER_BYTES)
            if len(header) == _HEADER_BYTES:
                return Pages(_FRAMES.unpack_from(header, _WRITTEN_AT)[0], _FRAMES.unpack_from(header, _MOVED_AT)[0])
        return Pages(0, 0)

    def _begin(self) -> None:
        self._under_way = asyncio.get_running_loop().run_in_executor(None, self._make, self._path)

"""A connection that reads lists, page after page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from bench.client import Target
from bench.load import Looper, Phase
from bench.messages import Requests

PAGE: Final = 50


class _Pagination(Struct):
    total: int | None = 1
    has_more: bool = False
    next_cursor: str | None = None


class _Page(Struct):
    pagination: _Pagination = field(default_factory=_Pagination)
    items: list[Raw] | None = None


_decode: Final = msgspec.json.Decoder(_Page).decode


class Reader(Looper):
    """Asks for what an iterator names, and for the next pages of what has some, `depth` of them.

    `partial` counts the pages that were short although there was more, `untold` those without a total. Nothing to be found is
    an error unless it `may_be_empty`.
    """

    def __init__(
        self,
        target: Target,
        phase: Phase,
        requests: Requests,
        paths: Iterator[str],
        *,
        depth: int = 4,
        may_be_empty: bool = False,
    ) -> None:
        super().__init__(target, phase)
        self.partial = 0
        self.untold = 0
        self.slowest = (0.0, "")
        self._deepest = depth
        self._may_be_empty = may_be_empty
        self._requests = requests
        self._paths = paths
        self._path = ""
        self._next: str | None = None
        self._depth = 0

    def next_request(self) -> bytes | None:
        if self._next is not None and self._depth < self._deepest:
            self._depth += 1
            return self._requests.get(f"{self._path}&cursor={self._next}")
        path = next(self._paths, None)
        if path is None:
            return None
        self._path, self._depth = path, 0
        return self._requests.get(path)

    def taken(self, body: bytes, now: float) -> None:
        found = _decode(body)
        page = found.pagination
        self._next = page.next_cursor
        self.phase.count(now, now - self.sent)
        self.slowest = max(self.slowest, (now - self.sent, self._path))
        self.untold += page.total is None
        if found.items is not None and "/jobs?" in self._path:
            self.partial += page.has_more and len(found.items) < PAGE
        if page.total == 0 and not self._may_be_empty:
            self.phase.errors["empty page"] += 1

    def gave_up(self) -> None:
        self._next = None

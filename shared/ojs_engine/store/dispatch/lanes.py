"""The lanes of one priority, whose tokens are taken in the order of their age."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from ojs_engine.store.dispatch.ready_stream import ReadyStream
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.records.tokens import Token

_ENDLESS: Final = 1 << 63


class Run(NamedTuple):
    """The next tokens, all of one lane. `asked` is how many were asked for; `end` says that the lane has no more."""

    lane: str
    tokens: list[Token]
    asked: int
    end: bool


class MergedLanes:
    """The tokens that some lanes of a queue may still have."""

    def __init__(
        self, stream: ReadyStream, reader: TokenReader, queue: str, lanes: Sequence[str], *, before_others: bool
    ) -> None:
        self._stream = stream
        self._reader = reader
        self._queue = queue
        self.left = list(lanes)
        """The lanes that may have more."""
        self.pulls = 0
        self._before_others = before_others
        self._after: dict[str, int] = {}
        """By lane, the place up to which it is known to be empty."""

    async def next(self, most: int) -> Run | None:
        """Take up to `most` tokens that are older than those of other lanes; None if there are no more.

        Raises OjsError backend_unavailable.
        """
        while self.left:
            lane, asked, end = (self.left[0], most, _ENDLESS) if len(self.left) == 1 else await self._oldest(most)
            pulled = await self._reader.pull(lane, self._queue, asked, before_others=self._before_others)
            self.pulls += 1
            if not pulled:
                self.left.remove(lane)
                continue
            if len(self.left) == 1:
                return Run(lane, pulled, asked, len(pulled) < asked)
            tokens = [token for token in pulled if token.sequence < end]
            too_soon = [token for token in pulled if token.sequence >= end]
            for token in too_soon:
                self._reader.back(token)
            self._after[lane] = max(token.sequence for token in tokens) if tokens else too_soon[0].sequence - 1
            if tokens:
                return Run(lane, tokens, asked, not too_soon and len(pulled) < asked)
        return None

    async def _oldest(self, most: int) -> tuple[str, int, int]:
        """Return the lane with the oldest token, how many of its tokens to take, and the place of the first of
        another lane.

        Tokens in others' hands count, so a pull may bring tokens from behind that place.
        """
        heads = await asyncio.gather(*(self._stream.places(lane, self._after.get(lane, 0) + 1, most) for lane in self.left))
        first = min(range(len(self.left)), key=lambda lane: min(heads[lane], default=_ENDLESS))
        end = min((place for lane, head in enumerate(heads) if lane != first for place in head), default=_ENDLESS)
        return self.left[first], max(sum(place < end for place in heads[first]), 1), end

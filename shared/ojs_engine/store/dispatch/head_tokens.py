"""Tokens taken from the head of a ready subject, without a consumer: the way for those asked for seldom (docs/adr/029).

A token that is read stays where it is until it is answered for. Within this process it is in one fetch's hand at a
time; fetches of other processes may read it, too, and the swap of the job's record decides, as for any token that
comes twice.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import delete, delete_unheard
from ojs_engine.jetstream.contents import message, messages, sequence_of, stored_at
from ojs_engine.store.records.bucket import Bucket
from ojs_link.timings import Timings

_PAGE: Final = 256


class TokenTimings(Timings, frozen=True, kw_only=True):
    """How long tokens are asked for, and kept in hand."""

    in_hand_s: float = 3.0
    """A token without an answer by then can be taken again."""
    replica_timeout_s: float = 0.5
    """How long a replica is waited for before the leader is asked."""
    pull_timeout_s: float = 2.0
    """How long an answer with tokens is waited for."""
    catch_up_s: float = 0.005
    """How long a token is waited for that was heard of and can't be pulled yet; in vain where another process has it."""
    gone_s: float = 0.5
    """How long a fetch waits to hear that tokens of a bounded queue are gone."""


class Head(NamedTuple):
    """A token's message: its sequence in the ready stream, when it was stored (server time, Unix ms), and what it says."""

    sequence: int
    at: int
    data: bytes


class HeadTokens:
    """Takes tokens of ready subjects, and lets them go."""

    def __init__(self, bucket: Bucket, timings: TokenTimings) -> None:
        self._timings = timings
        self._bulk = bucket.bulk
        self._config = bucket.config
        self._aside: dict[str, dict[int, float]] = {}
        """By subject, until when (loop time) which tokens are passed over: they are in a fetch's hand, or put off."""
        self._ends: deque[tuple[float, str, int]] = deque()
        """When to forget that, about in order."""

    async def take(self, subject: str, wanted: int) -> list[Head]:
        """Up to `wanted` tokens of a subject, in order, that no other fetch of this process has in hand.

        Raises OjsError backend_unavailable.
        """
        taken: list[Head] = []
        start = 1
        while len(taken) < wanted:
            page = min(wanted - len(taken) + len(self._passed_over(subject)), _PAGE)
            found, more = await self._read(subject, start, page)
            passed_over = self._passed_over(subject)
            for head in found:
                if len(taken) < wanted and head.sequence not in passed_over:
                    self._pass_over(subject, head.sequence, self._timings.in_hand_s)
                    taken.append(head)
            if not more:
                break
            start = found[-1].sequence + 1
        return taken

    def drop(self, sequence: int) -> None:
        """Delete a token; this process passes it over until it is surely gone."""
        delete_unheard(self._bulk, self._config.ready_stream, sequence)

    async def drop_all(self, sequences: Sequence[int], timeout_s: float) -> None:
        """Delete tokens, and return when they are gone, or when that has taken too long."""
        stream = self._config.ready_stream
        await asyncio.gather(*(delete(self._bulk, stream, sequence, timeout_s) for sequence in sequences))

    def back(self, subject: str, sequence: int) -> None:
        """Let a token be taken again, in its place."""
        self._aside.get(subject, {}).pop(sequence, None)

    def later(self, subject: str, sequence: int, seconds: float) -> None:
        """Let a token be taken again after a while; those behind it go ahead."""
        self._pass_over(subject, sequence, seconds)

    def _passed_over(self, subject: str) -> dict[int, float]:
        now = asyncio.get_running_loop().time()
        while self._ends and self._ends[0][0] <= now:
            end, of, sequence = self._ends.popleft()
            aside = self._aside.get(of, {})
            if aside.get(sequence) == end:
                del aside[sequence]
            if not aside:
                self._aside.pop(of, None)
        return self._aside.get(subject, {})

    def _pass_over(self, subject: str, sequence: int, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        self._aside.setdefault(subject, {})[sequence] = end
        self._ends.append((end, subject, sequence))

    async def _read(self, subject: str, start: int, most: int) -> tuple[list[Head], bool]:
        """Tokens from a sequence on, and whether there may be more.

        On a cluster a replica may not know of the latest yet, or not answer: what it leaves out the leader is asked
        for.
        """
        clustered = self._config.replicas > 1
        stream = self._config.ready_stream
        which = {"seq": start, "next_by_subj": subject, "batch": most}
        try:
            patience = self._timings.replica_timeout_s if clustered else None
            found, left = await messages(self._bulk, stream, which, "tokens", patience)
        except OjsError:
            if not clustered or not self._bulk.connected:
                raise
            found, left = [], 0
        heads = [Head(sequence_of(one), stored_at(one), one.data) for one in found]
        if left or not clustered or len(heads) >= most:
            return heads, left > 0
        last = heads[-1].sequence + 1 if heads else start
        newest = await message(self._bulk, stream, {"seq": last, "next_by_subj": subject}, "tokens")
        if newest is None:
            return heads, False
        return [*heads, Head(newest.seq, newest.at, newest.data)], True

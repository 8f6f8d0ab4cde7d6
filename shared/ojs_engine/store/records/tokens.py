"""What tokens say, and looking at those of a queue without taking them."""

from __future__ import annotations

from typing import Final, NamedTuple

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.versions import version_of
from ojs_engine.jetstream.api import put_if
from ojs_engine.jetstream.connection import Connection, Reply
from ojs_engine.jetstream.consumers import place_of
from ojs_engine.jetstream.contents import Message, message, messages, sequence_of
from ojs_engine.jetstream.subjects import Lane, StoreConfig, handler_lane, lane_of
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.write_timings import WriteTimings

_NEVER: Final = 1
"""A revision that a subject without messages doesn't have."""


def token_of(job_id: str, word: str | None, replaces: int) -> bytes:
    """The token of a job: the record that it goes with has the same word, and was to replace the revision `replaces`."""
    return f"{job_id} {word} {replaces}".encode()


def read_token(data: bytes) -> tuple[str, str, int]:
    """What `token_of` was given. Raises ValueError for what is no token."""
    job_id, word, replaces = data.decode().split(" ")
    return job_id, word, int(replaces)


class StoredToken(NamedTuple):
    """A message of the ready stream; `data` is the token's."""

    sequence: int
    data: bytes


class TokenPage(NamedTuple):
    """Tokens in the order in which they were stored. `end`: there were no more."""

    tokens: list[StoredToken]
    end: bool


class Tokens:
    """Reads the ready stream as its leader has it. Everything here raises OjsError backend_unavailable."""

    def __init__(self, nats: Connection, bulk: Connection, config: StoreConfig, timings: WriteTimings = WriteTimings()) -> None:
        self._timings = timings
        self._nats = nats
        self._bulk = bulk
        self._config = config

    async def first_at(self, queue: str, priority: int) -> int | None:
        """When the first of the tokens of a queue and priority was stored (server time, Unix ms); None if there are
        none.

        A token is there until its claim is stored.
        """
        subjects = (self._config.ready(queue, priority), self._config.lanes_beside(queue, priority))
        found = [await self._next(subject, 1) for subject in subjects]
        return min((one.at for one in found if one is not None), default=None)

    async def first(self, subject: str) -> bytes | None:
        """What the first token of a subject says."""
        found = await self._next(subject, 1)
        return None if found is None else found.data

    async def settle(self, queue: str) -> None:
        """Return when every token that was published before this call is stored, or won't be.

        nats-server takes up a stream's messages in order: one that can't be stored is refused after those before it.
        """
        await put_if(self._nats, self._config.seat(queue, 0), b"", _NEVER, "a token")

    async def page(self, queue: str, after: int, most: int, *, held: bool) -> TokenPage:
        """Tokens of a queue behind a sequence, with `held` those among them that a gate holds; `most` at most.

        Read page after page, nothing is missed that is there all the time: a token that is let go, or put aside, is
        stored again, further on, before it leaves its place.
        """
        pattern = self._config.tokens_of_queue(queue) if held else self._config.ready_of_queue(queue)
        which = {"seq": after + 1, "next_by_subj": pattern, "batch": most}
        read, _ = await messages(self._bulk, self._config.ready_stream, which, "tokens", self._timings.read_s)
        found = [StoredToken(sequence_of(one), one.data) for one in read]
        if found or self._config.replicas == 1:
            return TokenPage(found, not found)
        # What a replica has is all there is up to there, but it may lag behind: the leader has the last word.
        last = await self._next(pattern, after + 1)
        return TokenPage([] if last is None else [StoredToken(last.seq, last.data)], last is None)

    async def _next(self, subject: str, start: int) -> Message | None:
        which = {"seq": start, "next_by_subj": subject}
        return await message(self._nats, self._config.ready_stream, which, "tokens")


class Token(NamedTuple):
    """A token in hand: what it says, where it came from, and how to answer for it: to its consumer's `ack` subject,
    or without that by its `sequence` in the ready stream, which is its place.
    """

    job_id: str
    word: str
    replaces: int
    queue: str
    priority: int
    ack: str
    stored_at: int
    lane: Lane
    sequence: int = 0

    @property
    def front(self) -> bool:
        """Whether it goes ahead of its priority: it had been handed out, or let go, before."""
        return self.lane == "front"

    @property
    def data(self) -> bytes:
        return token_of(self.job_id, self.word, self.replaces)

    def stands_for(self, job: Job | None) -> bool:
        """Whether a job waits to be fetched by this token."""
        return (
            job is not None
            and job.state is State.AVAILABLE
            and job.token == self.word
            and job.queue == self.queue
            and job.priority == self.priority
        )

    def superseded(self, stored: Stored) -> bool:
        """Whether the commit that this token was written for can't succeed any more; `stored` is the leader's word,
        read after the token.
        """
        return stored.sequence > self.replaces

    @classmethod
    def of(cls, message: Reply, queue: str) -> Token:
        """Of a consumer's message. Raises ValueError, as `read`."""
        sequence, at = place_of(message)
        return cls.read(message.data, queue, message.subject.decode(), message.reply.decode(), at, sequence)

    @classmethod
    def read(cls, data: bytes, queue: str, subject: str, ack: str, stored_at: int, sequence: int) -> Token:
        """Of what is stored under a ready subject."""
        return cls(*read_token(data), queue, priority_of(subject), ack, stored_at, lane_of(subject), sequence)


def priority_of(subject: str) -> int:
    """The priority of a ready subject's tokens."""
    return int(subject.split(".")[3]) - 100


def lane_for(job: Job) -> Lane:
    """Where a job's token stands for those who can run it, once somebody who fetched couldn't."""
    version = version_of(job.version)
    return handler_lane(job.type, None if version is None else version.token)

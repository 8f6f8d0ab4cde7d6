"""Which ready subjects hold tokens, and pulling them."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_nats.errors import unavailable
from ojs_nats.job import Job, State
from ojs_nats.store.api import ApiError
from ojs_nats.store.durables import Durables
from ojs_nats.store.link import Failed, Link, Reply, status
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.records import Stored
from ojs_nats.store.tokens import read_token, token_of

__all__ = ["DROP_AFTER_MS", "Pulls", "Token", "priority_of"]

log = structlog.get_logger(__name__)

DROP_AFTER_MS: Final = 60_000
"""A token whose record never came by then belongs to a push that never was."""
_PULL_TIMEOUT_S: Final = 2.0
_CONSUMER_NOT_FOUND: Final = frozenset({503, 409})


class _State(Struct, frozen=True):
    subjects: dict[str, int] | None = None


class _Info(Struct, frozen=True):
    """Of a stream, what a look needs: the rest is a kilobyte that would cost more to decode than the look's other work."""

    state: _State = _State()
    error: ApiError | None = None


_decode_info: Final = msgspec.json.Decoder(_Info).decode


class Token(NamedTuple):
    """A token in hand: what it says, where it came from and how to answer for it."""

    job_id: str
    word: str
    replaces: int
    queue: str
    priority: int
    ack: str
    stored_at: int
    front: bool
    """Whether it goes ahead of its priority: it had been handed out, or let go, before."""

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
        """Whether the commit that this token was written for can't succeed any more; `stored` is the leader's word, read
        after the token.
        """
        return stored.sequence > self.replaces

    @classmethod
    def of(cls, message: Reply, queue: str) -> Token:
        job_id, word, replaces = read_token(message.data)
        subject = message.subject.decode()
        ack = message.reply.decode()
        stored_at = int(ack.split(".")[-2]) // 1_000_000
        front = subject.endswith(".front")
        return cls(job_id, word, replaces, queue, priority_of(subject), ack, stored_at, front)


class Pulls:
    """Looks and pulls on one connection."""

    def __init__(self, bulk: Link, durables: Durables, config: StoreConfig) -> None:
        self._bulk = bulk
        self._durables = durables
        self._config = config
        self._info = f"$JS.API.STREAM.INFO.{config.ready_stream}"

    async def subjects(self, queue: str) -> dict[str, int]:
        """The ready subjects of a queue that hold tokens, in the order of hand-out, and how many they hold.

        Raises OjsError backend_unavailable.
        """
        request = b'{"subjects_filter":"%s"}' % self._config.ready_of_queue(queue).encode()
        answer = await self._bulk.request(self._info, request)
        if isinstance(answer, Failed):
            raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
        info = _decode_info(answer.data)
        if info.error is not None:
            raise unavailable(f"NATS refused to say what is ready: {info.error.description}")
        found = info.state.subjects or {}
        ready = (subject for subject in found if not self._config.seat_size(subject))
        return {subject: found[subject] for subject in sorted(ready, key=_hand_out_order)}

    async def pull(self, subject: str, queue: str, wanted: int) -> list[Token]:
        """Up to `wanted` tokens of one subject, in order; none while its queue is paused.

        Raises OjsError backend_unavailable.
        """
        consumer = self._config.ready_consumer(subject)
        request = b'{"batch":%d,"no_wait":true}' % wanted
        pull = f"$JS.API.CONSUMER.MSG.NEXT.{self._config.ready_stream}.{consumer}"
        if not await self._durables.ready(subject, queue):
            return []
        made_again = False
        while True:
            outcome = await self._bulk.collect(pull, request, wanted, _PULL_TIMEOUT_S)
            if isinstance(outcome, Failed):
                raise unavailable(f"NATS JetStream can't be reached: {outcome.reason}")
            if outcome.messages:
                if tokens := self._tokens(outcome.messages, queue):
                    return tokens
                continue
            if outcome.closing is None:
                raise unavailable("NATS did not answer a pull")
            if made_again or status(outcome.closing) not in _CONSUMER_NOT_FOUND:
                return []
            # It was idle for an hour and left, its leader moved, or the queue was paused.
            if not await self._durables.make(subject, queue):
                return []
            made_again = True

    def _tokens(self, messages: list[Reply], queue: str) -> list[Token]:
        tokens = []
        for message in messages:
            try:
                tokens.append(Token.of(message, queue))
            except ValueError:
                log.warning("message among the tokens dropped: it is none", subject=message.subject.decode())
                self._bulk.publish(message.reply.decode(), b"+TERM")
        return tokens


def priority_of(subject: str) -> int:
    """The priority of a ready subject's tokens."""
    return int(subject.split(".")[3]) - 100


def _hand_out_order(subject: str) -> tuple[int, bool]:
    return -priority_of(subject), subject.count(".") == 3  # `front` before its own priority

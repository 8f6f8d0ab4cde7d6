"""Getting tokens, and answering for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from ojs_engine.jetstream.connection import Reply
from ojs_engine.jetstream.consumers import SECOND_NS, pull, pulled
from ojs_engine.store.dispatch.head_tokens import HeadTokens, TokenTimings
from ojs_engine.store.dispatch.queue_consumers import QueueConsumers
from ojs_engine.store.dispatch.ready_subjects import ReadySubjects
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import Token

log = structlog.get_logger(__name__)


class TokenReader:
    """Pulls on one connection."""

    def __init__(
        self, bucket: Bucket, consumers: QueueConsumers, queues: Queues, wakeups: Wakeups, timings: TokenTimings
    ) -> None:
        self._timings = timings
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._wakeups = wakeups
        self._consumers = consumers
        self._heads = HeadTokens(bucket, timings)
        self._queues = queues
        self._config = bucket.config

    async def pull(
        self, subject: str, queue: str, wanted: int, *, much: bool = False, before_others: bool = False
    ) -> list[Token]:
        """Up to `wanted` tokens of one subject, in order, and fewer only if it has no more to give now; none while its queue is
        paused. Each has to be answered for. Who asks for `much` gets what no other process has in hand, if that is possible.

        `before_others` says that there are subjects which this one comes before: where a token was heard of that can't be
        pulled yet, it is waited for. Raises OjsError backend_unavailable.
        """
        known = self._wakeups.ready(queue)
        if known is None:
            return await self._pull_somehow(subject, queue, wanted, much=much)
        now = asyncio.get_running_loop().time
        arrivals = known.arrivals
        tokens = await self._counted(known, subject, queue, wanted, much=much)
        # A consumer that has lost count says it has nothing, and looks only if somebody waits (docs/adr/029).
        lost = not tokens and self._consumers.serve(subject) and known.overdue(subject, now())
        if lost or (not tokens and before_others and known.ahead(subject, now())):
            tokens = await self._counted(known, subject, queue, wanted, much=much, wait_s=self._timings.catch_up_s)
        if len(tokens) < wanted:
            known.dry(subject, arrivals, now())
        return tokens

    async def _counted(
        self, known: ReadySubjects, subject: str, queue: str, wanted: int, *, much: bool, wait_s: float = 0.0
    ) -> list[Token]:
        """A pull of which others of the process know."""
        known.pulling(subject, wanted)
        tokens: list[Token] = []
        try:
            tokens = await self._pull_somehow(subject, queue, wanted, much=much, wait_s=wait_s)
        finally:
            known.pulled(subject, wanted, [token.sequence for token in tokens], asyncio.get_running_loop().time())
        return tokens

    async def _pull_somehow(self, subject: str, queue: str, wanted: int, *, much: bool, wait_s: float = 0.0) -> list[Token]:
        way = await self._consumers.way(subject, queue, much=much)
        if way == "durable":
            tokens = await self._pull(subject, queue, wanted, wait_s)
            if tokens is not None:
                return tokens
            # It was idle and left, its leader moved, or the queue was paused.
            way = await self._consumers.make(subject, queue)
            if way == "durable":
                return await self._pull(subject, queue, wanted, wait_s) or []
        return [] if way == "held" else await self._take(subject, queue, wanted)

    async def _pull(self, subject: str, queue: str, wanted: int, wait_s: float) -> list[Token] | None:
        """From the subject's durable, which may wait so long for the first; None if it is gone."""
        stream, name = self._config.ready_stream, self._config.ready_consumer(subject)
        which = {"batch": wanted, "no_wait": True}
        if wait_s:
            which["expires"] = int(wait_s * SECOND_NS)
        while True:
            found = pulled(await pull(self._bulk, stream, name, which, self._timings.pull_timeout_s))
            if not found:
                return None if found is None else []
            if tokens := self._tokens(found, queue):
                return tokens

    def _tokens(self, messages: list[Reply], queue: str) -> list[Token]:
        tokens = []
        for message in messages:
            try:
                tokens.append(Token.of(message, queue))
            except ValueError:
                log.warning("message among the tokens dropped: it is none", subject=message.subject.decode())
                self._bulk.publish(message.reply.decode(), b"+TERM")
        return tokens

    async def _take(self, subject: str, queue: str, wanted: int) -> list[Token]:
        """From the subject's head. That its queue isn't paused takes the leader's word: no consumer is there to be deleted."""
        while True:
            heads = await self._heads.take(subject, wanted)
            if heads and await self._queues.surely_held(queue):
                for head in heads:
                    self._heads.back(subject, head.sequence)
                return []
            tokens = []
            for sequence, at, data in heads:
                try:
                    tokens.append(Token.read(data, queue, subject, "", at, sequence))
                except ValueError:
                    log.warning("message among the tokens dropped: it is none", subject=subject)
                    self._heads.drop(sequence)
            if tokens or not heads:
                return tokens

    # Answering for tokens

    def done(self, token: Token) -> None:
        """The token leads to nothing more."""
        if token.ack:
            self._nats.publish(token.ack, b"+ACK", along=True)
        else:
            self._heads.drop(token.sequence)

    async def all_done(self, tokens: Sequence[Token]) -> None:
        """The same for tokens of one pull; returns when they count in their queue no more, or after half a second.

        A consumer acts on acks in order: the last one's answer is enough.
        """
        if tokens and tokens[-1].ack:
            for token in tokens[:-1]:
                self.done(token)
            await self._bulk.request(tokens[-1].ack, b"+ACK", timeout_s=self._timings.gone_s)
        else:
            await self._heads.drop_all([token.sequence for token in tokens], self._timings.gone_s)

    def back(self, token: Token) -> None:
        """The token keeps its place, and may be had again at once."""
        subject = self._subject(token)
        if token.ack:
            self._bulk.publish(token.ack, b"-NAK")
        else:
            self._heads.back(subject, token.sequence)
        if (known := self._wakeups.ready(token.queue)) is not None:
            known.arrived(subject, asyncio.get_running_loop().time())

    def later(self, token: Token, seconds: float) -> None:
        """The token may be had again after a while; those behind it go ahead."""
        if token.ack:
            self._bulk.publish(token.ack, b'-NAK {"delay": %d}' % int(seconds * 1_000_000_000))
        else:
            self._heads.later(self._subject(token), token.sequence, seconds)

    def gated(self, token: Token) -> None:
        """The token's job asks for a gate: no two fetches should have such a token."""
        self._consumers.gated(self._subject(token))

    def _subject(self, token: Token) -> str:
        return self._config.ready(token.queue, token.priority, token.lane)

"""Several job records at once, all or none: one JetStream atomic batch.

Timers and notes go ahead, as in any commit. Tokens follow, in the order of the jobs: ahead of a batch of thousands they
would be met before their records. The safety net finds the tokens that a crash between the two has left out.

On one server with files a batch takes milliseconds and stalls the bucket's other writers meanwhile, so only what has
to be atomic comes this way: batch pushes, atomic bulk operations, and the replacement of a unique job.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple

import structlog

from ojs_engine.base.errors import OjsError, batch_too_large, unavailable
from ojs_engine.domain.job import Timer
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.api import ApiError
from ojs_engine.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_engine.jetstream.headers import expecting
from ojs_engine.store.records.answers import ack_of
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.writer import Conflict, Hint, Write, paced

log = structlog.get_logger(__name__)

_TOO_MANY: Final = 10199
_DEFAULT_MOST: Final = 1_000
_BUSY: Final = frozenset({10176, 10210})
"""Too many batches under way; the former is also how a batch ends whose beginning was refused for that."""
_LIMIT: Final = re.compile(r"too large: (\d+)")


class AtomicCommit(NamedTuple):
    """A transition over the record's revision `expected` (0: none); `op` is that of the moment it was made with."""

    transition: Transition
    expected: int
    op: str


class _Batch(Write):
    """All messages of a batch as one write; whether it is stored shows in the record of its last job."""

    __slots__ = ("_atomic", "_items", "_messages")

    def __init__(self, atomic: Atomic, messages: Sequence[Write], items: int) -> None:
        last = messages[-1]
        super().__init__(last.subject, last.body, last.expected, last.mine, what="the batch")
        self._atomic = atomic
        self._messages = messages
        self._items = items

    def send(self, nats: Connection) -> None:
        self._answer = self._atomic.send(nats, self._messages)

    def refusal(self, error: ApiError) -> OjsError | None:
        self._atomic.learn(error)
        if error.err_code == _TOO_MANY:
            return batch_too_large(self._items, self._atomic.room() * self._items // len(self._messages))
        problem = None if error.err_code in _BUSY else super().refusal(error)
        if problem is None or problem.code == "storage_full":
            return problem
        return OjsError("backend_error", f"NATS JetStream refused a batch: {problem.message}")


class Atomic:
    """Writes batches; any number at once."""

    def __init__(self, bucket: Bucket) -> None:
        self._timings = bucket.writes
        self._nats = bucket.nats
        self._writer = bucket.writer
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._config = bucket.config
        self._prefix = secrets.token_hex(6)
        self._batches = itertools.count(1)
        self.most: int | None = None
        """Messages that this nats-server takes in one batch, once it has refused one."""

    async def commit(self, commits: Sequence[AtomicCommit], others: Sequence[Write] = (), items: int | None = None) -> None:
        """Store transitions of different jobs together with other records; returns when they and all hints are stored.

        `items` is how many jobs the request has, if some of the transitions are of others.

        Raises Conflict if any record is at another revision, OjsError batch_size_exceeded, envelope_too_large, or
        backend_unavailable, which may leave it open whether they are stored; in no other case is anything.
        """
        writes = [self._committer.write(*commit) async for commit in paced(commits)]
        hints = [hint for write in writes for hint in write.hints if hint.kind != "token"]
        tokens = [hint for write in writes for hint in write.hints if hint.kind == "token"]
        await self._write_ahead(hints)
        batch = _Batch(self, [*others, *writes], len(commits) if items is None else items)
        self._writer.begin(batch)
        try:
            await self._writer.finish(batch, _now() + self._timings.batch_s, look_s=self._nats.timings.request_s)
        except (Conflict, OjsError) as error:
            if isinstance(error, Conflict) or not batch.unsure:
                self._withdraw(hints)
            raise
        for commit in commits:
            self._committer.stored(commit.transition, commit.op)
        await self._rearm(commits)
        await self._hand_out(tokens)
        await self._committer.take_out([commit.transition for commit in commits])

    async def room_for(self, jobs: int) -> int | None:
        """How many of so many jobs one batch has room for; None while NATS doesn't say.

        nats-server tells its limit only to who goes beyond it, so this sends a batch that can't be stored.
        """
        subject = self._config.record("probe", self._prefix)
        probes = [Hint("note", subject, b"", expecting(1)), *[Hint("note", subject)] * (jobs - 1)]
        ack = ack_of(await self.send(self._nats, probes))
        if isinstance(ack, Failed):
            return None
        if ack.error is not None:
            self.learn(ack.error)
        return jobs if self.most is None else min(jobs, self.room())

    # Ahead

    async def _write_ahead(self, hints: Sequence[Hint]) -> None:
        """Timers and notes. Raises OjsError backend_unavailable if one of them can't be stored."""
        if hints and await self._writer.store(hints, _now() + self._timings.hints_s):
            self._withdraw(hints)
            raise unavailable("NATS JetStream can't store the jobs' timers now")

    async def _rearm(self, commits: Sequence[AtomicCommit]) -> None:
        """Set the timers again that may have fired before their records were there, and were let go for that."""
        now = self._clock.now()
        armed = [(one.job.id, effect) for one, _, _ in commits for effect in one.effects if isinstance(effect, Timer)]
        fired = [self._committer.timer(job_id, timer) for job_id, timer in armed if timer.at <= now]
        left = await self._writer.store(fired, _now() + self._timings.batch_s, again=True)
        if left:
            log.warning("timers of a batch are left to the safety net", jobs=len(left))

    def _withdraw(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            if hint.kind == "timer":
                self._writer.purge(hint.subject)

    # The batch

    def room(self) -> int:
        """Return how many messages a batch has room for; nats-server's default where it isn't known."""
        return self.most or _DEFAULT_MOST

    def send(self, nats: Connection, messages: Sequence[Write | Hint]) -> asyncio.Future[ReplyOrFailure]:
        """One batch in one socket write; only its last message is answered."""
        batch = f"Nats-Batch-Id: {self._prefix}{next(self._batches)}\r\nNats-Batch-Sequence:"
        for place, message in enumerate(messages[:-1], 1):
            nats.publish(message.subject, message.body, f"{message.headers}{batch} {place}\r\n")
        last = messages[-1]
        headers = f"{last.headers}{batch} {len(messages)}\r\nNats-Batch-Commit: 1\r\n"
        return nats.request(last.subject, last.body, headers, self._timings.batch_answer_s)

    def learn(self, error: ApiError) -> None:
        """nats-server says in words how many messages it takes."""
        if error.err_code == _TOO_MANY and (found := _LIMIT.search(error.description)):
            self.most = int(found[1])

    # Behind

    async def _hand_out(self, tokens: Sequence[Hint]) -> None:
        """Publish the tokens. Those that can't be stored are left to the safety net: the jobs are."""
        left = await self._writer.store(tokens, _now() + self._timings.hints_s)
        if left:
            log.warning("tokens of a batch are left to the safety net", jobs=len(left))


def _now() -> float:
    return asyncio.get_running_loop().time()

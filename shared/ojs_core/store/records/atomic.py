"""Several job records at once, all or none: one JetStream atomic batch.

Timers and step hints go ahead, as in any commit. Tokens follow, in the order of the jobs: ahead of a batch of thousands they
would be met before their records. A crash between the two is made good by the outbox, a timer inside the batch that names
every token; it is taken back when all of them are stored.

On one server with files a batch takes milliseconds and stalls the bucket's other writers meanwhile, so only what has to be
atomic comes this way: batch pushes, atomic bulk operations, and the replacement of a unique job.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import structlog

from ojs_core.base.errors import OjsError, batch_too_large, too_large, unavailable
from ojs_core.domain.job import State
from ojs_core.domain.transitions.result import Transition
from ojs_core.jetstream.api import PubAck, refused
from ojs_core.jetstream.connection import REQUEST_TIMEOUT_S, Failed, ReplyOrFailure
from ojs_core.jetstream.due_messages import Due, DueMessages
from ojs_core.jetstream.headers import expecting, schedule
from ojs_core.store.records.answers import FIRST_PAUSE_S, ack_of, failure, outcome, pause_or_raise, stored, worth_another_try
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.commit import HEADROOM, Conflict, encode_job
from ojs_core.store.records.records import Stored
from ojs_core.store.records.swap import Swap

log = structlog.get_logger(__name__)

_SERVICE: Final = "batch"
_TIMEOUT_S: Final = 10.0
_DEADLINE_S: Final = 10.0
_HINTS_S: Final = 3.0
_CHUNK: Final = 500
"""Messages written, or records read, between two looks at the event loop."""
_OUTBOX_MS: Final = 2_000
_OUTBOX_JOBS_PER_MS: Final = 10
"""The outbox waits a millisecond longer for each of so many jobs; the tokens are there several times as fast."""
_TOO_MANY: Final = 10199
_DEFAULT_MOST: Final = 1_000
_BUSY: Final = frozenset({10176, 10210})
"""Too many batches under way; the former is also how a batch ends whose beginning was refused for that."""
_LIMIT: Final = re.compile(r"too large: (\d+)")

T = TypeVar("T")


def _has_hints(transition: Transition) -> bool:
    return bool(transition.arm or transition.step or transition.releases)


class AtomicCommit(NamedTuple):
    """A transition over the record's revision `expected` (0: none); `op` is that of the moment it was made with."""

    transition: Transition
    expected: int
    op: str


class _Message(NamedTuple):
    subject: str
    body: bytes
    headers: str


class Atomic:
    """Writes batches; any number at once."""

    def __init__(self, bucket: Bucket) -> None:
        self._nats = bucket.nats
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._config = bucket.config
        self._prefix = secrets.token_hex(6)
        self._batches = itertools.count(1)
        self.most: int | None = None
        """Messages that this nats-server takes in one batch, once it has refused one."""

    async def commit(self, commits: Sequence[AtomicCommit], swaps: Sequence[Swap] = (), items: int | None = None) -> None:
        """Store transitions of different jobs together with other records; returns when they and all hints are stored.

        `items` is how many jobs the request has, if some of the transitions are of others.

        Raises Conflict if any record is at another revision, OjsError batch_size_exceeded, envelope_too_large, or
        backend_unavailable, which may leave it open whether they are stored; in no other case is anything.
        """
        messages = [_Message(swap.subject, swap.body, swap.headers) for swap in swaps]
        messages += [self._record(commit) async for commit in _paced(commits)]
        await self._write_ahead(commits)
        outbox = self._config.batch_timer(commits[0].op)
        try:
            await self._store(messages, commits, outbox, len(commits) if items is None else items)
        except Conflict:
            self._withdraw(commits)
            raise
        except OjsError as error:
            if error.code != "backend_unavailable":
                self._withdraw(commits)
            raise
        for commit in commits:
            self._committer.stored(commit.transition, commit.op)
        await self._rearm(commits)
        if any(commit.transition.token for commit in commits) and await self._hand_out(commits):
            self._committer.purge(outbox)
        await self._committer.left_behind([commit.transition for commit in commits])

    async def room_for(self, jobs: int) -> int | None:
        """How many of so many jobs one batch has room for; None while NATS doesn't say.

        nats-server tells its limit only to who goes beyond it, so this sends a batch that can't be stored.
        """
        wanted = jobs + 1  # for the outbox
        subject = self._config.record("probe", self._prefix)
        ack = ack_of(await self._send([_Message(subject, b"", expecting(1)), *[_Message(subject, b"", "")] * (wanted - 1)]))
        if isinstance(ack, Failed):
            return None
        self._learn(ack)
        return jobs if self.most is None else min(jobs, self.room(1))

    # Ahead

    def _record(self, commit: AtomicCommit) -> _Message:
        transition = commit.transition
        body = encode_job(transition.job)
        if len(body) + HEADROOM > self._nats.max_payload:
            raise too_large("envelope_too_large", "the job's record", len(body), self._nats.max_payload - HEADROOM)
        headers = self._committer.record_headers(transition, commit.expected)
        return _Message(self._config.job(transition.job.id), body, headers)

    async def _write_ahead(self, commits: Sequence[AtomicCommit]) -> None:
        """Timers and step hints. Raises OjsError backend_unavailable if one of them can't be stored."""
        deadline = _now() + _HINTS_S
        waiting = [commit.transition for commit in commits if _has_hints(commit.transition)]
        pause = FIRST_PAUSE_S
        failure = unavailable("NATS JetStream can't store the jobs' timers now")
        while waiting:
            written = [(transition, self._hints(transition)) async for transition in _paced(waiting)]
            waiting = [one for one, hints in written if not all([stored(await outcome(hint)) for hint in hints])]
            if waiting:
                try:
                    pause = await pause_or_raise(self._nats, pause, deadline, failure)
                except OjsError:
                    self._withdraw(commits)
                    raise

    def _hints(self, transition: Transition) -> list[asyncio.Future[ReplyOrFailure]]:
        hints = []
        if transition.arm is not None:
            hints.append(self._committer.write_timer(transition.job.id, transition.arm))
        if transition.step is not None:
            hints.append(self._committer.write_step(transition))
        hints += self._committer.write_releases(transition)
        return hints

    async def _rearm(self, commits: Sequence[AtomicCommit]) -> None:
        """Set the timers again that may have fired before their records were there, and were let go for that."""
        now = self._clock.now()
        fired = [(one.job.id, one.arm) for one, _, _ in commits if one.arm is not None and one.arm.at <= now]
        try:
            await asyncio.gather(*(self._committer.rearm(job_id, timer) for job_id, timer in fired))
        except OjsError as error:
            log.warning("timers of a batch are left to the safety net", jobs=len(fired), reason=error.message)

    def _withdraw(self, commits: Sequence[AtomicCommit]) -> None:
        for transition, _, _ in commits:
            if transition.arm is not None:
                self._committer.purge(self._config.timer(transition.job.id, transition.arm.op))

    # The batch

    async def _store(self, messages: list[_Message], commits: Sequence[AtomicCommit], outbox: str, items: int) -> None:
        tokens = [f"{commit.transition.job.id} {commit.transition.job.token}" for commit in commits if commit.transition.token]
        deadline = _now() + _DEADLINE_S
        pause = FIRST_PAUSE_S
        unsure = False
        while True:
            closing = [self._outbox(outbox, tokens)] if tokens else []
            ack = ack_of(await self._send([*messages, *closing]))
            if stored(ack):
                return
            unsure = unsure or (isinstance(ack, Failed) and ack.sent)
            if unsure:
                last = commits[-1]
                one = last.transition.job.id
                if await self._committer.look(one, last.expected, last.op, deadline, least_s=REQUEST_TIMEOUT_S):
                    return
            if isinstance(ack, PubAck) and ack.error is not None and not unsure:
                self._learn(ack)
                if ack.conflict:
                    raise Conflict
                if ack.error.err_code == _TOO_MANY:
                    raise batch_too_large(items, self.room(len(closing)) * items // len(messages))
                if ack.error.err_code not in _BUSY and not worth_another_try(ack.error):
                    if (problem := refused("the batch", ack.error)).code == "storage_full":
                        raise problem
                    raise OjsError("backend_error", f"NATS JetStream refused a batch: {refused('it', ack.error).message}")
            # Only of what is certain may the caller take hints back.
            problem = unavailable("NATS JetStream can't store the batch now") if unsure else failure("the batch", ack)
            pause = await pause_or_raise(self._nats, pause, deadline, problem)

    def room(self, others: int) -> int:
        """Jobs that a batch has room for beside `others` messages; nats-server's default where it isn't known."""
        return max((self.most or _DEFAULT_MOST) - others, 0)

    def _outbox(self, subject: str, tokens: list[str]) -> _Message:
        at = self._clock.now() + _OUTBOX_MS + len(tokens) // _OUTBOX_JOBS_PER_MS
        op = subject.rpartition(".")[2]
        return _Message(subject, "\n".join(tokens).encode(), schedule(at, self._config.batch_due(op)))

    def _send(self, messages: list[_Message]) -> asyncio.Future[ReplyOrFailure]:
        """One batch in one socket write; only its last message is answered."""
        batch = f"Nats-Batch-Id: {self._prefix}{next(self._batches)}\r\nNats-Batch-Sequence:"
        for place, message in enumerate(messages[:-1], 1):
            self._nats.publish(message.subject, message.body, f"{message.headers}{batch} {place}\r\n")
        last = messages[-1]
        headers = f"{last.headers}{batch} {len(messages)}\r\nNats-Batch-Commit: 1\r\n"
        return self._nats.request(last.subject, last.body, headers, _TIMEOUT_S)

    def _learn(self, ack: PubAck) -> None:
        """nats-server says in words how many messages it takes."""
        if ack.error is not None and ack.error.err_code == _TOO_MANY and (found := _LIMIT.search(ack.error.description)):
            self.most = int(found[1])

    # Behind

    async def _hand_out(self, commits: Sequence[AtomicCommit]) -> bool:
        """Publish the tokens; whether all are stored. If not, the outbox will: the jobs are stored, and so is it."""
        deadline = _now() + _HINTS_S
        waiting = [commit for commit in commits if commit.transition.token]
        pause = FIRST_PAUSE_S
        failure = unavailable("NATS JetStream can't store the jobs' tokens now")
        while waiting:
            written = [(commit, self._token(commit)) async for commit in _paced(waiting)]
            waiting = [commit for commit, token in written if not stored(await outcome(token))]
            if waiting:
                try:
                    pause = await pause_or_raise(self._nats, pause, deadline, failure)
                except OjsError:
                    log.warning("tokens of a batch are left to its outbox", jobs=len(waiting))
                    return False
        return True

    def _token(self, commit: AtomicCommit) -> asyncio.Future[ReplyOrFailure]:
        transition = commit.transition
        return self._committer.token(transition.job, commit.expected, front=transition.token == "front")


class Outbox:
    """Finishes batches whose writer died, or could not store their tokens. Any number of schedulers may."""

    def __init__(self, bucket: Bucket) -> None:
        self._records = bucket.records
        self._committer = bucket.committer
        self.messages = DueMessages(bucket.nats, bucket.bulk, bucket.config, _SERVICE)

    async def handle(self, batch: list[Due]) -> None:
        """Publish every token that may be missing. Raises OjsError backend_unavailable: the rest is left to come again."""
        for place, due in enumerate(batch):
            try:
                number = await self._finish(due, batch[place:])
            except OjsError:
                raise
            except Exception:  # one batch's trouble must not keep the others waiting
                log.exception("an outbox can't be handled and will come back", outbox=due.job_id)
                continue
            log.info("a batch was finished from its outbox", tokens=number)
            await self.messages.done([due])

    async def _finish(self, due: Due, waiting: Sequence[Due]) -> int:
        words = tokens_of(due.data)
        ids = list(words)
        number = 0
        for start in range(0, len(ids), _CHUNK):
            self.messages.working(waiting)
            found = await self._records.many(ids[start : start + _CHUNK])
            lost = [
                (stored.job, stored.sequence)
                for job_id, stored in [(job_id, await self._surely(job_id, stored)) for job_id, stored in found.items()]
                if stored.job is not None and stored.job.state is State.AVAILABLE and stored.job.token == words[job_id]
            ]
            await asyncio.gather(*(self._committer.repeat_token(job, sequence) for job, sequence in lost))
            number += len(lost)
        return number

    async def _surely(self, job_id: str, stored: Stored) -> Stored:
        """That a record isn't there takes the leader's word."""
        if stored.sequence or self._records.nearest_is_leader:
            return stored
        return await self._records.leader_for_hint(job_id)


def tokens_of(outbox: bytes) -> dict[str, str]:
    """What an outbox is to hand out: the word of each job's token, by the job's id."""
    return dict(line.split(" ", 1) for line in outbox.decode().splitlines())


async def _paced(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with the event loop let in now and then."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _CHUNK == 0:
            await asyncio.sleep(0)


def _now() -> float:
    return asyncio.get_running_loop().time()

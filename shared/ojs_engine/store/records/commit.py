"""Commits: a job's transition as one write, with its effects ahead of the record and behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from ojs_engine.base.errors import OjsError, duplicate, too_large
from ojs_engine.domain.job import Job, State, Timer
from ojs_engine.domain.transitions.effects import Apart, CancelTimer, Drop, Note, StaleToken, Token
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.headers import ringing, time_to_live
from ojs_engine.jetstream.reading import Unreadable
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.gates import LaneRule
from ojs_engine.store.records.records import Stored, job_reader
from ojs_engine.store.records.tokens import token_of
from ojs_engine.store.records.writer import Conflict, Hint, Write, Writer, alarm
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import verbosity
from ojs_engine.telemetry.transitions import log_transition
from ojs_link.timings import Timings

HEADROOM: Final = 1024
"""What a record's headers may take of the server's max_payload."""


_CONFLICTS: Final = metrics.COMMITS.labels("conflict")
_FAILURES: Final = metrics.COMMITS.labels("failed")

encode_job = msgspec.json.Encoder().encode


class CommitTimings(Timings, frozen=True, kw_only=True):
    """How long a commit is tried, and how much is sent at once."""

    deadline_s: float = 3.0
    """For how long one is tried."""
    repeat_within_ms: int = 60_000
    """A repeated push tends to the token of a job this young; what is older is the safety net's."""
    portion_bytes: int = 2 * 1024 * 1024
    """Records sent before their answers are awaited: behind more than that, the last would be given up for standing in line."""


class _Commit(NamedTuple):
    """A transition under way: its write, or why there is none. `op` is that of the moment it was made with."""

    transition: Transition
    op: str
    write: Write | OjsError


class Committer:
    """Writes transitions. Several at once leave in one socket write, or a few if they are large, and are awaited together."""

    def __init__(
        self, nats: Connection, writer: Writer, config: StoreConfig, timings: CommitTimings, lanes: LaneRule | None = None
    ) -> None:
        self._timings = timings
        self._lanes = lanes
        self._writer = writer
        self._nats = nats
        self._config = config
        self.followers: dict[str, Callable[[Transition, Drop], None]] = {"result": self._drop_result}
        """By what a transition drops: called with it once it is stored. Others add theirs when they are built."""
        self.stale_tokens: Callable[[Sequence[Job]], Awaitable[None]] | None = None
        """Takes out the tokens of jobs, as they were, that stand for nothing any more."""

    async def commit(self, transition: Transition, expected: int, op: str) -> int:
        """Store one transition over the record's revision `expected` (0: none); returns the new sequence.

        `op` is the `Moment.op` that the transition was made with. Raises as `Writer.write`.
        """
        sequence = await self._complete(self._begin(transition, expected, op), _now() + self._timings.deadline_s)
        for effect in transition.effects:
            if isinstance(effect, StaleToken):
                await self.take_out([transition])
        return sequence

    async def commit_all(self, commits: Sequence[tuple[Transition, int, str]]) -> list[int | Conflict | OjsError]:
        """Store many transitions of different jobs; one outcome each, in order.

        Large ones are sent in portions, each of which is tried for as long as one commit. When NATS has failed one,
        those that follow aren't sent.
        """
        outcomes: list[int | Conflict | OjsError] = []
        stored: list[Transition] = []
        unsent = iter(commits)
        away: OjsError | None = None
        while away is None and (begun := self._begin_portion(unsent)):
            deadline = _now() + self._timings.deadline_s
            for one in begun:
                try:
                    outcomes.append(await self._complete(one, deadline))
                    stored.append(one.transition)
                except (Conflict, OjsError) as error:
                    outcomes.append(error)
                    if isinstance(error, OjsError) and error.code == "backend_unavailable":
                        away = error
        if away is not None:
            outcomes += [away for _ in unsent]
        await self.take_out(stored)
        return outcomes

    async def take_out(self, transitions: Sequence[Transition]) -> None:
        """To be awaited before anybody hears that transitions are stored: their jobs may have left tokens."""
        stale = [effect.job for one in transitions for effect in one.effects if isinstance(effect, StaleToken)]
        if stale and self.stale_tokens is not None:
            await self.stale_tokens(stale)

    def stored(self, transition: Transition, op: str) -> None:
        """To be called once for each transition that is stored."""
        metrics.stored(transition.job, op)
        if verbosity.debug:
            log_transition(transition.job, op)
        for effect in transition.effects:
            if isinstance(effect, Drop) and effect.what in self.followers:
                self.followers[effect.what](transition, effect)

    async def repeat_token(self, job: Job, sequence: int) -> None:
        """Publish an available job's token once more, in case the first was lost; `sequence` is its record's.

        Two tokens with one word do no harm: the first that is met wins the claim, the other is dropped as stale.
        """
        await self._writer.set(self.token(job, sequence))

    async def tend(self, found: Stored, now: int) -> None:
        """For a push repeated by a client that never heard its 201: the first may have lost its token on the way.

        The token is the same one again, so a job that still has its first keeps its place in the queue.
        """
        job = found.job
        if job is not None and job.state is State.AVAILABLE and now - (job.enqueued_at or 0) < self._timings.repeat_within_ms:
            await self.repeat_token(job, found.sequence)

    async def taken(self, found: Stored, now: int) -> OjsError:
        """Tend to the job whose id a push wants to take, and return the refusal of that."""
        assert found.job is not None
        await self.tend(found, now)
        return duplicate(found.job.id, found.job.state)

    async def rearm(self, job_id: str, timer: Timer) -> None:
        """Set a fired timer again on its own subject; one that is live already stays as it is."""
        await self._writer.set(self.timer(job_id, timer))

    # What a commit consists of

    def write(self, transition: Transition, expected: int, op: str) -> Write:
        """A transition as a write of its record, with its hints. Raises OjsError envelope_too_large."""
        job = transition.job
        body = encode_job(job)
        self._check_size("the job's record", len(body))
        cancelled = None
        for effect in transition.effects:
            if isinstance(effect, CancelTimer):
                cancelled = self._config.timer(job.id, effect.op)
        return Write(
            self._config.job(job.id),
            body,
            expected,
            partial(_carries, job.id, op),
            hints=self.hints(transition, expected) if transition.effects else (),
            cancel=cancelled,
            ttl_s=transition.ttl_s,
            rings=self._rings(job.id, job.timer),
            what="the job",
        )

    def hints(self, transition: Transition, expected: int) -> list[Hint]:
        """Make those that go ahead of a record over the revision `expected`. Raises OjsError envelope_too_large."""
        job = transition.job
        hints: list[Hint] = []
        for effect in transition.effects:
            match effect:
                case Token():
                    hints.append(self.token(job, expected))
                case Timer():
                    hints.append(self.timer(job.id, effect))
                case Note():
                    subject = self._config.note(effect.topic, effect.scope, job.id)
                    hints.append(Hint("note", subject, effect.body.encode()))
                case Apart():
                    self._check_size("the job's result", len(effect.body))
                    subject = self._config.result(job.id, effect.op)
                    hints.append(Hint("blob", subject, bytes(effect.body), time_to_live(effect.ttl_s)))
                case _:
                    pass
        return hints

    def token(self, job: Job, replaces: int) -> Hint:
        """The token of an available job whose commit expects the sequence `replaces`."""
        lane = "line" if self._lanes is None or not self._lanes.asks(job) else self._lanes.lane(job)
        subject = self._config.ready(job.queue, job.priority, lane)
        return Hint("token", subject, token_of(job.id, job.token, replaces))

    def timer(self, job_id: str, timer: Timer) -> Hint:
        """The message with which a job's timer fires."""
        return alarm(self._config.timer(job_id, timer.op), self._config.due(timer.service, job_id), timer.at)

    def _rings(self, job_id: str, timer: Timer | None) -> str:
        if timer is None or timer.every_s is None:
            return ""
        return ringing(timer.every_s, self._config.due(timer.service, job_id), self._config.ring)

    # Certainty

    def _begin(self, transition: Transition, expected: int, op: str) -> _Commit:
        """Send what can be sent at once; what can't be is told when it is to be completed."""
        try:
            write = self.write(transition, expected, op)
        except OjsError as error:
            return _Commit(transition, op, error)
        self._writer.begin(write)
        return _Commit(transition, op, write)

    def _begin_portion(self, commits: Iterator[tuple[Transition, int, str]]) -> list[_Commit]:
        """Send the next of many."""
        begun: list[_Commit] = []
        size = 0
        for commit in commits:
            begun.append(one := self._begin(*commit))
            size += len(one.write.body) if isinstance(one.write, Write) else 0
            if size >= self._timings.portion_bytes:
                break
        return begun

    async def _complete(self, commit: _Commit, deadline: float) -> int:
        """See a commit through, and count it."""
        transition, op, write = commit
        try:
            if isinstance(write, OjsError):
                raise write
            sequence = await self._writer.finish(write, deadline)
        except Conflict:
            _CONFLICTS.inc()
            raise
        except OjsError:
            _FAILURES.inc()
            raise
        self.stored(transition, op)
        return sequence

    def _check_size(self, what: str, size: int) -> None:
        if size + HEADROOM > self._nats.max_payload:
            raise too_large("envelope_too_large", what, size, self._nats.max_payload - HEADROOM)

    def _drop_result(self, transition: Transition, drop: Drop) -> None:
        self._writer.purge(self._config.result(transition.job.id, drop.op))


def _carries(job_id: str, op: str, data: bytes) -> bool:
    """Whether a stored document is, or comes after, the transition `op`."""
    try:
        job = job_reader.decode(job_id, data)
    except Unreadable:
        return False
    if job.amended == op or (job.timer is not None and job.timer.op == op):
        return True
    return any(entry.op == op for entry in reversed(job.transitions))


def _now() -> float:
    return asyncio.get_running_loop().time()

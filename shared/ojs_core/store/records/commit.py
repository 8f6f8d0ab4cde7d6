"""Commits: the hints, then the record with its compare-and-swap, then certainty.

A commit ends in one of three ways: its new sequence, `Conflict`, or OjsError backend_unavailable. The last may leave it
open whether the record was stored; nothing else does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from ojs_core.base.errors import OjsError, too_large, unavailable
from ojs_core.domain.job import Blob, Job, State, Timer
from ojs_core.domain.transitions.result import Transition
from ojs_core.jetstream.api import PubAck, delete_unheard, purge_unheard, refused
from ojs_core.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_core.jetstream.headers import expecting, record_headers, schedule
from ojs_core.jetstream.reading import Unreadable
from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.store.records.answers import (
    FIRST_PAUSE_S,
    LAST_PAUSE_S,
    Written,
    ack_of,
    failure,
    outcome,
    pause_or_raise,
    stored,
    worth_another_try,
)
from ojs_core.store.records.blobs import Blobs
from ojs_core.store.records.lanes import Lanes
from ojs_core.store.records.records import Records, Stored, job_reader
from ojs_core.store.records.signals import Signals
from ojs_core.store.records.tokens import token_of
from ojs_core.telemetry import metrics

log = structlog.get_logger(__name__)

COMMIT_DEADLINE_S: Final = 3.0
"""How long a commit is tried again while the stream has no leader; then the client hears 503 and may do better. Longer than
one request may take, so that a write whose answer is lost is still looked for."""
REPEAT_WITHIN_MS: Final = 60_000
"""A repeated push tends to the token of a job this young; what is older is the safety net's."""

HEADROOM: Final = 1024
"""What a record's headers may take of the server's max_payload."""

_CONFLICTS: Final = metrics.COMMITS.labels("conflict")
_FAILURES: Final = metrics.COMMITS.labels("failed")

encode_job = msgspec.json.Encoder().encode


class Conflict(Exception):
    """Another transition was faster: read the record again and decide anew."""


class Committer:
    """Writes transitions. Several at once leave in one socket write and are awaited together."""

    def __init__(self, nats: Connection, records: Records, blobs: Blobs, config: StoreConfig, signals: Signals) -> None:
        self._nats = nats
        self._records = records
        self._blobs = blobs
        self._config = config
        self.lanes = Lanes()
        """Where the tokens go of jobs that a key limits."""
        self._signals = signals

    async def commit(self, transition: Transition, expected: int, op: str) -> int:
        """Store one transition over the record's revision `expected` (0: none); returns the new sequence.

        `op` is the `Moment.op` that the transition was made with.
        """
        sequence = await self._complete(self._write(transition, expected, op), _now() + COMMIT_DEADLINE_S)
        if transition.stale_token_of is not None:
            await self.left_behind([transition])
        return sequence

    async def left_behind(self, transitions: Sequence[Transition]) -> None:
        """To be awaited before anybody hears that transitions are stored: their jobs may have left tokens."""
        stale_tokens = [transition.stale_token_of for transition in transitions if transition.stale_token_of is not None]
        if stale_tokens:
            for told in self._signals.tokens_stale:
                await told(stale_tokens)

    def stored(self, transition: Transition, op: str) -> None:
        """To be called once for each transition that is stored."""
        metrics.stored(transition.job, op)
        if transition.ttl_s is not None and transition.job.unique_key is not None:
            for told in self._signals.unique_ended:
                told(transition.job, transition.ttl_s)
        if transition.drops is not None:
            self._drop_result(transition.job.id, transition.drops)

    async def commit_all(self, commits: Sequence[tuple[Transition, int, str]]) -> list[int | Conflict | OjsError]:
        """Store many transitions of different jobs, in one write; one outcome each, in order."""
        batch = [self._write(*commit) for commit in commits]
        deadline = _now() + COMMIT_DEADLINE_S
        outcomes: list[int | Conflict | OjsError] = []
        for written in batch:
            try:
                outcomes.append(await self._complete(written, deadline))
            except (Conflict, OjsError) as error:
                outcomes.append(error)
        await self.left_behind([one.transition for one, found in zip(batch, outcomes, strict=True) if isinstance(found, int)])
        return outcomes

    async def repeat_token(self, job: Job, sequence: int) -> None:
        """Publish an available job's token once more, in case the first was lost; `sequence` is its record's.

        Two tokens with one word do no harm: the first that is met wins the claim, the other is dropped as stale.
        """
        ack = ack_of(await self.token(job, sequence))
        if not stored(ack):
            raise failure("the job", ack)

    async def tend(self, found: Stored, now: int) -> None:
        """For a push repeated by a client that never heard its 201: the first may have lost its token on the way.

        The token is the same one again, so a job that still has its first keeps its place in the queue.
        """
        job = found.job
        if job is not None and job.state is State.AVAILABLE and now - (job.enqueued_at or 0) < REPEAT_WITHIN_MS:
            await self.repeat_token(job, found.sequence)

    def token(self, job: Job, replaces: int, *, front: bool = False) -> asyncio.Future[ReplyOrFailure]:
        """Publish the token of an available job whose commit expects the sequence `replaces`."""
        subject = self._config.ready(job.queue, job.priority, "front" if front else self.lanes.of(job))
        return self._nats.request(subject, token_of(job.id, job.token, replaces))

    async def rearm(self, job_id: str, timer: Timer) -> None:
        """Set a fired timer again on its own subject; one that is live already stays as it is."""
        answer = await self._nats.request(
            self._config.timer(job_id, timer.op),
            b"",
            self._schedule(job_id, timer) + expecting(0),
        )
        ack = ack_of(answer)
        if isinstance(ack, Failed):
            raise unavailable(f"a timer was not set: {ack.reason}")
        if ack.error is not None and not ack.conflict:
            raise refused("a timer", ack.error)

    # The messages of one commit, hints first

    @property
    def _token_goes_along(self) -> bool:
        """Whether token and record may share a write.

        Token and record are in different streams. With one server both acks come from the same process; on a cluster the
        token's stream may lose its leader alone, so its ack is awaited before the record is sent.
        """
        return self._config.replicas == 1

    def _write(self, transition: Transition, expected: int, op: str) -> Written:
        written = Written(transition, expected, op, encode_job(transition.job))
        if transition.apart is None and len(written.body) + HEADROOM <= self._nats.max_payload:
            self._send(written)
        return written

    def _send(self, written: Written) -> None:
        self._write_hints(written)
        if written.transition.token is None or self._token_goes_along:
            self._write_record(written)

    def _write_hints(self, written: Written) -> None:
        transition = written.transition
        if transition.arm is not None:
            written.timer = self.write_timer(transition.job.id, transition.arm)
        if transition.step is not None:
            written.step = self.write_step(transition)
        if transition.releases:
            written.releases = self.write_releases(transition)
        if transition.token is not None:
            written.token = self._write_token(written)

    def write_timer(self, job_id: str, timer: Timer) -> asyncio.Future[ReplyOrFailure]:
        """Publish a timer ahead of its record."""
        return self._nats.request(self._config.timer(job_id, timer.op), b"", self._schedule(job_id, timer))

    def write_releases(self, transition: Transition) -> list[asyncio.Future[ReplyOrFailure]]:
        """Publish the hints to the limits whose permits end with the record."""
        claim = (transition.claim or "").encode()
        subjects = [self._config.limit_step(scope, transition.job.id) for scope in transition.releases]
        return [self._nats.request(subject, claim) for subject in subjects]

    def write_step(self, transition: Transition) -> asyncio.Future[ReplyOrFailure]:
        """Publish a workflow member's hint ahead of its record."""
        member = transition.job.workflow
        assert member is not None
        subject = self._config.step(member.id, transition.job.id)
        return self._nats.request(subject, f"{member.node} {member.run} {transition.step}".encode())

    def _write_token(self, written: Written) -> asyncio.Future[ReplyOrFailure]:
        return self.token(written.transition.job, written.expected, front=written.transition.token == "front")

    def _write_record(self, written: Written) -> None:
        headers = self.record_headers(written.transition, written.expected)
        written.record = self._nats.request(self._config.job(written.transition.job.id), written.body, headers)

    def record_headers(self, transition: Transition, expected: int) -> str:
        """The condition, the timer that goes and the time to live of a record's message."""
        cancel = None if transition.cancel is None else self._config.timer(transition.job.id, transition.cancel)
        return record_headers(expected, cancel, transition.ttl_s)

    def _schedule(self, job_id: str, timer: Timer) -> str:
        return schedule(timer.at, self._config.due(timer.service, job_id))

    # Certainty

    async def _complete(self, written: Written, deadline: float) -> int:
        """See a commit through whose first messages are written, and count it."""
        try:
            sequence = await self._see_through(written, deadline)
        except Conflict:
            _CONFLICTS.inc()
            raise
        except OjsError:
            _FAILURES.inc()
            raise
        self.stored(written.transition, written.op)
        return sequence

    async def _see_through(self, written: Written, deadline: float) -> int:
        """Wait for what is written, unless it was too large to be."""
        apart = written.transition.apart
        if apart is not None:
            self._check_size("the job's result", len(apart.body))
            self._check_size("the job's record", len(written.body))
            await self._blobs.write(written.transition, deadline)
            self._send(written)
        if written.record is None and written.token is None:
            self._check_size("the job's record", len(written.body))
        if written.record is None:  # on a cluster the token comes first
            try:
                await self._secure_token(written, deadline)
            except OjsError:
                self._withdraw(written, None)
                raise
            self._write_record(written)
        return await self._settle(written, deadline)

    def _check_size(self, what: str, size: int) -> None:
        if size + HEADROOM > self._nats.max_payload:
            raise too_large("envelope_too_large", what, size, self._nats.max_payload - HEADROOM)

    async def _settle(self, written: Written, deadline: float) -> int:
        """Wait for every ack; try again as a whole what was not stored, look when it is not known.

        Hints are withdrawn only when it is certain that their record will never be: a write that was not answered may be
        stored even after a look has found its place free.
        """
        pause = FIRST_PAUSE_S
        unsure = False
        while True:
            timer = await outcome(written.timer)
            token = await outcome(written.token)
            record = await outcome(written.record)
            sequence = 0
            if isinstance(record, PubAck) and record.error is None:
                sequence = record.seq
            elif unsure or (isinstance(record, Failed) and record.sent):
                # This write, or an earlier one of the same commit, may have been stored without our hearing of it.
                unsure = True
                try:
                    sequence = await self.look(written.transition.job.id, written.expected, written.op, deadline)
                except Conflict:
                    self._withdraw(written, token)
                    raise
            if sequence:
                if timer is not None and not stored(timer):
                    await self._secure_timer(written, deadline)
                if written.step is not None and not stored(await outcome(written.step)):
                    await self._secure_step(written, deadline)
                if written.releases:
                    await self._secure_releases(written, deadline)
                if token is not None and not stored(token):
                    await self._secure_token(written, deadline)
                return sequence
            if isinstance(record, PubAck) and record.conflict and not unsure:
                self._withdraw(written, token)
                raise Conflict
            if isinstance(record, PubAck) and record.error is not None and not worth_another_try(record.error):
                if not unsure:
                    self._withdraw(written, token)
                raise refused("a job record", record.error)
            if _now() + pause > deadline or not self._nats.connected:
                if not unsure:
                    self._withdraw(written, token)
                raise failure("the job", record, timer, token)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE_S)
            self._write_hints(written)
            if token is not None and not self._token_goes_along:
                await self._secure_token(written, deadline)
            self._write_record(written)

    async def look(self, job_id: str, expected: int, op: str, deadline: float, *, least_s: float = LAST_PAUSE_S) -> int:
        """After a lost answer: the record's sequence if the transition `op` is in it, 0 if its place is still free; Conflict
        otherwise. A look takes until the deadline (loop time), but may take `least_s` in any case.
        """
        pause = FIRST_PAUSE_S
        while True:
            try:
                found = await self._records.leader_raw(self._config.job(job_id), max(deadline - _now(), least_s))
            except OjsError as error:
                pause = await pause_or_raise(self._nats, pause, deadline, error)
                continue
            sequence, data = found or (0, b"")
            if data and carries(job_id, data, op):
                return sequence
            if sequence == expected:
                return 0
            raise Conflict

    async def _secure_timer(self, written: Written, deadline: float) -> None:
        """Repeat the timer until it is known to be set: its record is stored, and may not stay without."""
        assert written.transition.arm is not None
        pause = FIRST_PAUSE_S
        while True:
            try:
                await self.rearm(written.transition.job.id, written.transition.arm)
            except OjsError as error:
                pause = await pause_or_raise(self._nats, pause, deadline, error)
            else:
                return

    async def _secure_releases(self, written: Written, deadline: float) -> None:
        """Repeat the hints to limits until they are stored: jobs may wait for them."""
        pause = FIRST_PAUSE_S
        while not all([stored(await outcome(one)) for one in written.releases]):
            pause = await pause_or_raise(self._nats, pause, deadline, unavailable("NATS JetStream can't store a hint now"))
            written.releases = self.write_releases(written.transition)

    async def _secure_step(self, written: Written, deadline: float) -> None:
        """Repeat the step hint until it is stored: its record is, and the workflow would wait for it."""
        pause = FIRST_PAUSE_S
        while not stored(step := await outcome(self.write_step(written.transition))):
            pause = await pause_or_raise(self._nats, pause, deadline, failure("the job", step))

    async def _secure_token(self, written: Written, deadline: float) -> None:
        """Repeat the token until it is stored. A second one for the same word does no harm: one claim wins."""
        pause = FIRST_PAUSE_S
        while not stored(token := await outcome(written.token)):
            pause = await pause_or_raise(self._nats, pause, deadline, failure("the job", token))
            written.token = self._write_token(written)

    def _withdraw(self, written: Written, token: PubAck | Failed | None) -> None:
        """Take back the hints of a commit that will not be; whatever escapes this is recognised as stale when it is met.

        A step hint stays: it may have taken the place of the one that the faster commit wrote.
        """
        transition = written.transition
        if transition.arm is not None:
            self.purge(self._config.timer(transition.job.id, transition.arm.op))
        if isinstance(token, PubAck) and token.error is None:
            delete_unheard(self._nats, self._config.ready_stream, token.seq)
        if transition.apart is not None and transition.job.result_blob is not None:
            self._drop_result(transition.job.id, transition.job.result_blob)

    def _drop_result(self, job_id: str, blob: Blob) -> None:
        self.purge(self._config.result(job_id, blob.op))

    def purge(self, timer: str) -> None:
        """Take a timer back, by its subject."""
        purge_unheard(self._nats, self._config.records_stream, timer)


def carries(job_id: str, data: bytes, op: str) -> bool:
    """Whether a stored document is, or comes after, the transition `op`."""
    try:
        job = job_reader.decode(job_id, data)
    except Unreadable:
        return False
    return any(entry.op == op for entry in reversed(job.transitions)) or (job.timer is not None and job.timer.op == op)


def _now() -> float:
    return asyncio.get_running_loop().time()

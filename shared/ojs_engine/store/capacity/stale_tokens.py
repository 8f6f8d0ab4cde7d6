"""Tokens that stand for nothing any more, and taking them out of bounded queues, where they would count (docs/adr/010).

Who may delete a token: whoever has stored the transition that left it behind, and whoever has read, on the leader and
after the token, that its record is past the revision that the token's commit expects and doesn't name it. Neither can
change again, because revisions only grow and ops never repeat. Nor is a token needed that says what an earlier one
says, which leaves only with its job. A fetch that has such a token in hand finds it stale as well; its ack then meets
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import structlog

from ojs_engine.base.lru import Lru
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.api import delete, deleted
from ojs_engine.jetstream.connection import Reply
from ojs_engine.jetstream.contents import messages, sequence_of, stored_at, subject_of
from ojs_engine.jetstream.subjects import is_held, lane_of
from ojs_engine.store.gates import StartGate
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.tokens import Token, priority_of, read_token
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_PAGE: Final = 256
_FIRST_PAGE: Final = 32
_SEARCHED: Final = 5_000
"""Tokens that are looked through for those of one group of jobs; what isn't found is a sweep's."""
_REST_FACTOR: Final = 20
"""A sweep that has found nothing isn't begun again for this many times of what it took, or for `rest_s`."""
_SEEN: Final = 20_000
"""Tokens that a sweep remembers, to know another one for the same job."""
_KNOWN: Final = 1_000
"""Queues whose sweeps this process remembers."""


class SweepTimings(Timings, frozen=True, kw_only=True):
    """How stale tokens are looked for."""

    ahead_ms: int = 100
    """By so much a token may seem older than its job's transition: what clocks are apart."""
    sweep_s: float = 0.2
    """How long one push is kept waiting for a sweep, which the next one goes on with."""
    rest_s: float = 1.0
    """The pause behind a sweep that found nothing."""
    drop_after_ms: int = 60_000
    """A token without a job is deleted after this long."""
    page: int = _PAGE
    """Tokens that one look reads."""
    read_s: float = 2.0
    """How long an answer with tokens is waited for."""
    behind_ms: int = 10_000
    """A token this much younger than the last job that is looked for can't be its own."""


class Live(NamedTuple):
    """A token whose job waits, by its sequence in the ready stream, and that job's record."""

    token: int
    stored: Stored


class Look(NamedTuple):
    """What became of some tokens of a queue: those that stand, oldest first, and how many were deleted."""

    live: list[Live]
    deleted: int
    following: int | None
    """The sequence to go on at; None at the end."""


class _Sighted(NamedTuple):
    sequence: int
    token: Token | None
    """None for a message that is no token, and no place either."""


@dataclass(slots=True)
class _Sweep:
    """Which subjects of a queue are still to be swept, and from where on; `rests_until` (loop time) once all have been."""

    subjects: list[str]
    following: int = 1
    seen: dict[Token, int] = field(default_factory=dict)
    spent: float = 0.0
    rests_until: float = 0.0


class StaleTokens:
    """Looks through tokens without taking them. Raises OjsError backend_unavailable."""

    def __init__(self, bucket: Bucket, gate: StartGate | None, timings: SweepTimings) -> None:
        self._timings = timings
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._records = bucket.records
        self._gate = gate
        self._clock = bucket.clock
        self._config = bucket.config
        self._sweeps: Lru[_Sweep] = Lru(_KNOWN)

    async def take_out(self, queue: str, jobs: Collection[Job]) -> int:
        """Delete the tokens of jobs that were available in a queue and aren't any more, as they were; how many were
        found.

        Only where they must be by their times is looked, and where a gate holds tokens of such jobs. One that was let
        go since isn't found.
        """
        wanted = {f"{job.id} {job.token}".encode(): job for job in jobs}
        times = [available_at(job) for job in wanted.values()]
        since = max(min(times) - self._timings.ahead_ms, 0)
        found = await self._find(self._config.ready_of_queue(queue), wanted, since, max(times) + self._timings.behind_ms)
        for subjects in self._held_under(wanted.values()):
            found |= await self._find(subjects, wanted, since, None)
        if wanted:  # let go since, or not yet seen by the replica that was asked
            self._sweeps.drop(queue)
        deleted = await self._delete(list(found))
        for job in found.values():
            await self._missed(job)
        return deleted

    def _held_under(self, jobs: Iterable[Job]) -> set[str]:
        """Return the subjects where a gate holds tokens of these jobs."""
        gate = self._gate
        return set() if gate is None else {subjects for job in jobs if gate.asks(job) and (subjects := gate.held_under(job))}

    async def _missed(self, job: Job) -> None:
        if self._gate is not None and self._gate.asks(job):
            await self._gate.missed(job)

    async def _find(self, subjects: str, wanted: dict[bytes, Job], since: int, until: int | None) -> dict[int, Job]:
        """By sequence, the tokens of `wanted` among those that were stored within a time; they are taken out of `wanted`."""
        start: dict[str, Any] = {"start_time": format_ms(since)}
        found: dict[int, Job] = {}
        looked_at = 0
        most = _FIRST_PAGE + len(wanted)
        while wanted and looked_at < _SEARCHED:
            messages, left = await self._messages(subjects, start, most)
            for message in messages:
                job = wanted.pop(message.data.rpartition(b" ")[0], None)
                if job is not None:
                    found[sequence_of(message)] = job
            looked_at += len(messages)
            if not left or (until is not None and stored_at(messages[-1]) > until):
                break
            start, most = {"seq": sequence_of(messages[-1]) + 1}, _PAGE
        return found

    async def held(self, queue: str) -> int:
        """How many tokens of a queue are put aside."""
        messages, left = await self._messages(self._config.held_of(queue), {"seq": 1}, 1)
        return len(messages) + left

    async def sweep(self, queue: str) -> int:
        """Look through a queue that seems full, until something was deleted; how many tokens that were.

        What leaves a token behind takes it out itself. This is for those that died before they could, and for a queue
        that had no bound then: it takes a small part of the time, whatever the number of pushes that find the queue
        full.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        sweep = self._sweeps.get(queue)
        if sweep is None or (not sweep.subjects and began >= sweep.rests_until):
            sweep = _Sweep([self._config.ready_of_queue(queue), self._config.held_of(queue)])
            self._sweeps.put(queue, sweep, 1)
        deleted = 0
        now = began
        while sweep.subjects and not deleted and now <= began + self._timings.sweep_s:
            look = await self.look(queue, sweep.subjects[0], sweep.following, seen=sweep.seen)
            deleted, sweep.following = look.deleted, look.following or 1
            if look.following is None:
                del sweep.subjects[0]
            now = loop.time()
        sweep.spent += now - began
        if not sweep.subjects and not sweep.rests_until:
            sweep.rests_until = now + max(self._timings.rest_s, _REST_FACTOR * sweep.spent)
            sweep.seen.clear()
        if deleted:
            log.info("tokens of jobs that are gone deleted", queue=queue, tokens=deleted)
        return deleted

    async def oldest(self, queue: str, most: int) -> Look:
        """Judge as many of a queue's oldest tokens, and of those that are put aside, as `look` does."""
        subjects = (self._config.ready_of_queue(queue), self._config.held_of(queue))
        ready, held = [await self.look(queue, one, most=most) for one in subjects]
        return Look([*ready.live, *held.live], ready.deleted + held.deleted, None)

    async def look(
        self, queue: str, subjects: str, start: int = 1, most: int | None = None, seen: dict[Token, int] | None = None
    ) -> Look:
        """Judge tokens of a queue from a sequence on, and delete those that stand for nothing any more.

        Of several for one job (a push that was repeated) the first is kept; `seen` are those of earlier looks, by
        sequence.
        """
        messages, left = await self._messages(subjects, {"seq": start}, most or self._timings.page)
        sighted = [one for message in messages if (one := self._sighted(message, queue)) is not None]
        junk = [sequence for sequence, token in sighted if token is None]
        tokens = {sequence: token for sequence, token in sighted if token is not None}
        found = await self._records.many(list(dict.fromkeys(token.job_id for token in tokens.values()))) if tokens else {}
        suspects = {sequence: token for sequence, token in tokens.items() if not token.stands_for(found[token.job_id].job)}
        surely = await self._surely(list(suspects.values()), found)
        dead = [sequence for sequence, token in suspects.items() if self._is_dead(token, surely[token.job_id])]
        standing = {sequence: token for sequence, token in tokens.items() if sequence not in suspects}
        doubles = self._doubles(standing, found, {} if seen is None else seen)
        live = [Live(sequence, found[token.job_id]) for sequence, token in standing.items() if sequence not in doubles]
        deleted = await self._delete([*junk, *dead, *doubles])
        for sequence in dead:
            job = surely[tokens[sequence].job_id].job
            if job is not None:
                await self._missed(job)
        return Look(live, deleted, sequence_of(messages[-1]) + 1 if left else None)

    async def delete(self, token: int) -> None:
        """Delete a token by its sequence: its job was taken out by whoever asks for this."""
        await self._delete([token])

    async def clear_seats(self, queue: str, before: int) -> None:
        """Let places go that were taken before some time (Unix ms) and that nobody will give back."""
        messages, _ = await self._messages(self._config.seat_of_queue(queue), {"seq": 1}, _PAGE)
        await self._delete([sequence_of(message) for message in messages if stored_at(message) < before])

    async def _surely(self, tokens: Sequence[Token], found: dict[str, Stored]) -> dict[str, Stored]:
        if self._records.nearest_is_leader:
            return found
        return await self._records.surely(list(dict.fromkeys(token.job_id for token in tokens)))

    def _is_dead(self, token: Token, stored: Stored) -> bool:
        if token.stands_for(stored.job):
            return False
        return token.superseded(stored) or self._clock.now() - token.stored_at > self._timings.drop_after_ms

    async def _messages(self, subjects: str, start: dict[str, Any], most: int) -> tuple[Sequence[Reply], int]:
        """Messages of the ready stream from `start` on, and how many there are beyond them."""
        which = start | {"next_by_subj": subjects, "batch": most}
        return await messages(self._bulk, self._config.ready_stream, which, "tokens", self._timings.read_s)

    def _sighted(self, message: Reply, queue: str) -> _Sighted | None:
        subject = subject_of(message)
        if self._config.seat_size(subject):
            return None
        sequence = sequence_of(message)
        try:
            said = read_token(message.data)
            at, lane = stored_at(message), lane_of(subject)
            return _Sighted(sequence, Token(*said, queue, _priority_of(subject), "", at, lane))
        except ValueError:
            return _Sighted(sequence, None)

    def _doubles(self, standing: dict[int, Token], found: dict[str, Stored], seen: dict[Token, int]) -> set[int]:
        """Those of some tokens, by sequence, that say the same as an earlier one of their subject.

        A job that asks for the gate has none. Its token leaves for a while without being claimed, and may come back
        behind its copy.
        """
        doubles: set[int] = set()
        for sequence, token in standing.items():
            job = found[token.job_id].job
            says = token._replace(replaces=0, stored_at=0)
            asks = job is None or (self._gate is not None and self._gate.asks(job))
            if asks or (len(seen) >= _SEEN and says not in seen):
                continue
            if seen.setdefault(says, sequence) < sequence:
                doubles.add(sequence)
        return doubles

    async def _delete(self, sequences: Sequence[int]) -> int:
        """How many of some messages of the ready stream were there to be deleted."""
        answers = [delete(self._nats, self._config.ready_stream, sequence) for sequence in sequences]
        return sum([deleted(await answer) is True for answer in answers])


def _priority_of(subject: str) -> int:
    """Of a ready subject's tokens, or of those that are put aside."""
    return int(subject.split(".")[4]) - 100 if is_held(subject) else priority_of(subject)


def available_at(job: Job) -> int:
    """When a job was made available as it stands (Unix ms): its token is stored soon after."""
    return next(
        (entry.at + entry.late_ms for entry in reversed(job.transitions) if entry.op == job.token), job.enqueued_at or 0
    )

"""Permits, holds and hints of limits in JetStream (architecture §5, docs/adr/014). The rules are `ojs_nats.limits`.

`$KV.ojs.limit.<scope>` is the record of one limit; a scope is `key.<key>` or `queue.<name>`. A token whose key has no permit
left moves to `ojs.hold.<key>.<priority>.<queue>`, where nobody fetches it. `ojs.step.limit.<scope>.<what>` is the hint to look
whether held tokens can go on: ahead of every end of a claim that holds a permit, after a token was held though there is room
by then, after a stale token of a limited key was dropped, and as a timer when time alone makes room.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import structlog

from ojs_nats import limits as pure
from ojs_nats import transitions
from ojs_nats.errors import OjsError, unavailable
from ojs_nats.job import Job, State
from ojs_nats.limits import Holder, LimitRecord, Policy, Room
from ojs_nats.store.api import call, parse_ack, refused
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.link import Failed, Link
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.swap import Alarm, Swap, Swapper

__all__ = ["Claimed", "Limits", "Taken"]

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 100
_TTL_S: Final = 30 * 86_400
"""A limit that is not used for so long is forgotten, with what an operator has set for it."""
_AHEAD_MS: Final = 60_000
"""A hint whose claim still runs after this long was ahead of a commit that failed."""
_SOON_MS: Final = 20
_LATEST_MS: Final = 1_000
_NOT_FOUND: Final = 10037
_MOST: Final = 1_000
"""Tokens that one hint moves."""
_LOOK: Final = "_look"

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(LimitRecord).decode


class Claimed(NamedTuple):
    """A claim that is about to be written: of a job's revision, by a transition's op."""

    job: str
    op: str
    expects: int


class Taken(NamedTuple):
    """How many of the claims got a permit, the first ones; and when the next will by the passing of time."""

    number: int
    at: int | None = None
    counted: bool = False
    """Whether they hold their permits until they end."""


class _Judged(NamedTuple):
    """A record as it is without the holders that are over; `later`: when a claim that doesn't come is given up."""

    sequence: int
    record: LimitRecord
    room: Room
    later: int | None


class _Held(NamedTuple):
    sequence: int
    data: bytes


class Limits:
    """Takes permits and moves held tokens on; any number of processes may do either."""

    def __init__(self, link: Link, records: Records, committer: Committer, clock: ServerClock, config: StoreConfig) -> None:
        self._link = link
        self._records = records
        self._committer = committer
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    # Permits

    async def room(self, scope: str, policy: Policy) -> Room:
        """What a limit leaves now."""
        _, record = await self.read(scope)
        found = pure.room(record, policy, self._clock.now())
        return found if found.number or not record.holders else (await self._judge(scope, policy)).room

    async def take(self, scope: str, claims: Sequence[Claimed], policy: Policy) -> Taken:
        """Take a permit for each claim, as far as there are any, before the claims are written."""
        turn = self._turns.setdefault(scope, asyncio.Lock())
        async with turn:
            for _ in range(MAX_TRIES):
                sequence, record = await self.read(scope)
                now = self._clock.now()
                found = pure.room(record, policy, now)
                if found.number < len(claims) and record.holders:
                    sequence, record, found, _ = await self._judge(scope, policy)
                number = min(found.number, len(claims))
                if not number:
                    return Taken(0, found.at)
                holders = [Holder(claim.job, claim.op, claim.expects, now) for claim in claims[:number]]
                moment = self._clock.moment()
                try:
                    await self._write(scope, pure.taken(record, holders, policy, now, moment.op), sequence)
                except Conflict:
                    continue
                counted = pure.effective(record, policy, now).concurrency is not None
                return Taken(number, found.at, counted)
        raise unavailable(f"the limit {scope!r} is too busy; try again")

    async def give_back(self, scope: str, claims: Sequence[Claimed]) -> None:
        """Let permits go whose claims won't be written; what fails is found out after ten seconds."""
        wanted = {(claim.job, claim.op) for claim in claims}
        try:
            for _ in range(MAX_TRIES):
                sequence, record = await self.read(scope)
                mine = [holder for holder in record.holders if (holder.job, holder.op) in wanted]
                if not mine:
                    return
                try:
                    await self._write(scope, pure.forgotten(record, mine, self._clock.moment().op), sequence)
                except Conflict:
                    continue
                return
        except OjsError as error:
            log.debug("permits stay taken for a while", scope=scope, reason=error.message)

    async def read(self, scope: str) -> tuple[int, LimitRecord]:
        """The record and its sequence; an empty one if there is none."""
        sequence, body = await self._records.leader_raw(self._config.limit(scope)) or (0, b"")
        return sequence, _decode(body) if body else LimitRecord(name=scope)

    async def override(self, scope: str, override: pure.Override | None) -> LimitRecord:
        """Set or take back what an operator puts in place of the policies of jobs."""
        for _ in range(MAX_TRIES):
            sequence, record = await self.read(scope)
            new = msgspec.structs.replace(record, override=override, op=self._clock.moment().op)
            try:
                await self._write(scope, new, sequence)
            except Conflict:
                continue
            await self.hint(scope)
            return new
        raise unavailable(f"the limit {scope!r} is too busy; try again")

    async def remember(self, scope: str, policy: Policy) -> None:
        """Note a policy under a key that has no record yet, so that it can be looked at before a job starts."""
        subject = self._config.limit(scope)
        if await self._records.named(subject) is not None:
            return
        record = LimitRecord(name=scope, policy=policy, op=self._clock.moment().op)
        try:
            await self._write(scope, record, 0)
        except Conflict:  # somebody else did, or there is a marker: a claim will write it
            return

    async def known(self) -> list[LimitRecord]:
        """Every key that has a record, by name. As many as there were keys in the last month."""
        subjects = await self._records.subjects(self._config.limit("key.*"))
        found = await self._records.many_raw(subjects)
        return [_decode(body) for subject in subjects if subject in found and (body := found[subject][1])]

    async def inspect(self, scope: str) -> LimitRecord | None:
        """The record without the claims that are over; None if nobody ever used the limit."""
        sequence, record = await self.read(scope)
        return (await self._judge(scope, record.policy)).record if sequence else None

    async def held_count(self, scope: str) -> int:
        """Tokens that wait for a permit of a key."""
        return sum((await self._held_subjects(scope)).values())

    async def _write(self, scope: str, record: LimitRecord, expected: int) -> None:
        def mine(body: bytes) -> bool:
            return _decode(body).op == record.op

        await self._swapper.swap(
            Swap(subject=self._config.limit(scope), body=_encode(record), expected=expected, mine=mine, ttl_s=_TTL_S)
        )

    async def _judge(self, scope: str, policy: Policy) -> _Judged:
        """The record without the claims that are over; one that doesn't come is made impossible."""
        sequence, record = await self.read(scope)
        found = await self._jobs(record)
        now = self._clock.now()
        over: list[Holder] = []
        later: int | None = None
        for holder in record.holders:
            stored = found[holder.job]
            match pure.standing(holder, stored.sequence, stored.job, now):
                case "over":
                    over.append(holder)
                case "coming":
                    later = min(later or holder.at + pure.COMING_MS, holder.at + pure.COMING_MS)
                case "stuck":
                    if await self._fence(stored):
                        over.append(holder)
                case "held":
                    pass
        if over:
            record = pure.forgotten(record, over, self._clock.moment().op)
        return _Judged(sequence, record, pure.room(record, policy, now), later)

    async def _jobs(self, record: LimitRecord) -> dict[str, Stored]:
        """The holders' jobs. That a claim isn't over takes the leader's word: jobs that wait would be told to go on waiting."""
        ids = list(dict.fromkeys(holder.job for holder in record.holders))
        if not ids:
            return {}
        if self._records.nearest_is_leader:
            return await self._records.many(ids)
        return dict(zip(ids, await asyncio.gather(*map(self._records.leader_for_hint, ids)), strict=True))

    async def _fence(self, stored: Stored) -> bool:
        """Give a job another revision, so that a claim of this one can't be written any more."""
        job = stored.job
        if job is None or job.state is not State.AVAILABLE:
            return False
        moment = self._clock.moment()
        try:
            await self._committer.commit(transitions.reissue(job, moment), stored.sequence, moment.op)
        except Conflict:
            return False
        log.info("a claim that never came was given up", job_id=job.id)
        return True

    # Holding

    async def hold(self, scope: str, policy: Policy, job: Job, data: bytes) -> None:
        """Put a token aside until its key has a permit; returns when somebody is sure to look at it then."""
        subject = self._config.hold(scope, job.priority, job.queue)
        await self._publish(subject, data, "a token")
        _, _, room, later = await self._judge(scope, policy)
        if room.number:
            await self.hint(scope)
        elif (at := _first(room.at, later)) is not None:
            await self._wake_at(scope, at)

    async def hint(self, scope: str) -> None:
        """Have somebody look at a limit soon."""
        await self._publish(self._config.limit_step(scope, _LOOK), b"", "a hint")

    async def _wake_at(self, scope: str, at: int) -> None:
        alarm = Alarm(self._config.limit_timer(scope, str(at)), self._config.limit_step(scope, _LOOK), at)
        await self._swapper.set(alarm)

    async def _publish(self, subject: str, data: bytes, what: str) -> None:
        answer = await self._link.request(subject, data)
        if isinstance(answer, Failed):
            raise unavailable(f"{what} can't be stored: {answer.reason}")
        if error := parse_ack(answer.data).error:
            raise refused(what, error)

    # Moving on

    async def look(self, scope: str, ended: str, data: bytes, at: int) -> int | None:
        """Act on a hint: None when it is done with, or in how many ms to look again because its record isn't there yet.

        `ended` and `data` are the job and the claim that were about to end, `at` is when the hint was stored.
        """
        if data:
            job = (await self._records.leader_for_hint(ended)).job
            age = self._clock.now() - at
            if job is not None and job.state is State.ACTIVE and _claim_of(job) == data.decode() and age < _AHEAD_MS:
                return min(max(_SOON_MS, age), _LATEST_MS)
        if scope.startswith("queue."):
            self._link.publish(self._config.wake_for_limit(scope), b"")
        else:
            await self._move(scope)
        return None

    async def _move(self, scope: str) -> None:
        """Let as many held tokens go on as there are permits, by priority and age."""
        subjects = await self._held_subjects(scope)
        if not subjects:
            return
        _, record = await self.read(scope)
        _, _, room, later = await self._judge(scope, record.policy)
        left = min(room.number, _MOST)
        for subject in sorted(subjects, key=_priority, reverse=True):
            while left:
                token = await self._next(subject)
                if token is None:
                    break
                left -= await self._move_one(subject, token)
        if not left:  # there may be more, for which time alone makes room once those have started
            moved = [Holder("", "", 0, self._clock.now())] * min(room.number, _MOST)
            started = pure.taken(record, moved, record.policy, self._clock.now(), "")
            after = room if not moved else pure.room(started, record.policy, self._clock.now())
            if (wake := _first(after.at, later)) is not None:
                await self._wake_at(scope, wake)

    async def _move_one(self, subject: str, token: _Held) -> int:
        """Move a token, or drop it if its job has gone on; whether it takes a permit."""
        job_id, word, replaces = token.data.decode().split(" ")
        stored = await self._records.leader_for_hint(job_id)
        job = stored.job
        good = job is not None and job.state is State.AVAILABLE and job.token == word
        if good or stored.sequence == int(replaces):
            ready = self._config.ready_of_hold(subject)
            await self._publish(ready, token.data, "a token")
        delete = f"STREAM.MSG.DELETE.{self._config.ready_stream}"
        await call(self._link, delete, {"seq": token.sequence, "no_erase": True})
        return int(good)

    async def _next(self, subject: str) -> _Held | None:
        request = {"seq": 1, "next_by_subj": subject}
        answer = await call(self._link, f"STREAM.MSG.GET.{self._config.ready_stream}", request)
        if error := answer.get("error"):
            if error.get("err_code") == _NOT_FOUND:
                return None
            raise unavailable(f"NATS refused a read of tokens: {error.get('description')}")
        message = answer["message"]
        return _Held(int(message["seq"]), base64.b64decode(message.get("data", "")))

    async def _held_subjects(self, scope: str) -> dict[str, int]:
        request: dict[str, Any] = {"subjects_filter": self._config.hold_of(scope)}
        info = await call(self._link, f"STREAM.INFO.{self._config.ready_stream}", request)
        if "error" in info:
            raise unavailable(f"NATS refused to say what is held: {info['error'].get('description')}")
        found: dict[str, int] = info["state"].get("subjects") or {}
        return found


def _claim_of(job: Job) -> str | None:
    return next((entry.op for entry in reversed(job.transitions) if entry.event == "claimed"), None)


def _first(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


def _priority(subject: str) -> int:
    return int(subject.split(".")[3])

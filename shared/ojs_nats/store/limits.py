"""Permits of limits in JetStream (architecture §5, docs/adr/014). The rules are `ojs_nats.limits`.

`$KV.ojs.limit.<scope>` is the record of one limit; a scope is `key.<key>` or `queue.<name>`. Jobs that have to wait for a
permit of a key are `ojs_nats.store.held`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec.structs import replace

from ojs_nats import limits as pure
from ojs_nats import transitions
from ojs_nats.errors import OjsError, unavailable
from ojs_nats.job import State
from ojs_nats.limits import Hit, Holder, LimitRecord, Policy, Room
from ojs_nats.store.api import put
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig, Wildcard, decode_token, encode_token
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.swap import Swap, Swapper

__all__ = ["LOOK", "Claimed", "Judged", "Limits", "Taken", "key_of_scope", "key_scope", "queue_scope"]

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 100
_TTL_S: Final = 30 * 86_400
"""A limit that is not used for so long is forgotten, with what an operator has set for it."""
_NEWS_MS: Final = 1_000
"""By less than this a limit's time isn't said to have been put off: many handlers hear of one refusal."""
LOOK: Final = "_look"
"""What a hint names that is about no job in particular."""

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
    hit: Hit | None = None
    """What stopped the rest."""


class Judged(NamedTuple):
    """A record as it is without the holders that are over; `later`: when a claim that doesn't come is given up."""

    sequence: int
    record: LimitRecord
    room: Room
    later: int | None


Decide = Callable[[LimitRecord, str], LimitRecord | None]
"""What becomes of a record, under the op of the change; None leaves it as it is."""


def key_scope(key: str) -> str:
    return f"key.{encode_token(key)}"


def key_of_scope(scope: str) -> str:
    """The key whose scope it is."""
    return decode_token(scope.removeprefix("key."))


def queue_scope(queue: str) -> str:
    return f"queue.{queue.replace('.', '_')}"


class Limits:
    """Takes permits; any number of processes may."""

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
        return found if found.number or not record.holders else (await self.judge(scope, policy)).room

    async def take(self, scope: str, claims: Sequence[Claimed], policy: Policy) -> Taken:
        """Take a permit for each claim, as far as there are any, before the claims are written."""
        turn = self._turns.setdefault(scope, asyncio.Lock())
        async with turn:
            for _ in range(MAX_TRIES):
                sequence, record = await self.read(scope)
                now = self._clock.now()
                found = pure.room(record, policy, now)
                if found.number < len(claims) and record.holders:
                    sequence, record, found, _ = await self.judge(scope, policy)
                number = min(found.number, len(claims))
                if not number:
                    return Taken(0, found.at, hit=found.hit)
                holders = [Holder(claim.job, claim.op, claim.expects, now) for claim in claims[:number]]
                new = pure.taken(record, holders, policy, now, self._clock.moment().op)
                try:
                    await self._write(scope, new, sequence)
                except Conflict:
                    continue
                counted = pure.effective(record, policy, now).concurrency is not None
                rest = pure.room(new, policy, now) if number < len(claims) else found
                return Taken(number, rest.at, counted, rest.hit)
        raise _busy(scope)

    async def give_back(self, scope: str, claims: Sequence[Claimed]) -> None:
        """Let permits go whose claims won't be written; what fails is found out after ten seconds."""
        wanted = {(claim.job, claim.op) for claim in claims}

        def without(record: LimitRecord, op: str) -> LimitRecord | None:
            mine = [holder for holder in record.holders if (holder.job, holder.op) in wanted]
            return pure.forgotten(record, mine, op) if mine else None

        try:
            await self._change(scope, without)
        except OjsError as error:
            log.debug("permits stay taken for a while", scope=scope, reason=error.message)

    async def read(self, scope: str) -> tuple[int, LimitRecord]:
        """The record and its sequence; an empty one if there is none."""
        sequence, body = await self._records.leader_raw(self._config.limit(scope)) or (0, b"")
        return sequence, _decode(body) if body else LimitRecord(name=scope)

    async def override(self, scope: str, override: pure.Override | None) -> LimitRecord:
        """Set what an operator puts in place of the policies of jobs, or take it back, and with it what closed the limit."""
        lifted = {"until": None} if override is None else {}
        _, new = await self._change(scope, lambda record, op: replace(record, override=override, op=op, **lifted))
        await self.hint(scope)
        return new

    async def close_until(self, scope: str, policy: Policy, until: int) -> bool:
        """Let nothing start before `until` (Unix ms), as a handler was told; whether that is news."""

        def shut(record: LimitRecord, op: str) -> LimitRecord | None:
            known = record if record.op else replace(record, policy=policy)
            return pure.closed(known, until, op)

        old, new = await self._change(scope, shut)
        return new is not old and until - (old.until or 0) >= _NEWS_MS

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

    async def known(self) -> list[str]:
        """The scope of every key that has a record, in order. As many as there were keys in the last month."""
        subjects = await self._records.subjects(self._config.limit(Wildcard("key.*")))
        prefix = len(self._config.limit(""))
        return sorted(subject[prefix:] for subject in subjects)

    async def inspect(self, scope: str) -> LimitRecord | None:
        """The record without the claims that are over; None if nobody ever used the limit."""
        sequence, record = await self.read(scope)
        return (await self.judge(scope, record.policy)).record if sequence else None

    async def hint(self, scope: str) -> None:
        """Have somebody look at a limit soon."""
        await put(self._link, self._config.limit_step(scope, LOOK), b"", None, "a hint")

    async def _change(self, scope: str, decide: Decide) -> tuple[LimitRecord, LimitRecord]:
        """Write what a pure decision makes of a record; as it was and as it stands, one object if it was left as it was.

        Raises OjsError backend_unavailable.
        """
        for _ in range(MAX_TRIES):
            sequence, old = await self.read(scope)
            new = decide(old, self._clock.moment().op)
            if new is None:
                return old, old
            try:
                await self._write(scope, new, sequence)
            except Conflict:
                continue
            return old, new
        raise _busy(scope)

    async def _write(self, scope: str, record: LimitRecord, expected: int) -> None:
        def mine(body: bytes) -> bool:
            return _decode(body).op == record.op

        await self._swapper.swap(
            Swap(subject=self._config.limit(scope), body=_encode(record), expected=expected, mine=mine, ttl_s=_TTL_S)
        )

    async def judge(self, scope: str, policy: Policy) -> Judged:
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
        return Judged(sequence, record, pure.room(record, policy, now), later)

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


def _busy(scope: str) -> OjsError:
    return unavailable(f"the limit {scope!r} is too busy; try again")

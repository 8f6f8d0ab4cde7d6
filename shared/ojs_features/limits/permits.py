"""Permits of limits in JetStream (docs/adr/014). The rules are `ojs_features.limits.rules`.

`$KV.ojs.limit.<scope>` is the record of one limit; a scope is `key.<key>` or `queue.<name>`. Jobs that have to wait for a
permit of a key are `ojs_features.limits.blocked_jobs`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.lru import Lru
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.rate_limits.policy import LimitPolicy, policy_of
from ojs_engine.jetstream.api import put
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import Wildcard, decode_token, encode_token
from ojs_engine.store.gates import Asks
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import NOTHING_BESIDE, Beside, Documents
from ojs_engine.store.records.records import Stored
from ojs_engine.store.records.writer import Conflict, Overtaken
from ojs_features.limits import rules
from ojs_features.limits.asking import limited
from ojs_features.limits.rules import COMING_MS, FreePermits, Grant, Hit, LimitOverride, LimitRecord, PermitHolder
from ojs_features.limits.subjects import Subjects
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_NOTED: Final = 10_000
_AT_ONCE: Final = 500
"""Records written together."""
QUEUE_SCOPE: Final = "queue."
"""How the scopes of queues begin."""
LOOK: Final = "_look"
"""The name of no job, in a note that is about none in particular."""


class PermitTimings(Timings, frozen=True, kw_only=True):
    """How long limits are taken for known."""

    noted_s: float = 3_600.0
    """How long this process believes in the record of a key that it has seen."""
    news_ms: int = 1_000
    """By less than this a limit's time isn't said to have been put off: many handlers hear of one refusal."""


def _sound(scope: str, record: LimitRecord) -> None:
    if record.name != scope:
        raise ValueError("it is the record of another limit")


limit_reader: Final = RecordReader("limit", msgspec.json.Decoder(LimitRecord).decode, _sound)


class PermitClaim(NamedTuple):
    """A claim that is about to be written: of a job's revision, by a transition's op."""

    job: str
    op: str
    expects: int


class PermitsTaken(NamedTuple):
    """How many of the claims got a permit, the first ones; and when the next will by the passing of time."""

    number: int
    at: int | None = None
    counted: bool = False
    """Whether they hold their permits until they end."""
    hit: Hit | None = None
    """The part of the limit that stopped the rest."""
    grant: Grant | None = None
    """How the limit counts them, if there are any."""


class Permit(NamedTuple):
    """The grant of a limit to one claim; `counted` as in `PermitsTaken`."""

    scope: str
    grant: Grant
    counted: bool


class Judged(NamedTuple):
    """A record as it is without the holders that are over; `later`: when a claim that doesn't come is given up."""

    sequence: int
    record: LimitRecord
    room: FreePermits
    later: int | None


DecideLimit = Callable[[LimitRecord, str], LimitRecord | None]
"""Makes a record's successor, under the op of the change; None leaves it as it is."""


def _lasting(record: LimitRecord, now: int, kept_s: int) -> Beside:
    """Keep a record that is not used for a while, and as long as an operator's override is in force."""
    if record.override is None:
        return Beside(ttl_s=kept_s)
    ends = record.override.expires_at
    return NOTHING_BESIDE if ends is None else Beside(ttl_s=kept_s + max(0, ends - now) // 1_000)


def key_scope(key: str) -> str:
    return f"key.{encode_token(key)}"


def key_of_scope(scope: str) -> str:
    """The key whose scope it is."""
    return decode_token(scope.removeprefix("key."))


def queue_scope(queue: str) -> str:
    return f"{QUEUE_SCOPE}{queue.replace('.', '_')}"


class Permits:
    """Takes permits; any number of processes may. As a `PushGate` it makes the keys of new jobs known."""

    def __init__(self, bucket: Bucket, timings: PermitTimings) -> None:
        self.asks: Asks = limited
        self._timings = timings
        self._nats = bucket.nats
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._kept_s = bucket.kept.limit_s
        self._config = bucket.config
        self._subjects = Subjects(bucket.config)
        self._documents = Documents(bucket, Subjects(bucket.config).limit, limit_reader, lambda record, op: record.op == op)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._noted: Lru[float] = Lru(_NOTED)
        """Keys of which this process has seen a record, and until when (loop time) it believes in that."""

    # Permits

    async def room(self, scope: str, policy: LimitPolicy) -> FreePermits:
        """Return the permits that a limit has left now."""
        _, record = await self.read(scope)
        found = rules.room(record, policy, self._clock.now())
        return found if found.number or not record.holders else (await self.judge(scope, policy)).room

    async def take(self, scope: str, claims: Sequence[PermitClaim], policy: LimitPolicy) -> PermitsTaken:
        """Take a permit for each claim, as far as there are any, before the claims are written."""
        turn = self._turns.setdefault(scope, asyncio.Lock())
        async with turn:
            async for _ in self._tries():
                sequence, record = await self.read(scope)
                now = self._clock.now()
                found = rules.room(record, policy, now)
                if found.number < len(claims) and record.holders:
                    sequence, record, found, _ = await self.judge(scope, policy)
                number = min(found.number, len(claims))
                if not number:
                    return PermitsTaken(0, found.at, hit=found.hit)
                holders = [PermitHolder(claim.job, claim.op, claim.expects, now) for claim in claims[:number]]
                new = rules.taken(record, holders, policy, now, self._clock.moment().op)
                try:
                    await self._documents.write(scope, new, sequence, new.op, _lasting(new, now, self._kept_s))
                except Conflict:
                    continue
                counted = rules.effective(record, policy, now).concurrency is not None
                rest = rules.room(new, policy, now) if number < len(claims) else found
                return PermitsTaken(number, rest.at, counted, rest.hit, rules.granting(new, policy, now))
        raise contended(f"the limit {scope!r}")

    async def give_back(self, scope: str, grant: Grant, claims: Sequence[PermitClaim]) -> None:
        """Let permits of one grant go whose claims won't be written; to be called once for each.

        That a holder's claim is over is found out after ten seconds in any case. A start of a rate that isn't given
        back is spent, so when it isn't known whether it was, it isn't tried again: too few starts are better than too
        many.
        """
        wanted = {(claim.job, claim.op) for claim in claims}

        def without(record: LimitRecord, op: str) -> LimitRecord | None:
            mine = [holder for holder in record.holders if (holder.job, holder.op) in wanted]
            return rules.withdrawn(record, mine, len(claims), grant, op)

        try:
            await self._change(scope, without, once=True)
        except (OjsError, Overtaken) as error:
            log.debug("permits stay taken for a while", scope=scope, reason=str(error))

    async def read(self, scope: str) -> tuple[int, LimitRecord]:
        """The record and its sequence; an empty one if there is none."""
        sequence, record = await self._documents.read(scope)
        return sequence, record or LimitRecord(name=scope)

    async def override(self, scope: str, override: LimitOverride | None) -> LimitRecord:
        """Set what an operator puts in place of the policies of jobs, or take it back, and with it what closed the limit."""
        lifted = {"until": None} if override is None else {}
        _, new = await self._change(scope, lambda record, op: replace(record, override=override, op=op, **lifted))
        await self.send_note(scope)
        return new

    async def close_until(self, scope: str, policy: LimitPolicy, until: int) -> bool:
        """Let nothing start before `until` (Unix ms), as a handler has said; whether that is news."""

        def shut(record: LimitRecord, op: str) -> LimitRecord | None:
            known = record if record.op else replace(record, policy=policy)
            return rules.closed(known, until, op)

        old, new = await self._change(scope, shut)
        return new is not old and until - (old.until or 0) >= self._timings.news_ms

    async def note(self, drafts: Iterable[Job]) -> None:
        """Let operators see the keys that limited jobs name before any of them starts.

        Costs those little whose keys this process has noted within the hour.
        """
        now = asyncio.get_running_loop().time()
        policies: dict[str, LimitPolicy] = {}
        for draft in drafts:
            policy = policy_of(draft)
            if policy is not None and policy.key is not None and (self._noted.get(policy.key) or 0.0) < now:
                policies[policy.key] = policy
        if not policies:
            return
        subjects = {key: self._subjects.limit(key_scope(key)) for key in policies}
        found = await self._records.many_raw(list(subjects.values()))
        missing = [key for key, subject in subjects.items() if not found.get(subject, (0, b""))[1]]
        await in_portions(missing, lambda key: self.remember(key_scope(key), policies[key]), _AT_ONCE)
        for key in policies:
            self._noted.put(key, now + self._timings.noted_s, 1)

    async def remember(self, scope: str, policy: LimitPolicy) -> None:
        """Note a policy under a limit that has no record."""

        def noted(record: LimitRecord, op: str) -> LimitRecord | None:
            return None if record.op else replace(record, policy=policy, op=op)

        await self._change(scope, noted)

    async def clear(self) -> None:
        """Forget what was noted (reset)."""
        self._noted.clear()

    async def known(self) -> list[str]:
        """The scope of every key that has a record, in order. As many as there were keys in the last month."""
        subjects = await self._records.subjects(self._subjects.limit(Wildcard("key.*")))
        prefix = len(self._subjects.limit(""))
        return sorted(subject[prefix:] for subject in subjects)

    async def inspect(self, scope: str) -> LimitRecord | None:
        """The record without the claims that are over; None if the limit was never used."""
        sequence, record = await self.read(scope)
        return (await self.judge(scope, record.policy)).record if sequence else None

    async def send_note(self, scope: str) -> None:
        """Have a scheduler check a limit soon."""
        await put(self._nats, self._config.note("limit", scope, LOOK), b"", None, "a note")

    async def _change(self, scope: str, decide: DecideLimit, *, once: bool = False) -> tuple[LimitRecord, LimitRecord]:
        """Write what a pure decision makes of a record; as it was and as it stands, one object if it was left as it
        was.

        Raises OjsError backend_unavailable; Overtaken if it is to be written `once`, and may have been.
        """
        nothing = LimitRecord(name=scope)
        changed = await self._documents.change(
            scope,
            lambda old, moment: decide(old or nothing, moment.op),
            lambda _old, new: _lasting(new, self._clock.now(), self._kept_s),
            once=once,
        )
        return changed.old or nothing, changed.new or nothing

    async def judge(self, scope: str, policy: LimitPolicy) -> Judged:
        """The record without the claims that are over; one that doesn't come is made impossible."""
        sequence, record = await self.read(scope)
        found = await self._jobs(record)
        now = self._clock.now()
        over: list[PermitHolder] = []
        later: int | None = None
        for holder in record.holders:
            stored = found[holder.job]
            match rules.standing(holder, stored.sequence, stored.job, now):
                case "over":
                    over.append(holder)
                case "coming":
                    later = min(later or holder.at + COMING_MS, holder.at + COMING_MS)
                case "stuck":
                    if await self._fence(stored):
                        over.append(holder)
                case "held":
                    pass
        if over:
            record = rules.forgotten(record, over, self._clock.moment().op)
        return Judged(sequence, record, rules.room(record, policy, now), later)

    async def _jobs(self, record: LimitRecord) -> dict[str, Stored]:
        """The holders' jobs. That a claim isn't over takes the leader's word: jobs that wait would be told to go on waiting."""
        return await self._records.surely(list(dict.fromkeys(holder.job for holder in record.holders)))

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

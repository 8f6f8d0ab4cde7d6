"""The record of a limit, and the rules of taking permits from it; pure (docs/adr/014).

One record for each key, or limited queue, names the claims that may be active (holders) and says when claims started
(grants). A permit is taken, by one swap that is acknowledged, before the claim is written; nothing releases it. When
the record seems full, its holders are judged by their jobs' records: one whose claim is over, or can never be, is
forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import LimitPolicy

COMING_MS: Final = 10_000
"""How long a claim may stay behind its permit. A process that lives has written it, or given up, long before."""
_STEPS: Final = 128
"""Grants are told apart by this part of their period, so that a record of any limit stays small."""

MANY: Final = 1 << 30
"""No limit."""

HolderStanding = Literal["held", "coming", "stuck", "over"]


class PermitHolder(Struct, frozen=True, array_like=True):
    """A claim: of a job's revision `expects`, by the transition `op`; the permit was taken `at` (Unix ms)."""

    job: str
    op: str
    expects: Whole
    at: At


class LimitOverride(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An operator's words in place of the policies of jobs, for a while."""

    concurrency: Whole | None = None
    rate: Rate | None = None
    throttle: Rate | None = None
    expires_at: At | None = None
    extensions: Extensions = {}


class LimitRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `limit.key.<key>` or `limit.queue.<name>`."""

    name: str
    policy: LimitPolicy = LimitPolicy()
    """The last that permits were asked for with."""
    holders: tuple[PermitHolder, ...] = ()
    grants: tuple[tuple[At, Whole], ...] = ()
    """(time, how many), the oldest first."""
    override: LimitOverride | None = None
    until: At | None = None
    """Nothing starts before (Unix ms): what the limit is there to spare has said so (ojs-rate-limiting §9.1)."""
    op: str = ""


class Hit(NamedTuple):
    """The part that stops a claim: `current` of `limit`. `dynamic` is a time that a handler was given."""

    strategy: Literal["concurrency", "rate", "throttle", "dynamic"]
    limit: int
    current: int


class Grant(NamedTuple):
    """When permits count as granted (server time, Unix ms), and within how many ms others count with them; None if
    the limit doesn't count starts.
    """

    at: int
    step: int | None = None


class FreePermits(NamedTuple):
    """How many permits can be had; if none, when there will be one by the passing of time alone."""

    number: int
    at: int | None = None
    hit: Hit | None = None
    """The part that leaves none."""


def effective(record: LimitRecord, policy: LimitPolicy, now: int) -> LimitPolicy:
    """The policy as an operator has overridden it."""
    override = record.override
    if override is None or (override.expires_at is not None and override.expires_at <= now):
        return policy
    return replace(
        policy,
        concurrency=policy.concurrency if override.concurrency is None else override.concurrency,
        rate=override.rate or policy.rate,
        throttle=override.throttle or policy.throttle,
    )


def room(record: LimitRecord, asked: LimitPolicy, now: int) -> FreePermits:
    """Return the permits that `asked` leaves, counting every holder as active."""
    policy = effective(record, asked, now)
    if record.until is not None and record.until > now:
        return FreePermits(0, record.until, Hit("dynamic", 0, len(record.holders)))
    now = max(now, record.grants[-1][0] if record.grants else 0)
    numbers: list[int] = []
    times: list[int] = []
    if policy.concurrency is not None:
        numbers.append(policy.concurrency - len(record.holders))
    if policy.rate is not None:
        used, free_at = granted(record, policy.rate, now)
        numbers.append(policy.rate.limit - used)
        if used >= policy.rate.limit:
            times.append(free_at)
    if policy.throttle is not None:
        next_at = next_start(record, policy.throttle)
        numbers.append(1 if next_at <= now else 0)
        if next_at > now:
            times.append(next_at)
    number = max(0, min(numbers)) if numbers else MANY
    if number:
        return FreePermits(number)
    stop = _hit(record, policy, now)
    full = stop.strategy == "concurrency"
    if full and record.override is not None and record.override.expires_at is not None:
        return FreePermits(0, record.override.expires_at, stop)
    return FreePermits(0, max(times) if times and not full else None, stop)


def granted(record: LimitRecord, rate: Rate, now: int) -> tuple[int, int]:
    """Grants of the period that ends now, and when the first of them leaves it."""
    within = [grant for grant in record.grants if grant[0] > now - rate.period_ms]
    used = sum(count for _, count in within)
    excess, free_at = used - rate.limit + 1, now
    for at, count in within:
        if excess <= 0:
            break
        excess -= count
        free_at = at + rate.period_ms
    return used, free_at


def next_start(record: LimitRecord, throttle: Rate) -> int:
    """When evenly spaced starts let the next one be; 0 if there was none."""
    return record.grants[-1][0] + -(-throttle.period_ms // throttle.limit) if record.grants else 0


def _hit(record: LimitRecord, policy: LimitPolicy, now: int) -> Hit:
    """Return the part that leaves no room and most likely lasts longest."""
    if policy.concurrency is not None and len(record.holders) >= policy.concurrency:
        return Hit("concurrency", policy.concurrency, len(record.holders))
    if policy.rate is not None and (used := granted(record, policy.rate, now)[0]) >= policy.rate.limit:
        return Hit("rate", policy.rate.limit, used)
    throttle = policy.throttle or Rate(0, 0)
    return Hit("throttle", throttle.limit, granted(record, throttle, now)[0])


def closed(record: LimitRecord, until: int, op: str) -> LimitRecord | None:
    """The record with nothing to start before `until`; None if that is so already."""
    if record.until is not None and record.until >= until:
        return None
    return replace(record, until=until, op=op)


def taken(record: LimitRecord, claims: Sequence[PermitHolder], asked: LimitPolicy, now: int, op: str) -> LimitRecord:
    """The record with permits for `claims`; the caller has seen that there is room."""
    policy = effective(record, asked, now)
    now = max(now, record.grants[-1][0] if record.grants else 0)
    rates = [rate for rate in (policy.rate, policy.throttle) if rate is not None]
    grants = record.grants
    if rates:
        longest = max(rate.period_ms for rate in rates)
        grants = tuple(grant for grant in grants if grant[0] > now - longest)
        grants = _added(grants, now, len(claims), _step(policy))
    holders = (*record.holders, *claims) if policy.concurrency is not None else record.holders
    return replace(record, policy=asked, holders=holders, grants=grants, op=op)


def granting(record: LimitRecord, asked: LimitPolicy, now: int) -> Grant:
    """How the permits count that `taken` has just added: starts at these times keep to the rate."""
    policy = effective(record, asked, now)
    return Grant(record.grants[-1][0], _step(policy)) if policy.rate or policy.throttle else Grant(now)


def withdrawn(record: LimitRecord, gone: Sequence[PermitHolder], number: int, grant: Grant, op: str) -> LimitRecord | None:
    """The record as if `number` of the permits of a grant, some of them `gone`'s, had not been asked for; None if it
    says nothing of them any more. The caller makes sure that each is withdrawn once: the record doesn't say whose
    starts it counts.
    """
    new = forgotten(record, gone, op)
    if grant.step is not None:
        new = replace(new, grants=_removed(new.grants, grant.at, number, grant.step))
    return None if (new.holders, new.grants) == (record.holders, record.grants) else new


def _step(policy: LimitPolicy) -> int:
    """Within how many ms grants count as one: evenly spaced starts take each for itself."""
    if policy.rate is None or policy.throttle is not None:
        return 1
    return max(policy.rate.period_ms // _STEPS, 1)


def _added(grants: tuple[tuple[int, int], ...], now: int, number: int, step: int) -> tuple[tuple[int, int], ...]:
    """Grants that fall into one `step` (ms) count as made at the last of them, which never grants too much."""
    if grants and now // step == grants[-1][0] // step:
        return (*grants[:-1], (now, grants[-1][1] + number))
    return (*grants, (now, number))


def _removed(grants: tuple[tuple[int, int], ...], at: int, number: int, step: int) -> tuple[tuple[int, int], ...]:
    """Those that were granted `at` are in the first entry from then on, unless they were too long ago to be there."""
    place = next((place for place, (counted, _) in enumerate(grants) if counted >= at), len(grants))
    if place == len(grants) or grants[place][0] // step != at // step:
        return grants
    counted, count = grants[place]
    rest = ((counted, count - number),) if count > number else ()
    return (*grants[:place], *rest, *grants[place + 1 :])


def standing(holder: PermitHolder, sequence: int, job: Job | None, now: int) -> HolderStanding:
    """What has become of a claim, by its job's record at `sequence` (0: none), which must be no older than the permit.

    `stuck` is a claim that may still come although it should have long since: only a swap of the record makes sure.
    """
    if sequence == holder.expects:
        return "coming" if now - holder.at < COMING_MS else "stuck"
    if job is not None and job.state is State.ACTIVE:
        claim = next((entry for entry in reversed(job.transitions) if entry.event == "claimed"), None)
        if claim is not None and claim.op == holder.op:
            return "held"
    return "over"


def forgotten(record: LimitRecord, over: Sequence[PermitHolder], op: str) -> LimitRecord:
    """The record without some holders."""
    gone = set(over)
    return replace(record, holders=tuple(holder for holder in record.holders if holder not in gone), op=op)

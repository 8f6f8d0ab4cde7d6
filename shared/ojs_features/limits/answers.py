"""Limits as clients read and override them (ojs-rate-limiting §10)."""

from __future__ import annotations

from ojs_api import limits as contract
from ojs_api.limits import MAX_RATE, ConcurrencyLimit, Limit, LimitPage, OverrideLimit, RateLimit, StartRate, ThrottleLimit
from ojs_engine.base.errors import invalid
from ojs_engine.base.extensions import sent_extensions
from ojs_engine.base.fields import integer, object_of, value_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_duration, parse_timestamp
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import period_ms, read_policy
from ojs_engine.wire.members import extended, moment, written
from ojs_engine.wire.pages import Page, pagination
from ojs_engine.wire.requests import request_of
from ojs_features.limits.rules import LimitOverride, LimitRecord, effective, granted, next_start

_OWN = frozenset(OverrideLimit.__struct_fields__)


def parse_override(body: bytes, now: int, limits: PayloadLimits) -> LimitOverride:
    """`{concurrency?, rate?, throttle?, expires_at?}`, or as the admin UI is shown it, `{limit, period?}`.

    Raises invalid_request naming the member.
    """
    sent = request_of(body, OverrideLimit)
    members = object_of(body)
    values = {name: value_of(raw, name, limits) for name, raw in members.items() if name in _OWN}
    if values.get("period") is not None:
        period_ms(values["period"], "period")
    if (limit := values.pop("limit", None)) is not None:
        integer(limit, "limit", 0, MAX_RATE)
        if values.get("period") is None:
            values.setdefault("concurrency", limit)
        else:
            values["rate"] = {"limit": limit, "period": values["period"]}
    policy = read_policy(values, "")
    expires_at = None
    if sent.expires_at is not None:
        try:
            expires_at = parse_timestamp(sent.expires_at)
        except ValueError as error:
            raise invalid("expires_at", f"expires_at must be an RFC 3339 timestamp with a zone: {error}") from None
        if expires_at <= now:
            raise invalid("expires_at", "expires_at is over; name a time to come, or none to override until further notice")
    if policy.concurrency is None and policy.rate is None and policy.throttle is None:
        raise invalid("concurrency", "concurrency, rate or throttle is required")
    return LimitOverride(
        concurrency=policy.concurrency,
        rate=policy.rate,
        throttle=policy.throttle,
        expires_at=expires_at,
        extensions=sent_extensions(members, limits, changed=("rate", "throttle")).over({}, limits),
    )


def limit_answer(key: str, record: LimitRecord, waiting: int, now: int) -> Limit:
    """A limit as it stands; `record` has no holders that are over."""
    policy = effective(record, record.policy, now)
    return Limit(
        key=key,
        on_limit=policy.on_limit,
        waiting_count=waiting,
        concurrency=None if policy.concurrency is None else _concurrency(policy.concurrency, len(record.holders)),
        rate=None if policy.rate is None else _rate(record, policy.rate, now),
        throttle=None if policy.throttle is None else _throttle(record, policy.throttle, now),
        rate_limit_until=moment(record.until) if record.until is not None and record.until > now else None,
        override=_override(record.override, now),
    )


def limit_page(limits: list[Limit], asked: Page, total: int, next_cursor: str | None) -> LimitPage:
    """A page of the limits."""
    return LimitPage(limits, pagination(asked, total, next_cursor))


def _concurrency(most: int, active: int) -> ConcurrencyLimit:
    return ConcurrencyLimit(limit=most, active=active, available=max(most - active, 0))


def _rate(record: LimitRecord, rate: Rate, now: int) -> RateLimit:
    used, free_at = granted(record, rate, now)
    return RateLimit(
        limit=rate.limit,
        period=format_duration(rate.period_ms),
        current_count=used,
        window_resets_at=moment(max(free_at, now)),
    )


def _throttle(record: LimitRecord, rate: Rate, now: int) -> ThrottleLimit:
    next_at = max(next_start(record, rate), now)
    return ThrottleLimit(limit=rate.limit, period=format_duration(rate.period_ms), next_allowed_at=moment(next_at))


def _override(override: LimitOverride | None, now: int) -> contract.LimitOverride | None:
    if override is None or (override.expires_at is not None and override.expires_at <= now):
        return None
    answer = contract.LimitOverride(
        concurrency=override.concurrency,
        rate=_start_rate(override.rate),
        throttle=_start_rate(override.throttle),
        expires_at=moment(override.expires_at),
    )
    whole: contract.LimitOverride = written(extended(answer, override.extensions))
    return whole


def _start_rate(rate: Rate | None) -> StartRate | None:
    return None if rate is None else StartRate(limit=rate.limit, period=format_duration(rate.period_ms))

"""Limits as clients read and override them (ojs-rate-limiting §10)."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET, Raw, Struct, UnsetType

from ojs_engine.base.errors import invalid
from ojs_engine.base.extensions import sent_extensions
from ojs_engine.base.fields import check_known, check_once, object_of, short_text, value_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_duration, format_ms, parse_timestamp
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import OnLimit, read_policy
from ojs_engine.wire.members import Count, Duration, Extended, OpenStruct, Timestamp, extended, given, timestamp
from ojs_engine.wire.pages import Page, Pagination, pagination
from ojs_features.limits.rules import LimitOverride, LimitRecord, effective, granted, next_start

_MEMBERS: Final = ("concurrency", "rate", "throttle", "expires_at", "limit", "period", "max_per_second")


class StartRate(OpenStruct):
    """How many starts within any period."""

    limit: Count
    period: Duration


class ConcurrencyLimit(Struct):
    """How many jobs may be active at once, and how many are."""

    limit: Count
    active: Count
    available: Count


class RateLimit(StartRate):
    """Starts within any period, and those within the one that ends now."""

    current_count: Count
    window_resets_at: Timestamp


class ThrottleLimit(StartRate):
    """Starts evenly spaced."""

    next_allowed_at: Timestamp


class OverriddenLimit(OpenStruct, kw_only=True, omit_defaults=True):
    """What an operator has set in place of what jobs say."""

    concurrency: Count | UnsetType = UNSET
    rate: StartRate | UnsetType = UNSET
    throttle: StartRate | UnsetType = UNSET
    expires_at: Timestamp | UnsetType = UNSET


class LimitAnswer(Struct, kw_only=True, omit_defaults=True):
    """A limit as it stands. Nothing starts before `rate_limit_until`."""

    key: str
    on_limit: OnLimit
    waiting_count: Count
    concurrency: ConcurrencyLimit | UnsetType = UNSET
    rate: RateLimit | UnsetType = UNSET
    throttle: ThrottleLimit | UnsetType = UNSET
    rate_limit_until: Timestamp | UnsetType = UNSET
    override: OverriddenLimit | Extended[OverriddenLimit] | UnsetType = UNSET


class LimitPage(Struct):
    """A page of the limits."""

    items: list[LimitAnswer]
    pagination: Pagination


def parse_override(body: bytes, now: int, limits: PayloadLimits) -> LimitOverride:
    """`{concurrency?, rate?, throttle?, expires_at?}`, or as the admin UI is shown it, `{limit, period?}`.

    Raises invalid_request naming the member.
    """
    members: dict[str, Raw] = object_of(check_once(body))
    check_known(members, _MEMBERS)
    values = {name: value_of(raw, name, limits) for name, raw in members.items()}
    if (limit := values.pop("limit", None)) is not None:
        if values.get("period") is None:
            values.setdefault("concurrency", limit)
        else:
            values["rate"] = {"limit": limit, "period": values["period"]}
    policy = read_policy(values, "")
    expires_at = None
    if values.get("expires_at") is not None:
        try:
            expires_at = parse_timestamp(short_text(values["expires_at"], "expires_at", limits))
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


def limit_answer(key: str, record: LimitRecord, waiting: int, now: int) -> LimitAnswer:
    """A limit as it stands; `record` has no holders that are over."""
    policy = effective(record, record.policy, now)
    answer = LimitAnswer(key=key, on_limit=policy.on_limit, waiting_count=waiting)
    if policy.concurrency is not None:
        active = len(record.holders)
        answer.concurrency = ConcurrencyLimit(policy.concurrency, active, max(policy.concurrency - active, 0))
    if policy.rate is not None:
        used, free_at = granted(record, policy.rate, now)
        answer.rate = RateLimit(*_rate(policy.rate), current_count=used, window_resets_at=format_ms(max(free_at, now)))
    if policy.throttle is not None:
        next_at = max(next_start(record, policy.throttle), now)
        answer.throttle = ThrottleLimit(*_rate(policy.throttle), next_allowed_at=format_ms(next_at))
    if record.until is not None and record.until > now:
        answer.rate_limit_until = format_ms(record.until)
    override = record.override
    if override is not None and (override.expires_at is None or override.expires_at > now):
        overridden = OverriddenLimit(
            concurrency=given(override.concurrency),
            rate=UNSET if override.rate is None else StartRate(*_rate(override.rate)),
            throttle=UNSET if override.throttle is None else StartRate(*_rate(override.throttle)),
            expires_at=timestamp(override.expires_at),
        )
        answer.override = extended(overridden, override.extensions)
    return answer


def limit_page(limits: list[LimitAnswer], asked: Page, total: int, next_cursor: str | None) -> LimitPage:
    """A page of the limits."""
    return LimitPage(limits, pagination(asked, total, next_cursor))


def _rate(rate: Rate) -> tuple[int, str]:
    return rate.limit, format_duration(rate.period_ms)

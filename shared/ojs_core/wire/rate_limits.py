"""Limits as clients read and override them (ojs-rate-limiting §10)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_core.base.errors import invalid
from ojs_core.base.fields import check_known, object_of, value_of
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.times import format_duration, format_ms, parse_timestamp
from ojs_core.domain.queues.config import Rate
from ojs_core.domain.rate_limits.permits import LimitOverride, LimitRecord, effective, granted, next_start
from ojs_core.domain.rate_limits.policy import read_policy

_MEMBERS: Final = ("concurrency", "rate", "throttle", "expires_at", "limit", "period", "max_per_second")


def parse_override(body: bytes, now: int, limits: PayloadLimits) -> LimitOverride:
    """`{concurrency?, rate?, throttle?, expires_at?}`. Raises invalid_request naming the member."""
    members: dict[str, Raw] = object_of(body)
    check_known(members, _MEMBERS)
    values = {name: value_of(raw, name, limits) for name, raw in members.items()}
    if type(values.get("limit")) is int:  # the form of the admin UI
        values["rate"] = {"limit": values.pop("limit"), "period": values.get("period")}
    policy = read_policy(values, "")
    expires_at = None
    if values.get("expires_at") is not None:
        try:
            expires_at = parse_timestamp(str(values["expires_at"]))
        except ValueError as error:
            raise invalid("expires_at", f"expires_at must be an RFC 3339 timestamp with a zone: {error}") from None
        if expires_at <= now:
            raise invalid("expires_at", "expires_at is over; name a time to come, or none to override until further notice")
    if policy.concurrency is None and policy.rate is None and policy.throttle is None:
        raise invalid("concurrency", "concurrency, rate or throttle is required")
    return LimitOverride(concurrency=policy.concurrency, rate=policy.rate, throttle=policy.throttle, expires_at=expires_at)


def limit_view(key: str, record: LimitRecord, waiting: int, now: int, *, as_number: bool) -> dict[str, Any]:
    """A limit as it stands; `record` has no holders that are over. `concurrency` is an object, or a number for the CLI."""
    policy = effective(record, record.policy, now)
    active = len(record.holders)
    view: dict[str, Any] = {
        "key": key,
        "on_limit": policy.on_limit,
        "active": active,
        "waiting": waiting,
        "waiting_count": waiting,
    }
    if policy.concurrency is not None:
        free = max(policy.concurrency - active, 0)
        whole = {"limit": policy.concurrency, "active": active, "available": free}
        view["concurrency"] = policy.concurrency if as_number else whole
        view["limit"] = policy.concurrency
        view["available"] = free
    if policy.rate is not None:
        used, free_at = granted(record, policy.rate, now)
        view["rate"] = {**_rate(policy.rate), "current_count": used, "window_resets_at": format_ms(max(free_at, now))}
        view |= _rate(policy.rate)
    if policy.throttle is not None:
        next_at = max(next_start(record, policy.throttle), now)
        view["throttle"] = {**_rate(policy.throttle), "next_allowed_at": format_ms(next_at)}
    if record.until is not None and record.until > now:
        view["rate_limit_until"] = format_ms(record.until)
    if record.override is not None and (record.override.expires_at is None or record.override.expires_at > now):
        override = msgspec.structs.asdict(record.override)
        shown: dict[str, Any] = {"concurrency": override["concurrency"]} if override["concurrency"] is not None else {}
        for name in ("rate", "throttle"):
            if override[name] is not None:
                shown[name] = _rate(override[name])
        if record.override.rate is not None:
            shown |= _rate(record.override.rate)
        if record.override.expires_at is not None:
            shown["expires_at"] = format_ms(record.override.expires_at)
        view["override"] = shown
    return view


def _rate(rate: Rate) -> dict[str, Any]:
    return {"limit": rate.limit, "period": format_duration(rate.period_ms)}

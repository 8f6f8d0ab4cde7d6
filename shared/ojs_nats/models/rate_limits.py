"""Limits of keys that jobs name."""

from __future__ import annotations

from datetime import datetime

import msgspec


class ConcurrencyLimit(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs may be active at once, and how many are."""

    limit: int
    active: int
    available: int


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Starts within any period, and those within the one that ends now."""

    limit: int
    period: str
    current_count: int
    window_resets_at: datetime


class ThrottleLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Starts evenly spaced."""

    limit: int
    period: str
    next_allowed_at: datetime


class StartRate(msgspec.Struct, frozen=True, kw_only=True):
    """How many starts within any period."""

    limit: int
    period: str


class LimitOverride(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator has set in place of what jobs say."""

    concurrency: int | None = None
    rate: StartRate | None = None
    throttle: StartRate | None = None
    expires_at: datetime | None = None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit as it stands. Nothing starts before `rate_limit_until`."""

    key: str
    on_limit: str
    waiting_count: int
    concurrency: ConcurrencyLimit | None = None
    rate: RateLimit | None = None
    throttle: ThrottleLimit | None = None
    rate_limit_until: datetime | None = None
    override: LimitOverride | None = None

"""Limits that jobs share by a key."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["ConcurrencyLimit", "Limit", "LimitOverride", "RateLimit", "StartRate", "ThrottleLimit"]


class ConcurrencyLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of jobs that run at once.

    Attributes:
        active: How many run now.
    """

    limit: int
    active: int
    available: int


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of starts in any period.

    Attributes:
        current_count: How many started within the period that ends now.
    """

    limit: int
    period: str
    current_count: int
    window_resets_at: datetime


class ThrottleLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of starts, evenly spaced."""

    limit: int
    period: str
    next_allowed_at: datetime


class StartRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of starts."""

    limit: int
    period: str


class LimitOverride(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's override of a limit."""

    concurrency: int | None = None
    rate: StartRate | None = None
    throttle: StartRate | None = None
    expires_at: datetime | None = None


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit as it is now.

    Attributes:
        waiting_count: How many jobs wait for it.
        rate_limit_until: When the next job may start. None if one may now.
    """

    key: str
    on_limit: str
    waiting_count: int
    concurrency: ConcurrencyLimit | None = None
    rate: RateLimit | None = None
    throttle: ThrottleLimit | None = None
    rate_limit_until: datetime | None = None
    override: LimitOverride | None = None

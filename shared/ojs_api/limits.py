"""Limits that jobs share by a key, and operators' overrides of them (docs/queues.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ojs_api.members import HIDDEN, Count, Moment, OpenAnswer, SentMoment, one_of, wanted, whole
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import DEFAULT_PAGE, MAX_NUMBERED, Pagination, paged
from ojs_api.words import OnLimit

MAX_CONCURRENCY: Final = 1_000
"""The holders of a limit are kept in one record."""
MAX_RATE: Final = 1_000_000

_Period = Annotated[
    int | float | str,
    Meta(
        description="A duration, second, minute, hour or day, or seconds.",
        extra_json_schema={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
    ),
    wanted("a duration such as PT1M, above 0 and at most a year"),
]
_Duration = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]


class SentRate(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How many starts within any period."""

    limit: Annotated[int | float, whole(1, MAX_RATE)]
    period: _Period


_Rate = Annotated[SentRate, wanted("an object with `limit` and `period`, or a whole number of starts a second")]
_Starts = Annotated[int | float, whole(1, MAX_RATE)] | _Rate


class OverrideLimit(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """At least one of concurrency, rate and throttle."""

    concurrency: Annotated[int | float, whole(0, MAX_CONCURRENCY), Meta(description="How many at once; 0 lets none start.")] | (
        None
    ) = None
    rate: _Starts | None = None
    throttle: _Starts | None = None
    expires_at: SentMoment | None = None
    limit: (
        Annotated[
            int | float,
            whole(0, MAX_RATE),
            Meta(description="Another way to give `rate`, with `period`, or `concurrency`, without."),
        ]
        | None
    ) = None
    period: _Period | None = None
    max_per_second: Annotated[Any, HIDDEN] = None


class StartRate(OpenAnswer, frozen=True, kw_only=True):
    """How many starts within any period."""

    limit: Count
    period: _Duration


class ConcurrencyLimit(Struct, frozen=True, kw_only=True):
    """How many jobs may be active at once, and how many are."""

    limit: Count
    active: Count
    available: Count


class RateLimit(StartRate, frozen=True, kw_only=True):
    """Starts within any period, and those within the one that ends now."""

    current_count: Count
    window_resets_at: Moment


class ThrottleLimit(StartRate, frozen=True, kw_only=True):
    """Starts evenly spaced."""

    next_allowed_at: Moment


class LimitOverride(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """What an operator has set in place of what jobs say."""

    concurrency: Count | None = None
    rate: StartRate | None = None
    throttle: StartRate | None = None
    expires_at: Moment | None = None


class Limit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A limit as it stands. Nothing starts before `rate_limit_until`."""

    key: str
    on_limit: Annotated[str, one_of(OnLimit)]
    waiting_count: Count
    concurrency: ConcurrencyLimit | None = None
    rate: RateLimit | None = None
    throttle: ThrottleLimit | None = None
    rate_limit_until: Moment | None = None
    override: LimitOverride | None = None


class LimitPage(Struct, frozen=True):
    """A page of the limits."""

    items: list[Limit]
    pagination: Pagination


_SEARCH: Final = Parameter(
    "search", Annotated[str, Meta(min_length=1, max_length=255)], "A part of the name, in capital or small letters."
)

# fmt: off
LIST: Final = Operation(
    "listRateLimits", "GET /rate-limits", "read", "List limits",
    {200: LimitPage}, "Every key that was used within a month, by name.", query=(_SEARCH, *paged(DEFAULT_PAGE, MAX_NUMBERED)),
)
GET: Final = Operation(
    "getRateLimit", "GET /rate-limits/{key}", "read", "Read a limit",
    {200: Limit}, "404 if no job ever named the key.", errors=("not_found",),
)
OVERRIDE: Final = Operation(
    "overrideRateLimit", "PUT /rate-limits/{key}/override", "configure", "Override a limit",
    {200: Limit}, "In place of what jobs say, until `expires_at` if there is one.",
    also=("PUT /rate-limits/{key}",), body=OverrideLimit,
)
RESTORE: Final = Operation(
    "restoreRateLimit", "DELETE /rate-limits/{key}/override", "configure", "End an override",
    {200: Limit}, errors=("not_found",),
)
LIMITS: Final = Subject(
    "Limits", "Limits of keys that jobs name, and operators' words over them", (LIST, GET, OVERRIDE, RESTORE),
)

"""Limits of keys (docs/queues.md)."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.common import CONCURRENCY, NUMBERED_50, RATE, SEARCH
from ojs_engine.api.route import Part, Route
from ojs_engine.api.schema import TEXT, TIME, record, whole
from ojs_features.limits.answers import LimitAnswer, LimitPage
from ojs_features.limits.dialects import SHAPES
from ojs_features.limits.handlers import RateLimitHandlers

_OVERRIDE: Final = record(
    {},
    {
        "concurrency": CONCURRENCY,
        "rate": RATE,
        "throttle": RATE,
        "expires_at": TIME,
        "limit": whole(0, about="Another way to give `rate`, with `period`, or `concurrency`, without."),
        "period": TEXT,
    },
    about="At least one of concurrency, rate and throttle.",
)

PART: Final = Part(
    "Limits",
    "Limits of keys that jobs name, and operators' words over them",
    (
        Route(
            RateLimitHandlers,
            RateLimitHandlers.list,
            ("GET /rate-limits listRateLimits",),
            "read",
            "List limits",
            {200: LimitPage},
            "Every key that was used within a month, by name.",
            query=(SEARCH, *NUMBERED_50),
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.read,
            ("GET /rate-limits/{key} getRateLimit",),
            "read",
            "Read a limit",
            {200: LimitAnswer},
            "404 if no job ever named the key.",
            errors=("not_found",),
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.override,
            ("PUT /rate-limits/{key}/override overrideRateLimit", "PUT /rate-limits/{key}"),
            "configure",
            "Override a limit",
            {200: LimitAnswer},
            "In place of what jobs say, until `expires_at` if there is one.",
            body=_OVERRIDE,
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.restore,
            ("DELETE /rate-limits/{key}/override restoreRateLimit",),
            "configure",
            "End an override",
            {200: LimitAnswer},
            errors=("not_found",),
        ),
    ),
    SHAPES,
)

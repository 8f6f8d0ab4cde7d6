"""Limits of keys, and fair pools (docs/queues.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.domain.fair_pools import Strategy
from ojs_core.domain.rate_limits.policy import OnLimit
from ojs_core.wire.starvation import StarvationPrevention
from ojs_gateway.handlers.fair_pools import PoolHandlers
from ojs_gateway.handlers.rate_limits import RateLimitHandlers
from ojs_gateway.openapi.common import COUNT, DURATION, NUMBERED_50, PROGRESS, QUEUE_NAME, page_of
from ojs_gateway.openapi.envelope import CONCURRENCY, PREVENTION_REQUEST, RATE
from ojs_gateway.openapi.route import Part, Route
from ojs_gateway.openapi.schema import FLAG, TEXT, TIME, Named, Schema, either, list_of, map_of, number, one_of, record, whole

_RATE: Final[dict[str, Schema]] = {"limit": COUNT, "period": DURATION}
_LIMIT: Final = Named(
    "Limit",
    record(
        {"key": TEXT, "on_limit": one_of(*get_args(OnLimit)), **dict.fromkeys(("active", "waiting", "waiting_count"), COUNT)},
        {
            "concurrency": either(
                record({"limit": COUNT, "active": COUNT, "available": COUNT}), COUNT, about="The limit alone for the `ojs` CLI."
            ),
            "available": COUNT,
            "rate": record({**_RATE, "current_count": COUNT, "window_resets_at": TIME}),
            **_RATE,
            "rate_limit_until": TIME,
            "throttle": record({**_RATE, "next_allowed_at": TIME}),
            "override": record(
                {},
                {
                    "concurrency": COUNT,
                    "rate": record(_RATE),
                    **_RATE,
                    "throttle": record(_RATE),
                    "expires_at": TIME,
                },
            ),
        },
    ),
)
_OVERRIDE: Final = record(
    {},
    {
        "concurrency": CONCURRENCY,
        "rate": RATE,
        "throttle": RATE,
        "expires_at": TIME,
        "limit": whole(1, about="With `period`, another way to give `rate`."),
        "period": TEXT,
    },
    about="At least one of concurrency, rate and throttle.",
)

LIMITS: Final = Part(
    "Limits",
    "Limits of keys that jobs name, and operators' words over them",
    (
        Route(
            RateLimitHandlers,
            RateLimitHandlers.list,
            ("GET /rate-limits listRateLimits",),
            "List limits",
            {200: page_of(_LIMIT, "rate_limits", "items")},
            "Every key that was used within a month, by name.",
            query=NUMBERED_50,
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.read,
            ("GET /rate-limits/{key} getRateLimit",),
            "Read a limit",
            {200: _LIMIT},
            "404 if no job ever named the key.",
            errors=("not_found",),
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.override,
            ("PUT /rate-limits/{key}/override overrideRateLimit", "PUT /rate-limits/{key}"),
            "Override a limit",
            {200: _LIMIT},
            "In place of what jobs say, until `expires_at` if there is one.",
            body=_OVERRIDE,
        ),
        Route(
            RateLimitHandlers,
            RateLimitHandlers.restore,
            ("DELETE /rate-limits/{key}/override restoreRateLimit",),
            "End an override",
            {200: _LIMIT},
            errors=("not_found",),
        ),
    ),
)

_MEMBERS: Final[dict[str, Schema]] = {
    "name": TEXT,
    "strategy": one_of(*get_args(Strategy)),
    "queues": map_of(record({"weight": whole(1)})),
    "weights": map_of(whole(1)),
    "starvation_prevention": StarvationPrevention,
    "isolated": FLAG,
    "created_at": TIME,
    "updated_at": TIME,
}
_POOL: Final = Named("Pool", record(_MEMBERS))
_LISTED: Final = record(
    {
        **_MEMBERS,
        "id": TEXT,
        "queues": list_of(TEXT),
        **dict.fromkeys(("workers", "active_jobs", "concurrency"), COUNT),
    },
    about="A pool with what works for it.",
)
_ONE: Final = Named("PoolAnswer", record({"pool": _POOL}))
_SCHEDULING: Final = record(
    {
        "strategy": one_of(*get_args(Strategy), "mixed"),
        "window": DURATION,
        "dispatch_count_1m": COUNT,
        "queues": list_of(
            record(
                {
                    "name": TEXT,
                    **dict.fromkeys(("dispatch_count_1m", "active_jobs", "available_jobs"), COUNT),
                    "dispatch_ratio_1m": number(0, 1),
                    "avg_wait_ms": number(0),
                    "starved": FLAG,
                },
                {
                    "last_dispatch_at": TIME,
                    "oldest_available_at": TIME,
                    "pool": TEXT,
                    "strategy": one_of(*get_args(Strategy)),
                    "weight": whole(1),
                },
            )
        ),
        "computed_at": TIME,
    },
    PROGRESS,
)
_NAMED: Final = ("queue_name_too_long", "not_found")

POOLS: Final = Part(
    "Pools",
    "Queues that share fetches by weight or in turns",
    (
        Route(
            PoolHandlers,
            PoolHandlers.list,
            ("GET /admin/pools listPools",),
            "List pools",
            {200: record({"items": list_of(_POOL), "pools": list_of(_LISTED)})},
        ),
        Route(PoolHandlers, PoolHandlers.read, ("GET /admin/pools/{pool} getPool",), "Read a pool", {200: _ONE}, errors=_NAMED),
        Route(
            PoolHandlers,
            PoolHandlers.put,
            ("PUT /admin/pools/{pool} putPool",),
            "Set a pool",
            {200: _ONE, 201: _ONE},
            body=record(
                {
                    "queues": either(
                        list_of(QUEUE_NAME, 1, DEFAULT_LIMITS.max_queues), map_of(record({}, {"weight": whole(1, 10_000)}))
                    )
                },
                {
                    "strategy": one_of(*get_args(Strategy)),
                    "weights": map_of(whole(1, 10_000)),
                    "name": TEXT,
                    "starvation_prevention": PREVENTION_REQUEST,
                    "isolated": FLAG | {"description": "Its queues give jobs only to fetches that name the pool."},
                },
            ),
            errors=("queue_name_too_long", "conflict"),
        ),
        Route(
            PoolHandlers,
            PoolHandlers.delete,
            ("DELETE /admin/pools/{pool} deletePool",),
            "Delete a pool",
            {200: record({"deleted": FLAG, "name": TEXT})},
            errors=_NAMED,
        ),
        Route(
            PoolHandlers,
            PoolHandlers.stats,
            ("GET /admin/scheduling/stats getSchedulingStats",),
            "Read what each queue gave lately",
            {200: _SCHEDULING},
            "Within the last minute, through whichever gateway.",
        ),
    ),
)

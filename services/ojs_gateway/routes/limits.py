"""Limits of keys, and fair pools (docs/queues.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_core.api.common import NUMBERED_50, QUEUE_NAME, SEARCH
from ojs_core.api.route import Part, Route
from ojs_core.api.schema import FLAG, TEXT, TIME, either, list_of, map_of, one_of, record, whole
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.domain.fair_pools import Strategy
from ojs_core.wire.queues.fair_pools import DeletedPool, OnePool, PoolList
from ojs_core.wire.queues.rate_limits import LimitAnswer, LimitPage
from ojs_core.wire.queues.scheduling import SchedulingStats
from ojs_gateway.handlers.fair_pools import PoolHandlers
from ojs_gateway.handlers.rate_limits import RateLimitHandlers
from ojs_gateway.openapi.envelope import CONCURRENCY, PREVENTION_REQUEST, RATE

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

LIMITS: Final = Part(
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
            "read",
            "List pools",
            {200: PoolList},
        ),
        Route(
            PoolHandlers,
            PoolHandlers.read,
            ("GET /admin/pools/{pool} getPool",),
            "read",
            "Read a pool",
            {200: OnePool},
            errors=_NAMED,
        ),
        Route(
            PoolHandlers,
            PoolHandlers.put,
            ("PUT /admin/pools/{pool} putPool",),
            "configure",
            "Set a pool",
            {200: OnePool, 201: OnePool},
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
            "configure",
            "Delete a pool",
            {200: DeletedPool},
            errors=_NAMED,
        ),
        Route(
            PoolHandlers,
            PoolHandlers.stats,
            ("GET /admin/scheduling/stats getSchedulingStats",),
            "read",
            "Read what each queue gave lately",
            {200: SchedulingStats},
            "Within the last minute, through whichever gateway.",
        ),
    ),
)

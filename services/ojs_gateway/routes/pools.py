"""Fair pools (docs/queues.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_engine.api.common import QUEUE_NAME
from ojs_engine.api.envelope import PREVENTION_REQUEST
from ojs_engine.api.route import Part, Route
from ojs_engine.api.schema import FLAG, TEXT, either, list_of, map_of, one_of, record, whole
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.fair_pools import Strategy
from ojs_engine.wire.queues.fair_pools import DeletedPool, OnePool, PoolList
from ojs_engine.wire.queues.scheduling import SchedulingStats
from ojs_gateway.handlers.fair_pools import PoolHandlers

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

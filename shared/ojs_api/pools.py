"""Pools: queues that share what a fetch gets (docs/queues.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from ojs_api import words
from ojs_api.members import (
    Count,
    Ignored,
    Measure,
    Moment,
    OpenAnswer,
    Part,
    QueueName,
    one_of,
    unsupported,
    wanted,
)
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import Indexed
from ojs_api.queues import PreventionRequest, StarvationPrevention

MOST_QUEUES: Final = 100
MAX_WEIGHT: Final = 10_000

_WEIGHT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_WEIGHT}
_NAME: Final = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9.\-]*$", "maxLength": 255}
_LIST: Final = {"type": "array", "items": _NAME, "minItems": 1, "maxItems": MOST_QUEUES}
_WEIGHED: Final = {"type": "object", "additionalProperties": {"type": "object", "properties": {"weight": _WEIGHT}}}
_Queues = Annotated[
    list[Any] | dict[str, Any],
    Meta(description="By name, or each with its weight.", extra_json_schema={"anyOf": [_LIST, _WEIGHED]}),
    wanted("a list of queues, or an object with the weight of each"),
]
_Weights = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={"type": "object", "additionalProperties": _WEIGHT}),
    wanted("an object with the weights of queues"),
]
_Strategy = Annotated[
    Literal[words.PoolStrategy, "round_robin"], Meta(extra_json_schema={"enum": [*get_args(words.PoolStrategy)]})
]
_NotSupported = Annotated[Any, unsupported("is not supported for pools by this server")]
_STARVED: Final = (
    "Whether jobs wait that nothing keeps back, and none was handed out for the interval (ojs-fair-scheduling §11.1)."
)


class PutPool(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A pool as it is to be. Queues without a weight have 1."""

    queues: _Queues
    strategy: _Strategy | None = None
    weights: _Weights | None = None
    name: Annotated[str, Meta(description="Without effect: the path has it.")] | None = None
    starvation_prevention: PreventionRequest | None = None
    isolated: Annotated[bool, Meta(description="Its queues give jobs only to fetches that name the pool.")] | None = None
    concurrency: _NotSupported = None
    tenant_fairness: _NotSupported = None
    created_at: Ignored = None
    updated_at: Ignored = None


class Pool(OpenAnswer, frozen=True, kw_only=True):
    """Queues that share fetches."""

    name: str
    strategy: Annotated[str, one_of(words.PoolStrategy)]
    queues: list[str]
    weights: dict[str, Annotated[int, Meta(extra_json_schema={"minimum": 1})]]
    starvation_prevention: StarvationPrevention
    isolated: bool
    created_at: Moment
    updated_at: Moment


class OnePool(Struct, frozen=True):
    """The answer about one pool."""

    pool: Pool


class ListedPool(Pool, frozen=True, kw_only=True):
    """A pool with what works for it."""

    active_workers: Count
    active_jobs: Count
    concurrency: Annotated[Count, Meta(description="How many jobs its workers run at once.")]


class PoolList(Struct, frozen=True):
    """All pools, by name."""

    items: list[ListedPool]


class DeletedPool(Struct, frozen=True):
    """The pool is gone; its queues are served like any others."""

    deleted: bool
    name: str


class Dispatches(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a queue gave to workers within the last minute."""

    name: str
    dispatch_count_1m: Count
    dispatch_ratio_1m: Annotated[Part, Meta(description="The queue's part of all jobs.")]
    avg_wait_ms: Annotated[Measure, Meta(description="The mean wait of those jobs.")]
    active_jobs: Count
    available_jobs: Count
    starved: Annotated[bool, Meta(description=_STARVED)]
    last_dispatch_at: Moment | None = None
    oldest_available_at: Moment | None = None
    pool: str | None = None
    strategy: Annotated[str, one_of(words.PoolStrategy)] | None = None
    weight: Annotated[int, Meta(extra_json_schema={"minimum": 1})] | None = None


class SchedulingTotals(Struct, frozen=True, kw_only=True):
    """All queues together."""

    queues: Count
    starved: Annotated[Count, Meta(description="Queues that are starved.")]
    active_jobs: Count
    available_jobs: Count


class SchedulingStats(Indexed, frozen=True, kw_only=True):
    """What each queue gave within the last minute."""

    strategy: Annotated[
        str, one_of(Literal[words.PoolStrategy, "mixed"]), Meta(description="That of all pools, if they have the same.")
    ]
    window: Annotated[str, Meta(description="That time, as a duration (ISO 8601).")]
    dispatch_count_1m: Count
    stats: SchedulingTotals
    queues: list[Dispatches]
    computed_at: Moment


_NAMED: Final = ("queue_name_too_long", "not_found")

# fmt: off
LIST: Final = Operation("listPools", "GET /admin/pools", "read", "List pools", {200: PoolList})
GET: Final = Operation("getPool", "GET /admin/pools/{pool}", "read", "Read a pool", {200: OnePool}, errors=_NAMED)
PUT: Final = Operation(
    "putPool", "PUT /admin/pools/{pool}", "configure", "Set a pool", {200: OnePool, 201: OnePool},
    body=PutPool, errors=("queue_name_too_long", "conflict"),
)
DELETE: Final = Operation(
    "deletePool", "DELETE /admin/pools/{pool}", "configure", "Delete a pool", {200: DeletedPool}, errors=_NAMED,
)
STATS: Final = Operation(
    "getSchedulingStats", "GET /admin/scheduling/stats", "read", "Read what each queue gave lately",
    {200: SchedulingStats}, "Within the last minute, through whichever gateway.",
)
POOLS: Final = Subject(
    "Pools", "Queues that share fetches by weight or in turns",
    (LIST, GET, PUT, DELETE, STATS),
    (Parameter("pool", QueueName, "The pool's name."),),
)

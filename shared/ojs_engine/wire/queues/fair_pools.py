"""Fair pools as clients set and read them (ojs-fair-scheduling §8.1, §10.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.extensions import sent_extensions
from ojs_engine.base.fields import (
    below,
    check_once,
    choice,
    flag,
    integer,
    is_extension,
    mapping,
    object_of,
    queue_name,
    queue_names,
    shown,
    value_of,
)
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_ms
from ojs_engine.domain.fair_pools import Pool, Strategy
from ojs_engine.read.messages import WorkerRow
from ojs_engine.wire.members import Count, Extended, OpenStruct, Timestamp, extended
from ojs_engine.wire.queues.starvation import StarvationPrevention, parse_prevention, prevention_view

_STRATEGIES: Final = {"weighted": "weighted", "round-robin": "round-robin", "round_robin": "round-robin", "strict": "strict"}
_MAX_WEIGHT: Final = 10_000
_KNOWN: Final = (
    "name",
    "strategy",
    "queues",
    "weights",
    "starvation_prevention",
    "isolated",
    "created_at",
    "updated_at",
)
"""The times may be sent back as they came; they change nothing."""


class PoolAnswer(OpenStruct, kw_only=True):
    """Queues that share fetches."""

    name: str
    strategy: Strategy
    queues: list[str]
    weights: dict[str, Annotated[int, Meta(ge=1)]]
    starvation_prevention: StarvationPrevention
    isolated: bool
    created_at: Timestamp
    updated_at: Timestamp


class OnePool(Struct):
    """The answer about one pool."""

    pool: PoolAnswer | Extended[PoolAnswer]


class ListedPool(PoolAnswer, kw_only=True):
    """A pool with what works for it: `concurrency` is how many jobs its workers take at once."""

    active_workers: Count
    active_jobs: Count
    concurrency: Count


class PoolList(Struct):
    """All pools, by name."""

    items: list[ListedPool | Extended[ListedPool]]


class DeletedPool(Struct):
    """The pool is gone; its queues are served like any others."""

    deleted: bool
    name: str


def pool_name(text: str, limits: PayloadLimits) -> str:
    """Names of pools follow the rules of queue names."""
    return queue_name(text, "name", limits)


def parse_pool(body: bytes, name: str, limits: PayloadLimits) -> Pool:
    """`{strategy, queues: {name: {weight}} or [name], weights?: {name: n}, starvation_prevention?, isolated?}`.

    Raises invalid_request, `unsupported`.
    """
    sent = object_of(check_once(body))
    members = {member: value_of(raw, member, limits) for member, raw in sent.items()}
    for member, value in members.items():
        if member not in _KNOWN and value not in (None, False) and not is_extension(member):
            field = below("", member)
            message = f"{field} is not supported for pools by this server"
            raise OjsError("unsupported", message, details={"field": field})
    strategy = _STRATEGIES[choice(members.get("strategy") or "round-robin", "strategy", tuple(_STRATEGIES))]
    weights = _weights(members.get("queues"), members.get("weights"), limits)
    heavy = next((queue for queue, weight in weights.items() if weight != 1 and strategy != "weighted"), None)
    if heavy is not None:
        message = f"the weight of queue {shown(heavy)} has no effect with strategy {strategy}; send strategy weighted"
        raise invalid("strategy", message)
    prevention = parse_prevention(members.get("starvation_prevention"), "starvation_prevention", len(weights), limits)
    isolated = flag(members.get("isolated") or False, "isolated")
    name = pool_name(name, limits)
    return Pool(
        name=name,
        strategy=strategy,  # type: ignore[arg-type]
        weights=weights,
        prevention=prevention,
        isolated=isolated,
        extensions=sent_extensions(sent, limits, changed=("starvation_prevention",)).over({}, limits),
    )


def _weights(queues: Any, weights: Any, limits: PayloadLimits) -> dict[str, int]:
    if type(queues) is list:
        queues = dict.fromkeys(queue_names(queues, "queues", limits), 1)
    if type(queues) is not dict or not 0 < len(queues) <= limits.max_queues:
        raise invalid("queues", f"queues must name 1 to {limits.max_queues} queues, as a list or with their weights")
    weights = mapping({} if weights is None else weights, "weights")
    for queue in weights:
        if queue not in queues:
            field = below("weights", queue)
            raise invalid(field, f"{field} is of a queue that queues doesn't name; add it there")
    found: dict[str, int] = {}
    for queue, given in queues.items():
        weight = given.get("weight", 1) if type(given) is dict else given
        weight = weights.get(queue, weight)
        name = queue_name(queue, "queues", limits)
        found[name] = integer(weight, f"queues.{queue}.weight", 1, _MAX_WEIGHT)
    return found


def listed_pool(pool: Pool, workers: Sequence[WorkerRow], active: int) -> ListedPool | Extended[ListedPool]:
    """A pool with the workers that serve its queues, and how many of its jobs are active."""
    listed = ListedPool(
        **msgspec.structs.asdict(_answer(pool)),
        active_workers=len(workers),
        active_jobs=active,
        concurrency=sum(worker.record.concurrency or 1 for worker in workers),
    )
    return extended(listed, pool.extensions)


def pool_answer(pool: Pool) -> PoolAnswer | Extended[PoolAnswer]:
    """A pool as it is set."""
    return extended(_answer(pool), pool.extensions)


def _answer(pool: Pool) -> PoolAnswer:
    prevention = pool.prevention
    return PoolAnswer(
        name=pool.name,
        strategy=pool.strategy,
        queues=list(pool.weights),
        weights=pool.weights,
        starvation_prevention=(
            prevention_view(None) if prevention is None else prevention_view(prevention.interval_ms, prevention.ratio)
        ),
        isolated=pool.isolated,
        created_at=format_ms(pool.created_at),
        updated_at=format_ms(pool.updated_at),
    )

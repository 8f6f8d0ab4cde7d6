"""Pools as clients set and read them (ojs-fair-scheduling §8.1, §10.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from ojs_api import pools as contract
from ojs_api.pools import MAX_WEIGHT, ListedPool, PutPool
from ojs_api.queues import PreventionRequest
from ojs_engine.base.errors import invalid
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import below, integer, queue_name, queue_names, shown
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.members import extended, moment, written
from ojs_engine.wire.queues.starvation import interval_ms, prevention_view
from ojs_engine.wire.requests import request_of
from ojs_features.pools.rules import Pool, Prevention, Strategy
from ojs_index.asking.messages import WorkerRow

_USUAL = Prevention()


# Requests


def pool_name(text: str, limits: PayloadLimits) -> str:
    """Return the name of a pool, which follows the rules of queue names."""
    return queue_name(text, "name", limits)


def parse_pool(body: bytes, name: str, limits: PayloadLimits) -> Pool:
    """Return the pool that a request asks for. Raises OjsError invalid_payload, invalid_request, `unsupported`."""
    sent = request_of(body, PutPool)
    strategy = _strategy(sent.strategy)
    weights = _weights(sent, limits)
    heavy = next((queue for queue, weight in weights.items() if weight != 1 and strategy != "weighted"), None)
    if heavy is not None:
        message = f"the weight of queue {shown(heavy)} has no effect with strategy {strategy}; send strategy weighted"
        raise invalid("strategy", message)
    return Pool(
        name=pool_name(name, limits),
        strategy=strategy,
        weights=weights,
        prevention=_prevention(sent.starvation_prevention, len(weights), limits),
        isolated=bool(sent.isolated),
        extensions=extensions_in(body, limits, replaced=("starvation_prevention",)),
    )


def _strategy(sent: str | None) -> Strategy:
    match sent:
        case "weighted" | "strict":
            return sent
        case _:
            return "round-robin"


def _weights(sent: PutPool, limits: PayloadLimits) -> dict[str, int]:
    named = sent.queues
    queues: dict[str, Any] = dict.fromkeys(queue_names(named, "queues", limits), 1) if isinstance(named, list) else named
    if not 0 < len(queues) <= limits.max_queues:
        raise invalid("queues", f"queues must name 1 to {limits.max_queues} queues, as a list or with their weights")
    weights = sent.weights or {}
    for queue in weights:
        if queue not in queues:
            field = below("weights", queue)
            raise invalid(field, f"{field} is of a queue that queues doesn't name; add it there")
    found: dict[str, int] = {}
    for queue, given in queues.items():
        weight = given.get("weight", 1) if type(given) is dict else given
        name = queue_name(queue, "queues", limits)
        found[name] = integer(weights.get(queue, weight), f"queues.{queue}.weight", 1, MAX_WEIGHT)
    return found


def _prevention(sent: PreventionRequest | None, queues: int, limits: PayloadLimits) -> Prevention | None:
    """Return the guarantee of a pool of so many queues; None where it isn't enabled."""
    if sent is None:
        return None
    most = 1 / queues
    ratio = min(_USUAL.ratio, most) if sent.min_dispatch_ratio is None else sent.min_dispatch_ratio
    if ratio > most:
        field = "starvation_prevention.min_dispatch_ratio"
        raise invalid(field, f"{field} must be a number from 0 to {most:g}, since {queues} queues share 1, not {shown(ratio)}")
    found_ms = interval_ms(sent.rotation_interval, "starvation_prevention", limits)
    return Prevention(interval_ms=found_ms, ratio=ratio) if sent.enabled else None


# Answers


def listed_pool(pool: Pool, workers: Sequence[WorkerRow], active: int) -> ListedPool:
    """Return a pool with the workers that serve its queues, and how many of its jobs are active."""
    listed = ListedPool(
        **asdict(_answer(pool)),
        active_workers=len(workers),
        active_jobs=active,
        concurrency=sum(worker.record.concurrency or 1 for worker in workers),
    )
    whole: ListedPool = written(extended(listed, pool.extensions))
    return whole


def pool_answer(pool: Pool) -> contract.Pool:
    """Return a pool as it is set."""
    whole: contract.Pool = written(extended(_answer(pool), pool.extensions))
    return whole


def _answer(pool: Pool) -> contract.Pool:
    kept = pool.prevention
    return contract.Pool(
        name=pool.name,
        strategy=pool.strategy,
        queues=list(pool.weights),
        weights=pool.weights,
        starvation_prevention=prevention_view(None) if kept is None else prevention_view(kept.interval_ms, kept.ratio),
        isolated=pool.isolated,
        created_at=moment(pool.created_at),
        updated_at=moment(pool.updated_at),
    )

"""What a limit has granted to a claim that isn't written goes back to it, once (docs/adr/014)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.samples import draft, fetch, losing_answers, set_up, unreachable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import LimitPolicy
from ojs_engine.store.store import Store
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import PermitClaim, key_scope, queue_scope
from ojs_features.limits.rules import LimitOverride
from ojs_features.limits.subjects import Subjects
from support.outside import after, before, clock_of, reads_of

pytestmark = pytest.mark.usefixtures("own_stores")

RATE = {"limit": 3, "period": "PT1H"}


def limited(queue: str, key: str, **policy: Any) -> Job:
    return draft(queue=queue, rate_limit=Raw(msgspec.json.encode({"key": key, **policy})))


@pytest.fixture
def key(queue: str) -> str:
    return f"key:{queue}"


@pytest.fixture
def scope(key: str) -> str:
    return key_scope(key)


@pytest.fixture
def _heads(store: Store, other: Store) -> Iterator[None]:
    """Both gateways read tokens from the heads of their subjects, as if there couldn't be more consumers."""
    with ExitStack() as refusing:
        for one in (store, other):
            refusing.enter_context(unreachable(one.bulk, "$JS.API.CONSUMER.", times=1_000_000))
        yield


async def starts(store: Store, scope: str) -> int:
    """How many starts the limit counts."""
    _, record = await store.of(Limits).permits.read(scope)
    return sum(number for _, number in record.grants)


@pytest.fixture
def when_granted(store: Store, scope: str) -> Iterator[Callable[[Callable[[], Awaitable[Any]]], None]]:
    """Has something happen once between a grant of the key's limit and the claim that it was granted to."""
    granting = ExitStack()

    def have(happen: Callable[[], Awaitable[Any]]) -> None:
        granting.enter_context(after(store.nats, Subjects(store.config).limit(scope), happen))

    with granting:
        yield have


@pytest.mark.usefixtures("_heads")
async def test_a_gateway_that_loses_a_race_gives_the_start_back(
    store: Store, other: Store, queue: str, key: str, scope: str, when_granted: Callable[..., None]
) -> None:
    won: list[Job] = []

    async def other_claims() -> None:
        won.extend(await fetch(other, queue))

    jobs = [await store.enqueue.push(limited(queue, key, rate=RATE)) for _ in range(6)]
    when_granted(other_claims)
    found = await fetch(store, queue, count=1)
    assert await starts(store, scope) == len(won) + len(found)
    found += await fetch(other, queue, count=6)
    assert sorted(job.id for job in won + found) == sorted(job.id for job in jobs[:3])


@pytest.mark.usefixtures("_heads")
@pytest.mark.parametrize("of", ["key", "queue"])
async def test_a_rate_gives_all_its_starts_to_gateways_that_race_for_jobs(
    store: Store, other: Store, queue: str, key: str, of: str
) -> None:
    if of == "queue":
        await set_up([store, other], queue, rate_limit=Rate(3, 3_600_000))
    for _ in range(9):
        await store.enqueue.push(draft(queue=queue) if of == "queue" else limited(queue, key, rate=RATE))
    found = list(chain.from_iterable(await asyncio.gather(fetch(store, queue, count=2), fetch(other, queue, count=2))))
    for one in (store, other):
        found += await fetch(one, queue, count=5)
    assert len({job.id for job in found}) == 3
    assert await starts(store, queue_scope(queue) if of == "queue" else key_scope(key)) == 3


@pytest.mark.parametrize("policy", [{"rate": RATE}, {"throttle": RATE}, {"rate": RATE, "concurrency": 5}])
async def test_a_job_that_is_cancelled_before_its_claim_has_used_nothing_up(
    store: Store, queue: str, key: str, scope: str, when_granted: Callable[..., None], policy: dict[str, Any]
) -> None:
    job = await store.enqueue.push(limited(queue, key, **policy))
    when_granted(lambda: store.jobs.change(job.id, transitions.cancel))
    assert await fetch(store, queue) == []
    _, record = await store.of(Limits).permits.read(scope)
    assert (record.grants, record.holders) == ((), ())


async def test_a_job_whose_time_is_up_when_it_is_let_through_has_used_nothing_up(
    store: Store, queue: str, key: str, scope: str
) -> None:
    job = limited(queue, key, rate=RATE)
    later = store.clock.now() + 3_600_000
    await store.enqueue.push(msgspec.structs.replace(job, expires_at=later))

    async def time_passes() -> None:
        clock_of(store).ahead_ms = 3_700_000

    with before(store.nats, reads_of(Subjects(store.config).limit(scope)), time_passes) as asked:
        assert await fetch(store, queue) == []
    assert asked
    assert await starts(store, scope) == 0


async def test_a_key_whose_job_the_queue_stops_keeps_its_start(
    store: Store, other: Store, queue: str, key: str, scope: str, when_granted: Callable[..., None]
) -> None:
    """Another gateway's claim comes after this one has looked."""
    await set_up([store, other], queue, concurrency=1)
    await store.enqueue.push(limited(queue, key, rate=RATE))
    another = PermitClaim("another", "op", 0)
    when_granted(lambda: other.of(Limits).permits.take(queue_scope(queue), [another], LimitPolicy(concurrency=1)))
    assert await fetch(store, queue) == []
    assert await starts(store, scope) == 0


async def test_a_start_whose_return_is_in_doubt_is_not_given_back_twice(
    store: Store, other: Store, queue: str, key: str, scope: str, when_granted: Callable[..., None]
) -> None:
    """Its answer is lost, and by the time that somebody looks the record is another one."""
    for _ in range(2):
        await store.enqueue.push(limited(queue, key, rate=RATE))
    assert len(await fetch(store, queue, count=2)) == 2
    job = await store.enqueue.push(limited(queue, key, rate=RATE))
    subject = Subjects(store.config).limit(scope)
    doubt = ExitStack()
    looked: list[str] = []

    async def its_return_is_in_doubt() -> None:
        nonlocal looked
        await store.jobs.change(job.id, transitions.cancel)
        lost = doubt.enter_context(losing_answers(store.nats, subject))
        read = reads_of(subject)
        looked = doubt.enter_context(before(store.nats, lambda *asked: bool(lost) and read(*asked), override))

    async def override() -> None:
        await other.of(Limits).permits.override(scope, LimitOverride(concurrency=100))

    when_granted(its_return_is_in_doubt)
    with doubt:
        assert await fetch(store, queue) == []
    assert looked
    assert await starts(store, scope) == 2

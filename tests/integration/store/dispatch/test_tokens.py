"""Tokens that are stale, early, doubled or junk: they hand out nothing and hold nobody up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from integration.samples import draft, fetch, from_durables, from_heads, requeued, tokens
from ojs_engine.domain import transitions
from ojs_engine.store.dispatch.in_hand import ClaimTimings
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.records.tokens import token_of
from ojs_engine.store.store import Store
from support.outside import ahead
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("way")


def both_ways(**dispatch: Any) -> pytest.MarkDecorator:
    """Other times, whichever way tokens are had."""
    made = [from_heads(**dispatch), from_durables(**dispatch)]
    return pytest.mark.parametrize(("way", "timings"), [("head", made[0]), ("durable", made[1])], ids=("head", "durable"))


async def put_token(store: Store, queue: str, job_id: str, word: str, replaces: int, priority: int = 0) -> None:
    answer = await store.nats.request(store.config.ready(queue, priority), token_of(job_id, word, replaces))
    assert b'"error"' not in answer.data  # type: ignore[union-attr]


async def no_token(store: Store, queue: str) -> bool:
    return await tokens(store, queue) == 0


async def test_the_token_of_a_cancelled_job_is_dropped(store: Store, queue: str) -> None:
    gone = await store.enqueue.push(draft(queue=queue))
    good = await store.enqueue.push(draft(queue=queue))
    await store.jobs.change(gone.id, transitions.cancel)
    assert [job.id for job in await fetch(store, queue)] == [good.id]
    await eventually(lambda: no_token(store, queue))


async def test_the_token_of_a_purged_job_is_not_kept_for_a_record_to_come(store: Store, queue: str) -> None:
    gone = await store.enqueue.push(draft(queue=queue))
    await store.jobs.change(gone.id, transitions.cancel)
    await store.jobs.change(gone.id, transitions.remove)
    assert await fetch(store, queue) == []
    await eventually(lambda: no_token(store, queue))


async def test_tokens_of_cancelled_jobs_do_not_end_a_fetch_that_has_something(store: Store, queue: str) -> None:
    pushed = [await store.enqueue.push(draft(queue=queue, priority=priority)) for priority in (9, 5, 0)]
    await store.jobs.change(pushed[1].id, transitions.cancel)
    assert [job.id for job in await fetch(store, queue, count=2)] == [pushed[0].id, pushed[2].id]


async def test_an_old_token_of_a_requeued_job_hands_out_nothing(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    [claimed] = await fetch(store, queue)
    await store.jobs.change(claimed.id, requeued)
    await put_token(store, queue, pushed.id, pushed.token or "", 0)  # redelivered after its ack was lost
    taken = await fetch(store, queue, count=9)
    assert [(job.id, job.attempt) for job in taken] == [(pushed.id, 2)]
    await eventually(lambda: no_token(store, queue))


@pytest.mark.parametrize("count", [1, 10])
async def test_a_doubled_token_hands_its_job_out_once(store: Store, queue: str, count: int) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    for _ in range(3):
        await put_token(store, queue, pushed.id, pushed.token or "", 0)
    taken = [job.id for _ in range(4) for job in await fetch(store, queue, count=count)]
    assert taken == [pushed.id]
    await eventually(lambda: no_token(store, queue))


async def test_a_token_of_another_priority_does_not_lift_its_job(store: Store, queue: str) -> None:
    low = await store.enqueue.push(draft(queue=queue, priority=0))
    high = await store.enqueue.push(draft(queue=queue, priority=5))
    await put_token(store, queue, low.id, low.token or "", 0, priority=9)
    assert [job.id for job in await fetch(store, queue, count=9)] == [high.id, low.id]


@pytest.mark.parametrize("count", [1, 20])
async def test_tokens_of_refused_commits_hold_nobody_up(store: Store, queue: str, count: int) -> None:
    taken_id = (await store.enqueue.push(draft(queue=f"{queue}.elsewhere"))).id
    for number in range(20):
        await put_token(store, queue, taken_id, f"refused{number}", 0)
    pushed = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(5)]
    looked = store.records.many
    looks = 0

    async def counted(ids: list[str]) -> object:
        nonlocal looks
        looks += 1
        return await looked(ids)

    store.records.many = counted  # type: ignore[method-assign,assignment]
    found: list[str] = []
    while len(found) < 5:
        found += [job.id for job in await fetch(store, queue, count=count)]
    assert found == pushed
    assert looks <= 20 + 5, "none of them was looked at twice"


@both_ways(claims=ClaimTimings(young_ms=60_000, reread_s=60.0))
async def test_a_token_ahead_of_its_record_is_claimed_in_order(store: Store, queue: str) -> None:
    early = draft(queue=queue)
    moment = store.clock.moment()
    transition = transitions.push(early, moment)
    await put_token(store, queue, early.id, moment.op, 0)
    behind = await store.enqueue.push(draft(queue=queue))
    fetching = asyncio.create_task(fetch(store, queue, count=2))
    looked = store.records.many
    looks = 0

    async def counted(ids: list[str]) -> object:
        nonlocal looks
        looks += 1
        return await looked(ids)

    store.records.many = counted  # type: ignore[method-assign,assignment]
    await eventually(lambda: looks >= 3)  # it was met without its record
    await store.nats.request(store.config.job(early.id), encode_job(transition.job))
    assert [job.id for job in await fetching] == [early.id, behind.id]


@pytest.mark.parametrize("count", [1, 10])
async def test_a_token_whose_record_never_comes_lets_the_others_pass(store: Store, queue: str, count: int) -> None:
    for number in range(3):
        await put_token(store, queue, draft().id, f"junk{number}", 0)
    pushed = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(4)]
    found: list[str] = []
    while len(found) < 4:
        some = await fetch(store, queue, count=count, wait_ms=60_000)
        assert some, "they wait behind those that never come"
        found += [job.id for job in some]
    assert found == pushed


@both_ways(claims=ClaimTimings(young_ms=100, park_s=0.2, drop_after_ms=600_000))
async def test_a_token_whose_record_never_comes_is_dropped_in_the_end(store: Store, queue: str) -> None:
    await put_token(store, queue, draft().id, "junk", 0)

    async def dropped() -> bool:
        assert await fetch(store, queue) == []
        return await no_token(store, queue)

    assert not await dropped(), "not at once"
    with ahead(store, 600_000):
        await eventually(dropped)


@both_ways(claims=ClaimTimings(young_ms=50, park_s=0.3))
async def test_a_parked_token_is_claimed_when_its_record_comes_late(store: Store, queue: str) -> None:
    late = draft(queue=queue)
    moment = store.clock.moment()
    await put_token(store, queue, late.id, moment.op, 0)
    assert await fetch(store, queue) == []
    assert await fetch(store, queue) == []
    await store.nats.request(store.config.job(late.id), encode_job(transitions.push(late, moment).job))
    assert [job.id for job in await fetch(store, queue, wait_ms=60_000)] == [late.id]


@pytest.mark.parametrize("body", [b"", b"hello", b"a b c", b"\xff\xfe 1 2", b"1 2 3 4"])
async def test_what_is_no_token_is_dropped(store: Store, queue: str, body: bytes) -> None:
    await store.nats.request(store.config.ready(queue, 0), body)
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [pushed.id]
    await eventually(lambda: no_token(store, queue))


async def test_a_token_whose_fetcher_died_comes_back(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    dispatcher = store.dispatcher
    tokens_in_hand = await dispatcher.reader.pull(store.config.ready(queue, 0), queue, 1)  # and nothing follows
    assert len(tokens_in_hand) == 1
    assert await fetch(store, queue) == []
    assert [job.id for job in await fetch(store, queue, wait_ms=60_000)] == [pushed.id]

"""Unique pushes and batches on three servers, while the stream's leader moves and dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.samples import draft, fetch
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.store.records.records import Stored
from ojs_engine.store.store import Store
from support.cluster import NatsCluster, step_down
from support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def unique(args: Any, on_conflict: str, **members: Any) -> Job:
    policy = {"keys": ["type", "args"], "on_conflict": on_conflict}
    return keyed(draft(args=Raw(msgspec.json.encode(args)), unique=Raw(msgspec.json.encode(policy)), **members))


async def stores(cluster: NatsCluster, open_store: OpenStore, number: int) -> list[Store]:
    return [await open_store(cluster.url, replicas=3) for _ in range(number)]


async def one_push(store: Store, job: Job) -> str:
    try:
        await store.enqueue.push(job)
    except OjsError as error:
        return error.code
    return "pushed"


async def answer_to(store: Store, job: Job) -> bool:
    """Whether a push gets an answer that says something."""
    return await one_push(store, job) in {"pushed", "duplicate"}


async def records(store: Store, drafts: list[Job]) -> list[Job | None]:
    """As the leader has them, once there is one again."""

    async def read(job: Job) -> Stored:
        found = await eventually(lambda: one_read(store, job))
        assert found is not None
        return found

    return [(await read(job)).job for job in drafts]


async def one_read(store: Store, job: Job) -> Stored | None:
    try:
        return await store.records.leader(job.id)
    except OjsError:
        return None


async def some_answered(pushes: Sequence[asyncio.Future[Any]], number: int) -> None:
    def so_many_answered() -> bool:
        return sum(push.done() for push in pushes) >= number

    await eventually(so_many_answered, every=0.002)


@pytest.mark.parametrize("strategy", ["reject", "replace"])
async def test_one_job_lives_while_the_leader_moves(
    nats_cluster: NatsCluster, open_store: OpenStore, queue: str, strategy: str
) -> None:
    gateways = await stores(nats_cluster, open_store, 3)
    drafts = [unique([queue], strategy, queue=queue) for _ in range(120)]

    pushes = [asyncio.ensure_future(one_push(gateways[index % 3], draft)) for index, draft in enumerate(drafts)]
    for number in (1, 20, 60):
        await some_answered(pushes, number)
        await step_down(gateways[0], gateways[0].config.records_stream)
    answers = Counter(await asyncio.gather(*pushes))
    assert set(answers) <= {"pushed", "duplicate", "backend_unavailable", "backend_error"}
    found = await records(gateways[0], drafts)
    live = [job for job in found if job is not None and not job.terminal]
    assert len(live) <= 1
    # Whatever was left in the middle is sorted out by the next push.
    last = unique([queue], strategy, queue=queue)
    await eventually(lambda: answer_to(gateways[1], last))
    (holder,) = [job for job in await records(gateways[0], [*drafts, last]) if job is not None and not job.terminal]
    assert live in ([], [holder]) or holder.id == last.id
    assert [job.id for job in await fetch(gateways[2], queue, count=10, wait_ms=2_000)] == [holder.id]


async def test_batches_are_there_wholly_or_not_at_all_while_the_leader_moves(
    nats_cluster: NatsCluster, open_store: OpenStore, queue: str
) -> None:
    (store,) = await stores(nats_cluster, open_store, 1)
    batches = [[draft(queue=queue) for _ in range(20)] for _ in range(15)]
    answered: list[int] = []

    async def push(index: int) -> None:
        with suppress(OjsError):
            await store.enqueue.push_all(batches[index])
            answered.append(index)

    pushes = [asyncio.ensure_future(push(index)) for index in range(len(batches))]
    await some_answered(pushes, 1)
    await step_down(store, store.config.records_stream)
    await asyncio.gather(*pushes)
    for index, batch in enumerate(batches):
        found = await records(store, batch)
        stored = sum(job is not None and job.state is State.AVAILABLE for job in found)
        assert stored in ({20} if index in answered else {0, 20})
    assert answered

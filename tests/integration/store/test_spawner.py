"""The jobs that a record names: each is created once, however often and by whomever (docs/adr/008, docs/adr/011)."""

from __future__ import annotations

import pytest
from msgspec import Raw

from integration.samples import draft, fetch, refusal, tokens
from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.store.enqueue.enqueue import Push
from ojs_engine.store.records.records import ABSENT
from ojs_engine.store.store import Store
from ojs_features.unique.uniqueness import Uniqueness

_UNIQUE = Raw(b'{"keys":["type","queue"]}')


def unique(queue: str) -> Job:
    return keyed(draft(queue=queue, unique=_UNIQUE))


def refusing(error: OjsError) -> Push:
    async def push(_draft: Job) -> Job:
        raise error

    return push


async def test_named_jobs_are_created_in_order_and_once(store: Store, other: Store, queue: str) -> None:
    named = [draft(queue=queue), unique(queue), draft(queue=queue)]
    assert await store.spawner.ensure(named) == []
    before = await store.records.surely([job.id for job in named])
    assert await other.spawner.ensure(named) == []
    assert await store.records.surely([job.id for job in named]) == before, "what exists is left alone"
    assert [job.id for job in await fetch(store, queue, count=9)] == [job.id for job in named]


async def test_what_is_refused_for_good_is_returned_and_what_may_pass_is_raised(store: Store, queue: str) -> None:
    named, taken = draft(queue=queue), draft(queue=queue)
    never = OjsError("schema_validation", "no")
    assert await store.spawner.ensure([named], refusing(never)) == [(named, never)]
    with refusal("backend_unavailable"):
        await store.spawner.ensure([named], refusing(unavailable("not now")))
    await store.enqueue.push(taken)
    assert await store.spawner.ensure([taken, named], store.enqueue.push) == [], "that a job exists is no refusal"
    assert (await store.jobs.get(named.id)).state is State.AVAILABLE


async def test_a_job_that_another_keeps_out_is_created_as_discarded_once(store: Store, queue: str) -> None:
    first, second = unique(queue), unique(queue)
    assert await store.spawner.ensure([first]) == []
    [(kept_out, problem)] = await store.spawner.ensure([second])
    assert (kept_out, problem.code, problem.details["existing_job_id"]) == (second, "duplicate", first.id)
    await store.spawner.discard(kept_out, problem)
    discarded = (await store.records.surely([second.id]))[second.id]
    assert discarded.job is not None
    assert discarded.job.state is State.DISCARDED
    await store.spawner.discard(kept_out, problem)
    assert (await store.records.surely([second.id]))[second.id] == discarded


async def test_missing_are_jobs_that_never_were(store: Store, queue: str) -> None:
    exists, ended, never, fenced = (*(draft(queue=queue) for _ in range(3)), unique(queue))
    await store.spawner.ensure([exists, ended])
    await store.jobs.change(ended.id, lambda job, moment: transitions.cancel(job, moment, ""))
    await store.jobs.change(ended.id, transitions.remove)
    assert await store.of(Uniqueness).locks.fence(fenced.id, ABSENT)
    ids = [exists.id, ended.id, fenced.id, never.id]
    assert await store.spawner.missing(ids, tend=False) == [fenced.id, never.id]
    assert await store.spawner.ensure([fenced, never]) == []
    assert await store.spawner.missing(ids, tend=False) == []


@pytest.mark.parametrize("tend", [True, False])
async def test_the_token_of_a_young_job_is_published_again_where_asked(store: Store, queue: str, tend: bool) -> None:
    job = draft(queue=queue)
    await store.spawner.ensure([job])
    before = await tokens(store, queue)
    assert await store.spawner.missing([job.id], tend=tend) == []
    assert await tokens(store, queue) == before + tend
    assert [one.id for one in await fetch(store, queue, count=9)] == [job.id]

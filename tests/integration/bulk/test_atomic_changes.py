"""Changes of several jobs, all or none."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from integration.samples import draft, fetch, new_id, refusal
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.store.store import Store
from ojs_features.bulk.atomic_changes import AtomicChanges


def unique(args: Any, **members: Any) -> Job:
    policy = Raw(b'{"keys": ["type", "args"]}')
    return keyed(draft(args=Raw(msgspec.json.encode(args)), unique=policy, **members))


def given_up(job: Job, moment: transitions.Moment) -> transitions.Transition:
    return transitions.nack(job, transitions.Failure(message="no", retryable=False), transitions.JobHolder(), moment)


async def test_jobs_are_changed_together_or_not_at_all(store: Store, queue: str) -> None:
    first, second = await store.enqueue.push_all([draft(queue=queue) for _ in range(2)])
    cancel = transitions.cancel
    done = await store.of(AtomicChanges).change([first.id, second.id], cancel)
    assert [job.state for job in done if isinstance(job, Job)] == [State.CANCELLED] * 2
    third = await store.enqueue.push(draft(queue=queue))
    refused = await store.of(AtomicChanges).change([third.id, first.id, new_id()], cancel)
    assert [one.code if isinstance(one, OjsError) else None for one in refused] == [None, "conflict", "not_found"]
    assert (await store.jobs.get(third.id)).state is State.AVAILABLE


def retried(job: Job, moment: transitions.Moment) -> transitions.Transition:
    return transitions.retry_discarded(job, transitions.RetryOverride(), moment)


async def test_of_two_that_share_a_fingerprint_the_second_is_named_as_the_duplicate(store: Store, queue: str) -> None:
    ids = []
    for _ in range(2):
        ids.append((await store.enqueue.push(unique([queue], queue=queue))).id)
        await fetch(store, queue)
        await store.jobs.change(ids[-1], given_up)
    refused = await store.of(AtomicChanges).change(ids, retried)
    assert [one.details["existing_job_id"] for one in refused if isinstance(one, OjsError)] == [ids[0]]
    assert (await store.jobs.get(ids[0])).state is State.DISCARDED


async def test_unique_jobs_begin_their_new_lives_together_with_their_locks(store: Store, queue: str) -> None:
    drafts = [unique([queue, number], queue=queue) for number in range(2)]
    for job in drafts:
        await store.enqueue.push(job)
    for job in await fetch(store, queue, count=2):
        await store.jobs.change(job.id, given_up)
    heir = await store.enqueue.push(unique([queue, 1], queue=queue))
    ids = [job.id for job in drafts]
    refused = await store.of(AtomicChanges).change(ids, retried)
    assert [one.code if isinstance(one, OjsError) else None for one in refused] == [None, "duplicate"]
    await store.jobs.change(heir.id, transitions.cancel)
    done = await store.of(AtomicChanges).change(ids, retried)
    assert [job.state for job in done if isinstance(job, Job)] == [State.AVAILABLE] * 2
    for number in range(2):
        with refusal("duplicate"):
            await store.enqueue.push(unique([queue, number], queue=queue))

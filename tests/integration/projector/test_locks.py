"""Locks of unique jobs leave with their jobs, whoever dies in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from msgspec import Raw

from integration.projector.conftest import StartProjector
from integration.projector.samples import patient
from integration.samples import acked, draft, fetch, message, refusal, unreachable
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.unique.index import QUESTION, UniqueAsk, UniquePage
from ojs_features.unique.uniqueness import Uniqueness
from ojs_index.safety_net.safety import SafetyNet
from support.outside import before, clock_of, reads_of
from support.waiting import eventually

POLICY = Raw(b'{"keys":["type","args"]}')


@pytest.fixture
async def net(start_projector: StartProjector) -> SafetyNet:
    """A projector's safety net that suspects every lock at once: by its clock all of them are old."""
    projector = await start_projector()
    clock_of(projector._store).ahead_ms = 65_000
    assert projector._safety is not None
    return projector._safety


def unique(number: int, **members: object) -> Job:
    return keyed(draft(queue="u", args=Raw(b"[%d]" % number), unique=POLICY, **members))


async def held(store: Store) -> list[str]:
    """Fingerprints that have a record, delete markers left out."""
    subjects = await store.records.subjects(store.config.record("unique", ANY))
    found = [(subject, await store.records.leader_raw(subject)) for subject in subjects]
    return [subject for subject, record in found if record is not None and record[1]]


async def ttl_of(store: Store, job: Job) -> str | None:
    assert job.unique_key is not None
    found = await message(store, store.config.record("unique", job.unique_key))
    return None if found is None else found[1].get("Nats-TTL")


async def looked(net: SafetyNet, store: Store) -> None:
    """A round of the net that has seen everything written before."""
    await patient(store).queue("any")
    await net.look()


@contextmanager
def locks_left(store: Store) -> Iterator[None]:
    """Whoever ends unique jobs meanwhile dies before it lets their locks go."""
    release = store.committer.followers.pop("lock")
    try:
        yield
    finally:
        store.committer.followers["lock"] = release


async def nothing() -> None:
    """For what is only to be met."""


async def test_every_lock_leaves_after_its_job(net: SafetyNet, store: Store) -> None:
    jobs = [await store.enqueue.push(unique(number)) for number in range(6)]
    with locks_left(store):
        for job in await fetch(store, "u", count=3):
            await store.jobs.change(job.id, acked)
        for job in jobs[3:]:
            await store.jobs.change(job.id, transitions.cancel)

    lost = unique(99)
    with unreachable(store.nats, store.config.job(lost.id), times=1_000_000), refusal("backend_unavailable"):
        await store.enqueue.push(lost)
    assert len(await held(store)) == 7
    assert [await ttl_of(store, job) for job in [*jobs, lost]] == [None] * 7
    await looked(net, store)
    for job in jobs:
        kept_s = int((await ttl_of(store, job) or "0s").rstrip("s"))
        assert 7 * 86_400 - 60 < kept_s <= 7 * 86_400 + 60, "about as long as the job's record"
    assert await ttl_of(store, lost) == "1s"
    for job in jobs:
        await store.jobs.change(job.id, transitions.remove)

    async def none_is_left() -> bool:
        return await held(store) == []

    await eventually(none_is_left)
    assert net.found == {}, "a lock left behind is no lost hint"


async def test_the_lock_of_a_job_that_lives_is_looked_at_once(net: SafetyNet, store: Store) -> None:
    job = await store.enqueue.push(unique(1))
    await looked(net, store)
    assert job.unique_key is not None
    read = reads_of(store.config.record("unique", job.unique_key))
    with before(net._store.nats, read, nothing) as looks:
        await looked(net, store)
    assert (looks, await ttl_of(store, job)) == ([], None)
    with refusal("duplicate"):
        await store.enqueue.push(unique(1))
    with locks_left(store):
        await store.jobs.change(job.id, transitions.cancel)
    with before(net._store.nats, read, nothing) as looks:
        await looked(net, store)
    assert looks
    assert await ttl_of(store, job) is not None


async def test_a_lock_goes_to_the_earlier_owner_that_lives(net: SafetyNet, store: Store) -> None:
    narrow = {"keys": ["type"], "states": ["available"]}
    sent = Raw(msgspec.json.encode(narrow))
    elder = await store.enqueue.push(keyed(draft(queue="u", unique=sent)))
    await fetch(store, "u")
    with locks_left(store):
        younger = await store.enqueue.push(keyed(draft(queue="u", unique=sent)))
        await store.jobs.change(younger.id, transitions.cancel)
    await looked(net, store)
    assert elder.unique_key is not None
    _, lock = await store.of(Uniqueness).locks.read(elder.unique_key)
    assert lock is not None
    assert (lock.owner, await ttl_of(store, elder)) == (elder.id, None)


@pytest.mark.usefixtures("net")
async def test_what_is_unique_now_is_listed_in_pages(store: Store) -> None:
    jobs = [await store.enqueue.push(unique(number)) for number in range(3)]
    await store.jobs.change(jobs[0].id, transitions.cancel)
    queries = patient(store)
    page = await queries.ask(QUESTION, UniqueAsk(limit=1), UniquePage)
    rest = await queries.ask(QUESTION, UniqueAsk(limit=5, cursor=page.next_cursor), UniquePage)
    found = [*page.locks, *rest.locks]
    assert {row.job_id for row in found} == {job.id for job in jobs[1:]}
    assert [row.key for row in found] == sorted(job.unique_key or "" for job in jobs[1:])
    assert (page.total, rest.next_cursor) == (2, None)

"""Who uses no limits pays nothing for them: the same messages, one by one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

import pytest

from integration.samples import acked, configure, draft, fetch
from ojs_engine.domain import transitions
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE
from ojs_engine.store.store import Store
from support.traffic import counted, kind_of, without_limits

JOBS = 20


@pytest.fixture(scope="module")
def namespace() -> str:
    """The one whose subjects are counted below."""
    return DEFAULT_NAMESPACE


PUSH = Counter({"ojs.ready": JOBS, "$KV.ojs.job": JOBS})
FETCH = Counter(
    {
        "$JS.API.CONSUMER.MSG.NEXT.OJS_READY": 2,
        "$KV.ojs.job": JOBS,
        "$JS.ACK": JOBS,
    }
)
"""None of the jobs is read where it was pushed."""
FROM_HEAD = (
    FETCH
    - Counter({"$JS.API.CONSUMER.MSG.NEXT.OJS_READY": 2, "$JS.ACK": JOBS})
    + Counter({"$JS.API.DIRECT.GET.OJS_READY": 2, "$JS.API.STREAM.MSG.DELETE.OJS_READY": JOBS, "read": 4})
)
"""The records that each look reads say that neither the queue nor everything is held."""
ACK = Counter({"$KV.ojs.job": JOBS})


async def lives(store: Store, queue: str) -> list[Counter[str]]:
    """What twenty jobs send when they are pushed, fetched by ten, and acknowledged."""
    drafts = [draft(queue=queue) for _ in range(JOBS)]
    with counted(store) as pushed:
        for one in drafts:
            await store.enqueue.push(one)
    jobs = []
    with counted(store) as fetched:
        for _ in range(2):
            jobs += await fetch(store, queue, count=JOBS // 2)
    with counted(store) as ended:
        for job in jobs:
            await store.jobs.change(job.id, acked)
    assert len(jobs) == JOBS
    return [pushed, fetched, ended]


async def looked_at(store: Store, queue: str) -> None:
    """The first fetch of a queue asks what it holds and makes its consumer, the first push asks for the settings of all."""
    await store.enqueue.push(draft(queue=queue))
    for job in await fetch(store, queue):
        await store.jobs.change(job.id, acked)


@pytest.mark.parametrize("bypassed", [True, False], ids=["without limits", "as it is"])
async def test_a_queue_without_limits_sends_what_it_would_if_there_were_none(
    store: Store, queue: str, bypassed: bool, way: str
) -> None:
    await looked_at(store, queue)
    with without_limits(store) if bypassed else nullcontext():
        sent = await lives(store, queue)
    fetching = FROM_HEAD if way == "head" else FETCH
    for found, expected in zip(sent, (PUSH, fetching, ACK), strict=True):
        assert found == expected


async def test_a_queue_with_other_settings_pays_nothing_either(store: Store, queue: str) -> None:
    await configure(store, queue, default_timeout_ms=50_000, allowed_job_types=("*",))
    await looked_at(store, queue)
    assert [sum(found.values()) for found in await lives(store, queue)] == [
        sum(found.values()) for found in (PUSH, FROM_HEAD, ACK)
    ]


async def test_a_job_that_leaves_a_queue_without_a_bound_costs_its_record_only(store: Store, queue: str) -> None:
    await looked_at(store, queue)
    jobs = [await store.enqueue.push(draft(queue=queue)) for _ in range(JOBS)]
    with counted(store) as sent:
        for job in jobs:
            await store.jobs.change(job.id, transitions.cancel)
    assert sent == Counter({"read": JOBS, "$KV.ojs.job": JOBS})


async def test_a_pause_asks_for_what_is_there(store: Store, queue: str, way: str) -> None:
    await looked_at(store, queue)
    with counted(store) as sent:
        await store.queues.pause(queue)
    expected = Counter({"read": 1, "$KV.ojs.queue": 1, "$JS.API.CONSUMER.NAMES.OJS_READY": 1})
    if way == "durable":
        expected["$JS.API.CONSUMER.DELETE.OJS_READY"] = 1
    assert sent == expected


async def test_pauses_at_the_same_time_share_what_they_ask(store: Store, queue: str) -> None:
    await looked_at(store, queue)
    with counted(store) as sent:
        await asyncio.gather(*(store.queues.pause(f"{queue}-{number}") for number in range(100)))
    listings = sent.pop("$JS.API.CONSUMER.NAMES.OJS_READY")
    assert sent == Counter({"read": 100, "$KV.ojs.queue": 100})
    assert listings <= 100


Limited = Callable[[Store, str], Awaitable[None]]


async def bounded(store: Store, queue: str) -> None:
    await configure(store, queue, max_size=1_000)


async def narrow(store: Store, queue: str) -> None:
    await configure(store, queue, concurrency=1_000)


@pytest.mark.parametrize(("limited", "part"), [(bounded, 0), (narrow, 1)])
async def test_the_count_sees_what_limits_send(store: Store, queue: str, limited: Limited, part: int) -> None:
    await limited(store, queue)
    await looked_at(store, queue)
    sent = await lives(store, queue)
    assert sum(sent[part].values()) > sum((PUSH, FETCH, ACK)[part].values())


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        ("$JS.API.CONSUMER.MSG.NEXT.OJS_READY.ready-queue-1-100", "$JS.API.CONSUMER.MSG.NEXT.OJS_READY"),
        ("$KV.ojs.job.0194", "$KV.ojs.job"),
        ("ojs.ready.queue-1.100", "ojs.ready"),
        ("$JS.ACK.OJS_READY.ready-x.1.2.3.4.5", "$JS.ACK"),
    ],
)
def test_kinds_are_of_what_a_message_is_for(subject: str, kind: str) -> None:
    assert kind_of(subject) == kind

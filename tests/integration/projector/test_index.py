"""The read model over a real bucket: what clients were told before is in the answer, whatever happened to the projector."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import ENDS, counted, lives, patient, projecting
from integration.samples import KINDS, acked, draft, fetch, put_raw, refusal
from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem
from ojs_engine.domain.job import State
from ojs_engine.jetstream.api import delete, deleted
from ojs_engine.jetstream.connection import Collected, Failed, Reply
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.store import Store
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import DeadLettersAsk, JobsAsk, QueuesAsk
from ojs_index.safety_net.completeness import CompletenessTimings
from ojs_projector.projector import Projector, ProjectorTimings
from support.nats import NatsServer
from support.outside import TappedConnection
from support.waiting import PATIENCE_S, answered, eventually


async def numbers(store: Store) -> dict[str, dict[str, int]]:
    """As of now; whoever is told that the projector is behind asks again."""
    page = await answered(Queries(store).queues, QueuesAsk())
    assert not page.partial
    return {queue.name: {state: getattr(queue.counts, state) for state in State} for queue in page.queues}


async def test_an_answer_holds_everything_that_was_told_before(
    projector: Projector, store: Store, open_here: OpenStore
) -> None:
    """Two gateways: one writes, the other asks at once."""
    asking = patient(await open_here())
    for n in range(1, 51):
        await store.enqueue.push(draft(queue="q"))
        assert (await asking.queue("q")).counts.available == n
    for n in range(1, 11):
        [job] = await fetch(store, "q")
        await store.jobs.change(job.id, acked)
        queue = await asking.queue("q")
        assert (queue.counts.available, queue.counts.active, queue.counts.completed) == (50 - n, 0, n)
        assert (await asking.jobs(JobsAsk(state=State.COMPLETED, limit=1))).total == n
    assert projector.status().applied > 0


async def test_many_questions_at_once_share_few_barriers(projector: Projector, store: Store) -> None:
    await store.enqueue.push(draft(queue="q"))
    asking = patient(store)
    await asking.queue("q")
    before = projector.status().applied
    found = await asyncio.gather(*(asking.queue("q") for _ in range(100)))
    assert {queue.counts.available for queue in found} == {1}
    assert projector.status().applied - before <= 5


async def test_numbers_equal_a_count_of_every_record(projector: Projector, store: Store) -> None:
    await lives(store, 3 * len(ENDS))
    assert await numbers(store) == await counted(store)
    stats = await patient(store).dead_letter_stats()
    assert (stats.total, stats.by_queue) == (6, {"a": 3, "b.c": 3})
    listed = await patient(store).dead_letters(DeadLettersAsk(queue="b.c"))
    assert [(await store.jobs.get(row.id)).dead_letter for row in listed.jobs] == [True] * 3
    assert not projector.status().partial


async def test_an_index_that_is_gone_is_built_anew(start_projector: StartProjector, store: Store, tmp_path: Path) -> None:
    first = await start_projector()
    await lives(store, 2 * len(ENDS))
    before = await numbers(store)
    await first.stop()
    shutil.rmtree(tmp_path / "index")
    await start_projector()
    await eventually(lambda: complete(store))
    assert await numbers(store) == before == await counted(store)


@pytest.mark.parametrize("name", ["index", "index/index-0.lock", "index/index-0.sqlite", "index/index-0.sqlite-wal/x"])
async def test_a_place_that_an_index_can_not_have_is_told_with_the_remedy(
    start_projector: StartProjector, store: Store, tmp_path: Path, name: str
) -> None:
    assert store.instance  # the server is set up
    blocked = tmp_path / name
    if name == "index":
        blocked.write_text("a file")
    else:
        blocked.mkdir(parents=True)
    with pytest.raises(StartupProblem, match=r"can't keep the projector's index in .*--projector-data"):
        await start_projector()


async def complete(store: Store) -> bool:
    return not (await patient(store).queue("a")).partial


async def test_an_index_goes_on_where_it_was(start_projector: StartProjector, store: Store) -> None:
    first = await start_projector()
    await lives(store, len(ENDS))
    await numbers(store)
    applied = first.status().applied
    await first.stop()
    await lives(store, len(ENDS), queues=("a", "d"))
    second = await start_projector()
    assert not second.status().partial
    assert second.status().applied >= applied
    assert await numbers(store) == await counted(store)


async def test_an_index_that_breaks_is_built_anew(projector: Projector, store: Store) -> None:
    await lives(store, len(ENDS))
    await numbers(store)
    assert projector._model is not None
    projector._model.db.execute("DROP TABLE counts")
    await store.enqueue.push(draft(queue="a"))
    expected = await counted(store)

    async def right_again() -> bool:
        return await numbers(store) == expected

    await eventually(right_again)


async def test_two_projectors_on_one_machine_keep_an_index_each(start_projector: StartProjector, store: Store) -> None:
    await start_projector()
    await start_projector()
    await store.enqueue.push(draft(queue="q"))
    instances = set()
    for _ in range(50):
        assert (await patient(store).queue("q")).counts.available == 1
        instances.add((await patient(store).status()).instance)
    assert len(instances) == 2


async def test_a_record_that_leaves_by_its_ttl_leaves_the_index(projector: Projector, store: Store) -> None:
    job = draft(queue="q", state=State.COMPLETED, completed_at=store.clock.now())
    await put_raw(store, store.config.job(job.id), encode_job(job), "Nats-TTL: 2s\r\n")
    assert (await numbers(store))["q"]["completed"] == 1

    async def left() -> bool:
        return (await numbers(store))["q"]["completed"] == 0

    await eventually(left)
    assert not projector.status().partial


async def test_a_record_that_can_not_be_read_keeps_nobody_from_being_listed(projector: Projector, store: Store) -> None:
    await put_raw(store, store.config.job("junk"), b'{"id": 7}')
    await store.enqueue.push(draft(queue="q"))
    assert (await numbers(store))["q"]["available"] == 1
    assert projector.status().lag_ms == 0


# Trouble


async def test_without_a_projector_the_asker_hears_so(store: Store) -> None:
    with refusal("backend_unavailable"):
        await Queries(store).queue("q")


@projecting(ProjectorTimings(wait_s=0.1))
async def test_a_projector_that_is_behind_says_so(projector: Projector, store: Store) -> None:
    await numbers(store)
    projector._tasks[0].cancel()
    with refusal("backend_unavailable"):
        await Queries(store).queue("q")


async def test_the_feed_goes_on_when_its_consumer_is_gone(projector: Projector, store: Store) -> None:
    for n in range(1, 4):
        await store.enqueue.push(draft(queue="q"))
        assert (await numbers(store))["q"]["available"] == n
        assert projector._feed is not None
        consumer = projector._feed._consumer
        consumer.drop()
        consumer.live = True  # as far as it knows


async def test_a_pull_that_the_server_was_too_slow_for_is_not_the_end(start_projector: StartProjector, store: Store) -> None:
    for _ in range(20):
        await store.enqueue.push(draft(queue="q"))
    pulls: list[str] = []

    class Slow(TappedConnection):
        async def collect(self, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
            if ".CONSUMER.MSG.NEXT." not in subject or "projector" not in subject:
                return await super().collect(subject, payload, wanted, timeout_s)
            pulls.append(subject)
            if len(pulls) > 3:
                return await super().collect(subject, payload, wanted, timeout_s)
            return Collected([], Reply(b"", b"", b"", b"NATS/1.0 408 Request Timeout\r\n\r\n"))

    projector = await start_projector(connect=Slow)
    await eventually(lambda: not projector.status().partial, every=0.001)
    assert len(pulls) > 3
    assert await numbers(store) == await counted(store)


@pytest.mark.parametrize("place", [0, 1])
async def test_records_lost_on_the_way_are_read_again(projector: Projector, store: Store, place: int) -> None:
    assert projector._feed is not None
    nats = projector._feed._consumer._nats
    collect = nats.collect
    lost: list[Reply] = []

    async def losing(subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        outcome = await collect(subject, payload, wanted, timeout_s)
        if isinstance(outcome, Collected) and len(outcome.messages) > 1 and len(lost) < 3:
            lost.append(outcome.messages.pop(place))
        return outcome

    nats.collect = losing  # type: ignore[method-assign]
    for n in range(1, 6):
        await asyncio.gather(*(store.enqueue.push(draft(queue="q")) for _ in range(5)))
        assert (await numbers(store))["q"]["available"] == 5 * n
    assert len(lost) == 3


async def test_a_restart_of_nats_is_survived(projector: Projector, store: Store, nats_server: NatsServer) -> None:
    await lives(store, len(ENDS))
    await numbers(store)
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: store.connected)

    async def pushed() -> bool:
        with contextlib.suppress(OjsError):
            return bool(await store.enqueue.push(draft(queue="a")))
        return False

    await eventually(pushed)
    expected = await counted(store)

    async def right_again() -> bool:
        with contextlib.suppress(OjsError):
            return await numbers(store) == expected
        return False

    await eventually(right_again)
    assert not projector.status().partial


# Records that are gone without a trace


often = projecting(ProjectorTimings(wait_s=PATIENCE_S, safety_s=0.25, completeness=CompletenessTimings(every_s=0.5)))
"""Rows and records are compared twenty times as often."""


async def vanish(store: Store, job_ids: Sequence[str]) -> None:
    """Have records leave as they do with a part of the stream's file: without a marker."""
    for job_id in job_ids:
        stored = await store.records.leader(job_id)
        answer = await delete(store.nats, store.config.records_stream, stored.sequence)
        assert deleted(answer)


@often
async def test_records_that_are_gone_leave_lists_and_counts(projector: Projector, store: Store) -> None:
    ids = [(await store.enqueue.push(draft(queue="a"))).id for _ in range(9)]
    assert (await numbers(store))["a"]["available"] == 9
    await vanish(store, ids[:4])

    async def right_again() -> bool:
        page = await answered(Queries(store).queues, QueuesAsk())
        return not page.partial and [queue.counts.available for queue in page.queues] == [5]

    await eventually(right_again)
    repaired = projector.status().repaired
    assert repaired.keys() == {"record"}
    assert 1 <= repaired["record"] <= 4  # the look that saw some of them go had all read anew


@often
async def test_what_was_lost_while_no_projector_ran_is_noticed_at_the_start(
    start_projector: StartProjector, store: Store
) -> None:
    first = await start_projector()
    ids = [(await store.enqueue.push(draft(queue="a"))).id for _ in range(5)]
    await numbers(store)
    await first.stop()
    await vanish(store, ids[1:])
    second = await start_projector()

    async def right_again() -> bool:
        page = await answered(Queries(store).queues, QueuesAsk())
        return not page.partial and [queue.counts.available for queue in page.queues] == [1]

    await eventually(right_again)
    assert second.status().repaired == {"record": 4}
    assert await numbers(store) == await counted(store)


@often
async def test_records_that_leave_in_their_time_or_by_hand_are_no_loss(projector: Projector, store: Store) -> None:
    for number in range(20):
        job = draft(queue="q", state=State.COMPLETED, completed_at=store.clock.now())
        await put_raw(store, store.config.job(job.id), encode_job(job), f"Nats-TTL: {1 + number % 3}s\r\n")
    ids = await lives(store, 2 * len(ENDS))
    for job_id in ids[:3]:
        await put_raw(store, store.config.job(job_id), b"", "KV-Operation: PURGE\r\n")

    async def left() -> bool:
        return not (await numbers(store)).get("q", {}).get("completed")

    await eventually(left)
    looked = projector._completeness
    assert looked is not None
    for _ in range(3):
        looked._next = 0.0
        assert not await looked.look()
    assert projector.status().repaired == {}


# Reset


async def test_after_a_reset_everything_is_empty(projector: Projector, store: Store) -> None:
    await lives(store, len(ENDS))
    await store.reset(KINDS)
    assert await numbers(store) == {}
    assert (await patient(store).dead_letter_stats()).total == 0
    await store.enqueue.push(draft(queue="q"))
    assert await numbers(store) == await counted(store)
    assert projector.status().repaired == {}


async def test_a_reset_that_a_projector_has_missed_is_made_good(start_projector: StartProjector, store: Store) -> None:
    first = await start_projector()
    await lives(store, len(ENDS))
    await numbers(store)
    await first.stop()
    await first._store.close()
    await eventually(lambda: alone(store))
    await store.reset(KINDS)
    await store.enqueue.push(draft(queue="after"))
    await start_projector()
    assert await numbers(store) == await counted(store)


async def alone(store: Store) -> bool:
    return len(await store.presence.live()) == 1


async def test_records_of_a_megabyte_are_read_in_pulls_of_bounded_size(projector: Projector, store: Store) -> None:
    args = msgspec.Raw(b'["' + b"x" * 1_000_000 + b'"]')
    projector._tasks[0].cancel()
    for _ in range(24):
        await store.enqueue.push(draft(queue="q", args=args))
    assert projector._feed is not None
    sizes: list[int] = []
    while sum(sizes) < 24:
        with contextlib.suppress(OjsError):  # a pull of the cancelled task took some: they are read again
            batch = (await projector._feed.next(0.2)).records
            sizes.append(sum(record.kind == "job" for record in batch))
    assert sum(sizes) == 24
    assert max(sizes) <= 9

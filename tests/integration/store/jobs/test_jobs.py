from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from integration.conftest import OpenStore
from integration.samples import (
    ANYONE,
    KINDS,
    acked,
    attempt,
    delayed,
    draft,
    due_subjects,
    failed,
    fetch,
    message,
    new_id,
    put_raw,
    refusal,
    set_up,
    subjects,
    timers,
    tokens,
)
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.transitions import Failure, Moment, RetryOverride, Transition, nack
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.connection import Collected, Failed
from ojs_engine.jetstream.subjects import LASTING
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_engine.telemetry import metrics
from ojs_features.limits.subjects import Subjects
from support.nats import NatsServer
from support.outside import Collect, collecting
from support.waiting import eventually

NOW = 1_000


async def record_headers(store: Store, job_id: str) -> dict[str, str]:
    found = await message(store, store.config.job(job_id))
    assert found is not None
    return found[1]


def dead(job: Job, moment: Moment) -> Transition:
    return nack(job, Failure(message="no", action="DEAD_LETTER"), ANYONE, moment)


# Push and read


async def test_a_pushed_job_reads_back_as_it_was_answered(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, args=Raw(b'[1,{"a":null}]'), extra={"x": Raw(b'{"y": 1.0}')}))
    assert await other.jobs.get(pushed.id) == pushed
    assert pushed.state is State.AVAILABLE


async def test_an_unknown_job_is_not_found(store: Store) -> None:
    with refusal("not_found"):
        await store.jobs.get(new_id())
    with refusal("not_found"):
        await store.jobs.change(new_id(), transitions.cancel)


async def test_a_taken_id_is_a_duplicate_and_changes_nothing(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    with refusal("duplicate"):
        await other.enqueue.push(draft(id=pushed.id, queue=queue, type="another"))
    assert await store.jobs.get(pushed.id) == pushed


async def test_of_many_pushes_of_one_id_one_wins(store: Store, other: Store, queue: str) -> None:
    job_id = new_id()
    pushes = (one.enqueue.push(draft(id=job_id, queue=queue, type=f"t{n}")) for n in range(8) for one in (store, other))
    outcomes = await asyncio.gather(*pushes, return_exceptions=True)
    won = [outcome for outcome in outcomes if isinstance(outcome, Job)]
    lost = [outcome for outcome in outcomes if isinstance(outcome, OjsError)]
    assert len(won) == 1
    assert [error.code for error in lost] == ["duplicate"] * 15
    assert await store.jobs.get(job_id) == won[0]
    assert [job.id for job in await fetch(store, queue, count=5)] == [job_id]


async def test_a_duplicate_of_a_waiting_job_does_not_hand_it_out_twice(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    with refusal("duplicate"):
        await store.enqueue.push(draft(id=pushed.id, queue=queue))
    assert await tokens(store, queue) == 2, "the first token might have been lost, so it is repeated"
    assert [job.attempt for job in await fetch(store, queue, count=5)] == [1]

    async def both_are_gone() -> bool:
        return await tokens(store, queue) == 0

    await eventually(both_are_gone)


async def test_a_tombstone_gives_way_to_a_new_job(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, dead)
    await store.jobs.change(pushed.id, transitions.delete)
    with refusal("not_found"):
        await store.jobs.get(pushed.id)
    again = await store.enqueue.push(draft(id=pushed.id, queue=queue, type="second"))
    assert (await store.jobs.get(pushed.id)).type == "second"
    assert [job.id for job in await fetch(store, queue, count=2)] == [again.id]


async def single(store: Store, job: Job) -> Job:
    return await store.enqueue.push(job)


async def batch(store: Store, job: Job) -> Job:
    [_, found] = await store.enqueue.push_all([draft(queue=job.queue), job])
    return found


async def unique(store: Store, job: Job) -> Job:
    return await store.enqueue.push(
        keyed(replace(job, args=Raw(msgspec.json.encode([job.id])), unique=Raw(b'{"keys":["args"]}')))
    )


@pytest.mark.parametrize("push", [single, batch, unique])
async def test_a_job_in_a_tombstones_place_goes_on_with_its_log(
    store: Store, queue: str, push: Callable[[Store, Job], Awaitable[Job]]
) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, dead)
    await store.jobs.change(pushed.id, transitions.delete)
    again = await push(store, draft(id=pushed.id, queue=queue))
    log = [(entry.n, entry.event) for entry in again.transitions]
    assert log == [(1, "pushed"), (2, "claimed"), (3, "failed"), (4, "deleted"), (5, "pushed")]
    assert (await store.jobs.get(pushed.id)).transitions == again.transitions


async def test_a_delete_marker_gives_way_to_a_new_job(store: Store, queue: str) -> None:
    job_id = new_id()
    await put_raw(store, store.config.job(job_id), b"{}", "Nats-TTL: 1s\r\n")

    async def expired_to_a_marker() -> bool:
        found = await message(store, store.config.job(job_id))
        return found is not None and "Nats-Marker-Reason" in found[1]

    await eventually(expired_to_a_marker)
    await store.enqueue.push(draft(id=job_id, queue=queue))
    assert [job.id for job in await fetch(store, queue, count=2)] == [job_id]


# Sizes and names


async def test_the_largest_arguments_and_result_fit_together(store: Store, other: Store, queue: str) -> None:
    args, result = Raw(b'["' + b"a" * 1_048_000 + b'"]'), Raw(b'"' + b"r" * 1_048_574 + b'"')
    pushed = await store.enqueue.push(draft(queue=queue, args=args))
    [claimed] = await fetch(store, queue)
    assert bytes(claimed.args) == bytes(args)
    await store.jobs.change(pushed.id, lambda job, moment: transitions.ack(job, result, ANYONE, moment))
    found = await other.blobs.whole(await other.jobs.get(pushed.id))
    assert (bytes(found.args), bytes(found.result)) == (bytes(args), bytes(result))


async def test_a_record_beyond_the_servers_limit_is_refused_and_harms_nobody(store: Store, queue: str) -> None:
    beside = asyncio.create_task(fetch(store, queue, wait_ms=60_000))
    large = draft(queue=queue, args=Raw(b'["' + b"a" * 9_000_000 + b'"]'), scheduled_at=store.clock.now() + 60_000)
    with refusal("envelope_too_large"):
        await store.enqueue.push(large)
    assert store.connected
    assert await timers(store, large.id) == []
    pushed = await store.enqueue.push(draft(queue=queue))
    assert [job.id for job in await beside] == [pushed.id]


@pytest.mark.parametrize("name", ["a.b.c", "a-b", "a", "x" * 255, "a.b-c.100.front"])
async def test_queue_names_keep_apart(store: Store, queue: str, name: str) -> None:
    mine, near = f"{queue}.{name}"[:255], f"{queue}-{name.replace('.', '-')}"[:254]
    pushed = await store.enqueue.push(draft(queue=mine))
    assert await fetch(store, near) == []
    assert [job.queue for job in await fetch(store, mine, count=3)] == [pushed.queue]


@pytest.mark.parametrize("worker", ["two words", "ünï¢ode 🦀", "a.b.c", "*", ">", "$SYS", "x\ty\r\nz", "=41", "A"])
async def test_any_worker_id_is_kept_apart(store: Store, worker: str) -> None:
    await store.workers.beat(WorkerRecord(id=worker, queues=("q",)))
    found = await store.workers.get(worker)
    assert found is not None
    assert (found.id, found.queues) == (worker, ("q",))
    assert abs(found.seen_at - store.clock.now()) < 5 * NOW
    assert await store.workers.get(worker + "x") is None
    assert await store.workers.remove(worker)
    left = await store.workers.get(worker)
    assert left is not None
    assert left.state == "stopped"


async def test_removing_an_unknown_worker_says_so(store: Store) -> None:
    assert not await store.workers.remove("never seen")


# Change


@pytest.mark.parametrize("round_", range(5))
async def test_of_two_acks_one_wins(store: Store, other: Store, queue: str, round_: int) -> None:
    del round_
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    outcomes = await asyncio.gather(
        *(one.jobs.change(pushed.id, acked) for one in (store, other, store, other)), return_exceptions=True
    )
    lost = [outcome for outcome in outcomes if isinstance(outcome, OjsError)]
    assert [error.code for error in lost] == ["conflict"] * 3
    found = await store.jobs.get(pushed.id)
    assert [entry.event for entry in found.transitions] == ["pushed", "claimed", "acked"]


async def test_an_ack_over_a_cached_record_is_judged_by_the_stored_one(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)  # this process keeps the record for the ack
    await other.jobs.change(pushed.id, transitions.cancel)
    with refusal("conflict"):
        await store.jobs.change(pushed.id, acked)
    assert (await store.jobs.get(pushed.id)).state is State.CANCELLED


async def test_writers_that_meet_all_get_through(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))

    def marked(job: Job, moment: Moment) -> Transition:
        return transitions.reissue(job, moment)

    await asyncio.gather(*(one.jobs.change(pushed.id, marked) for one in (store, other) for _ in range(4)))
    found = await store.jobs.get(pushed.id)
    assert [entry.n for entry in found.transitions] == list(range(1, 10))


async def test_a_heartbeat_renews_what_is_held_and_tells_what_was_cancelled(store: Store, other: Store, queue: str) -> None:
    ids = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(4)]
    await fetch(store, queue, count=3, worker="w", lease_ms=60_000)
    await other.jobs.change(ids[1], transitions.cancel)
    await other.jobs.change(ids[2], acked)
    before = await store.jobs.get(ids[0])
    outcome = await store.jobs.extend([*ids, new_id()], "w", 120_000)
    assert outcome.extended == [ids[0]]
    assert outcome.cancelled == [ids[1]]
    after = await store.jobs.get(ids[0])
    assert (after.visible_until or 0) > (before.visible_until or 0) + 50_000
    assert after.timer is not None
    assert (after.timer.every_s, await timers(store, ids[0])) == (31, [])
    assert len(after.transitions) == len(before.transitions), "a heartbeat is no transition"


async def test_a_heartbeat_in_time_writes_nothing(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, worker="w", lease_ms=60_000)
    before = await store.records.leader(pushed.id)
    assert (await store.jobs.extend([pushed.id], "w", None)).extended == [pushed.id]
    assert await store.records.leader(pushed.id) == before


async def test_a_heartbeat_survives_an_ack_that_comes_between(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, worker="w")

    async def acknowledged_meanwhile(
        collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float
    ) -> Collected | Failed:
        found = await collect(subject, payload, wanted, timeout_s)
        await other.jobs.change(pushed.id, acked)
        return found

    with collecting(store.bulk, acknowledged_meanwhile):
        assert (await store.jobs.extend([pushed.id, new_id()], "w", None)).cancelled == []
    assert (await store.jobs.get(pushed.id)).state is State.COMPLETED


async def test_another_workers_heartbeat_holds_nothing(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue, worker="w")
    assert await store.jobs.extend([pushed.id], "thief", 60_000) == await store.jobs.extend([], "thief", None)


async def test_waiting_for_the_end_is_told_at_once(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    waiting = asyncio.create_task(store.jobs.wait_terminal(pushed.id, 600.0))
    await fetch(other, queue)
    await other.jobs.change(pushed.id, acked)
    assert (await asyncio.wait_for(waiting, 60.0)).state is State.COMPLETED


async def test_waiting_in_vain_ends_with_the_job_as_it_is(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    assert (await store.jobs.wait_terminal(pushed.id, 0.05)).state is State.AVAILABLE


# Retention


async def test_only_finished_records_leave_by_themselves(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, retry=Retry(max_attempts=1)))
    assert "Nats-TTL" not in await record_headers(store, pushed.id)
    await fetch(store, queue)
    assert "Nats-TTL" not in await record_headers(store, pushed.id)
    await store.jobs.change(pushed.id, failed)
    assert (await record_headers(store, pushed.id))["Nats-TTL"] == f"{30 * 86_400}s"


async def test_a_manual_retry_takes_the_retention_back(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, dead)
    assert (await record_headers(store, pushed.id))["Nats-TTL"] == f"{180 * 86_400}s"
    await store.jobs.change(pushed.id, lambda job, moment: transitions.retry_discarded(job, RetryOverride(), moment))
    assert "Nats-TTL" not in await record_headers(store, pushed.id)
    assert [job.id for job in await fetch(store, queue)] == [pushed.id]


async def test_a_finished_job_leaves_no_timer_and_no_token(store: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, total_timeout_ms=600_000))
    assert len(await timers(store, pushed.id)) == 1
    await fetch(store, queue)
    assert len(await timers(store, pushed.id)) == 1
    await store.jobs.change(pushed.id, acked)
    assert await timers(store, pushed.id) == []
    assert await tokens(store, queue) == 0


@pytest.mark.parametrize("at", [253_402_300_799_000, 9_223_372_036_855])
async def test_a_time_that_the_server_cannot_count_to_does_not_fire(store: Store, queue: str, at: int) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=at))
    assert pushed.state is State.SCHEDULED
    near = await delayed(store, 300, queue=queue)
    await eventually(lambda: due_subjects(store, near.id))  # by now the other would have fired, too
    assert await due_subjects(store, pushed.id) == []
    assert len(await timers(store, pushed.id)) == 1


# Records that can't be read


async def test_a_corrupt_record_concerns_nobody_else(store: Store, other: Store, queue: str) -> None:
    broken = await store.enqueue.push(draft(queue=queue))
    good = await store.enqueue.push(draft(queue=queue))
    await put_raw(store, store.config.job(broken.id), b'{"id": 7}')
    assert [job.id for job in await fetch(store, queue)] == [good.id], "one by one"
    more = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(3)]
    assert sorted(job.id for job in await fetch(other, queue, count=10)) == sorted(more), "and in numbers"
    with refusal("unreadable_record"):
        await store.jobs.get(broken.id)


async def test_resetting_leaves_nothing_and_everything_works_on(store: Store, other: Store, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue, scheduled_at=store.clock.now() + 60_000))
    await store.enqueue.push(draft(queue=queue))
    await fetch(other, queue)
    await put_raw(store, Subjects(store.config).limit("key.some"), b"{}")
    await store.reset(KINDS)
    with refusal("not_found"):
        await other.jobs.get(pushed.id)
    assert await message(store, Subjects(store.config).limit("key.some")) is None
    assert await subjects(store, store.config.records_stream, f"{store.config.namespace}.timer.>") == {}
    assert await tokens(store, queue) == 0
    again = await other.enqueue.push(draft(queue=queue))
    assert [job.id for job in await fetch(store, queue)] == [again.id]


async def test_nobody_on_nats_can_make_a_process_forget_unless_it_is_in_test_mode(
    nats_server: NatsServer, open_store: OpenStore
) -> None:
    normal = await open_store(nats_server.url, test_mode=False)
    unheard = await normal.nats.request(normal.config.reset)
    assert isinstance(unheard, Failed)
    assert not unheard.sent, "nobody listens"
    await open_store(nats_server.url, test_mode=True)
    heard = await normal.nats.request(normal.config.reset)
    assert not isinstance(heard, Failed)


async def test_a_reset_is_acknowledged_to_inboxes_alone(store: Store, other: Store) -> None:
    refused = metrics.REPLIES_REFUSED.value
    for reply in (store.config.job("any"), "ojs.api.pauseQueue.email", "ojs.control.answer.*"):
        store.nats.publish(store.config.reset, b"", reply=reply)
    await eventually(lambda: metrics.REPLIES_REFUSED.value == refused + 6)
    assert await message(other, store.config.job("any")) is None


async def test_resetting_leaves_only_the_records_of_services(nats_server: NatsServer, open_store: OpenStore) -> None:
    store = await open_store(nats_server.url)
    await set_up([store], "full", max_size=1, concurrency=1)
    await store.enqueue.push(draft(queue="full"))
    assert await attempt(store, "full") is None
    await fetch(store, "full")
    assert {"job", "queue", "limit"} <= await kinds(store)
    await store.reset(KINDS)
    assert await kinds(store) <= LASTING


async def kinds(store: Store) -> set[str]:
    return {subject.split(".")[2] for subject in await store.records.subjects(f"$KV.{store.config.bucket}.>")}


async def test_very_many_changes_of_one_job_at_once_are_all_made(store: Store, queue: str) -> None:
    job = await store.enqueue.push(draft(queue=queue))
    wanted = range(-40, 40)

    async def changed(priority: int) -> int:
        change = await store.jobs.change(job.id, lambda job, moment: transitions.reprioritise(job, priority, moment))
        return change.after.priority

    found = await asyncio.gather(*map(changed, wanted))
    assert sorted(found) == list(wanted)
    assert (await store.jobs.get(job.id)).priority in wanted

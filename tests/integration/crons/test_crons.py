"""Cron entries on a real server: each tick has one job, whoever dies between any two writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from integration.conftest import OpenStore
from integration.samples import (
    KINDS,
    acked,
    draft,
    fetch,
    losing_answers,
    message,
    refusal,
    set_up,
    subjects,
    tokens,
    unreachable,
)
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Failed, ReplyOrFailure
from ojs_engine.jetstream.due_messages import Due
from ojs_engine.store.store import Store
from ojs_features.crons import changes, ticks
from ojs_features.crons.changes import Registration
from ojs_features.crons.loop import CronWorker
from ojs_features.crons.record import Cron, CronRun
from ojs_features.crons.step import Step
from ojs_features.crons.store import CronDue, Crons
from ojs_features.crons.subjects import cron_subject
from support.cluster import NatsCluster
from support.nats import NatsServer
from support.outside import Send, clock_of, tapped
from support.waiting import eventually

EVERY_SECOND = "* * * * * *"
NEVER_SOON = "0 0 1 1 *"


async def unchanged(draft: Job) -> Job | None:
    return draft


@pytest.fixture
def open_here(shared_nats_server: NatsServer, own_namespace: str, open_store: OpenStore) -> OpenStore:
    """`await open_here(role="scheduler")`: one more store of the test's own: due messages reach whoever asks first."""
    return partial(open_store, shared_nats_server.url, namespace=own_namespace)


@pytest.fixture
async def store(open_here: OpenStore) -> Store:
    return await open_here()


@asynccontextmanager
async def schedulers(*stores: Store) -> AsyncIterator[list[CronWorker]]:
    keepers = [CronWorker(store, unchanged) for store in stores]
    for keeper in keepers:
        await keeper.start()
    try:
        yield keepers
    finally:
        for keeper in keepers:
            await keeper.stop()


def wanted(name: str = "entry", expression: str = EVERY_SECOND, **members: Any) -> Registration:
    job = {"queue": members.pop("queue", name), "unique": members.pop("unique", NOTHING)}
    template = keyed(Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE, **job))
    return Registration(name=name, expression=expression, draft=template, **members)


async def register(store: Store, *arguments: Any, **members: Any) -> Cron:
    return (await store.of(Crons).register(wanted(*arguments, **members)))[1]


async def live_timers(store: Store) -> list[str]:
    return list(await subjects(store, store.config.records_stream, f"{store.config.namespace}.timer.cron.>"))


async def dues(store: Store) -> list[str]:
    return list(await subjects(store, store.config.records_stream, f"{store.config.namespace}.due.cron.>"))


async def first_due(store: Store) -> Due:
    """The next due message of a cron entry, in the hands of somebody who won't let it go."""
    messages = store.of(Crons).due_messages()
    while not (batch := await messages.next()):
        pass
    return batch[0]


async def half_done(store: Store, *, deliver: bool = False) -> tuple[Due, Step]:
    """A scheduler that takes a tick and dies: after it stored the run, or after it created the job, too."""
    due = await first_due(store)
    hint = CronDue.of(due.job_id)
    stored = (await store.of(Crons).many([hint.token]))[hint.token]
    assert stored.cron is not None
    moment = store.clock.moment(due.at)
    step = ticks.tick(stored.cron, moment, await store.of(Crons).previous(stored.cron, unchanged), hint.op)
    assert isinstance(step, Step)
    await store.of(Crons).commit(step, stored.sequence, moment.op)
    if deliver:
        assert step.run is not None
        await store.of(Crons).ensure(step.record, step.run, unchanged)
    return due, step


async def jobs_of(store: Store, runs: Sequence[CronRun]) -> dict[str, Job]:
    found = await store.records.many([run.job_id for run in runs if run.job_id is not None])
    return {job_id: stored.job for job_id, stored in found.items() if stored.job is not None}


async def handed_out(store: Store, queue: str) -> int:
    """How many jobs a queue gives out. It may hold more tokens: a job that is created again gets its token again."""
    found = await fetch(store, queue, count=1_000)
    assert len({job.id for job in found}) == len(found)
    return len(found)


def triggered(cron: Cron) -> list[CronRun]:
    return [run for run in cron.log if run.outcome == "triggered"]


async def until_run(store: Store, number: int, name: str = "entry", seconds: float = 20.0) -> Cron:
    """The entry once it has run `number` times."""

    async def ran() -> Cron | None:
        try:
            cron = await store.of(Crons).get(name)
        except OjsError as error:
            if not error.info.retryable:
                raise
            return None
        return cron if cron.run_count >= number else None

    found = await eventually(ran, seconds)
    assert found is not None
    return found


async def settled(store: Store) -> None:
    """Nothing fired is left to be handled."""

    async def nothing_due() -> bool:
        return not await dues(store)

    await eventually(nothing_due)


async def finish(store: Store, queue: str) -> str:
    """Take the next job of a queue and finish it; its id."""

    async def next_job() -> list[Job]:
        return await fetch(store, queue)

    job = (await eventually(next_job))[0]
    await store.jobs.change(job.id, acked)
    return job.id


# One job for each tick


async def test_three_schedulers_create_one_job_for_each_tick(open_here: OpenStore) -> None:
    stores = [await open_here(role="scheduler") for _ in range(3)]
    names = [f"entry-{number}" for number in range(20)]
    async with schedulers(*stores):
        for name in names:
            await register(stores[0], name, overlap="allow")
        for name in names:
            await until_run(stores[0], 4, name)
        for name in names:
            await stores[0].of(Crons).change(name, lambda cron, moment: changes.switch(cron, False, moment))
        await settled(stores[0])
    for name in names:
        cron = await stores[0].of(Crons).get(name)
        runs = triggered(cron)
        fired = [run.tick for run in runs]
        assert fired == list(range(fired[0], fired[-1] + 1, 1_000)), "each second, once"
        assert set(await jobs_of(stores[0], runs)) == {run.job_id for run in runs}
        assert await handed_out(stores[0], name) == len(runs), "and no other job"
    assert await live_timers(stores[0]) == []


async def test_the_job_says_where_it_comes_from(store: Store) -> None:
    async with schedulers(store):
        await register(store)
        cron = await until_run(store, 1)
    run = triggered(cron)[0]
    job = (await jobs_of(store, [run]))[run.job_id or ""]
    assert msgspec.json.decode(job.meta)["cron_name"] == "entry"
    assert msgspec.json.decode(job.meta)["cron_triggered_at"].endswith("00Z")
    assert job.state is State.AVAILABLE


async def test_a_scheduler_that_dies_before_the_job_is_finished_by_another(store: Store) -> None:
    await register(store, overlap="allow")
    _, step = await half_done(store)
    assert step.run is not None
    run = step.run
    assert await jobs_of(store, [run]) == {}
    async with schedulers(store):

        async def created() -> dict[str, Job]:
            return await jobs_of(store, [run])

        await eventually(created)
        await store.of(Crons).change("entry", lambda cron, moment: changes.switch(cron, False, moment))
        await settled(store)
    cron = await store.of(Crons).get("entry")
    assert await handed_out(store, "entry") == cron.run_count


async def test_a_message_that_comes_again_creates_nothing_new(store: Store) -> None:
    await register(store, overlap="allow", expression="@every 2s")
    due, step = await half_done(store, deliver=True)
    assert step.run is not None
    async with schedulers(store):
        await settled(store)
    cron = await store.of(Crons).get("entry")
    assert await handed_out(store, "entry") == cron.run_count == len(await jobs_of(store, triggered(cron)))
    assert due.deliveries == 1


async def test_the_next_tick_creates_a_job_that_is_missing(store: Store) -> None:
    """Even if the message of the tick before got lost."""
    await register(store, overlap="skip")
    due, step = await half_done(store)
    await store.of(Crons).due_messages().done([due])
    assert step.run is not None
    assert await jobs_of(store, [step.run]) == {}
    async with schedulers(store):
        await eventually(lambda: skipped(store))
    assert list(await jobs_of(store, [step.run])) == [step.run.job_id]
    assert await handed_out(store, "entry") == 1, "and it was in the way of the next"


async def skipped(store: Store, name: str = "entry") -> list[CronRun]:
    return [run for run in (await store.of(Crons).get(name)).log if run.outcome == "skipped"]


async def test_a_scheduler_that_dies_before_the_record_costs_only_time(store: Store) -> None:
    await register(store, overlap="allow")
    due = await first_due(store)  # and that was all
    async with schedulers(store):
        cron = await until_run(store, 3)
    fired = [run.tick for run in triggered(cron)]
    assert fired == list(range(fired[0], fired[-1] + 1, 1_000)), "late ticks are made up for"
    assert abs(fired[0] - due.at) < 1_000


async def test_of_the_ticks_of_a_long_pause_one_is_made_up_for(store: Store) -> None:
    await register(store, overlap="allow")
    due = await first_due(store)
    clock_of(store).ahead_ms = 3_600_000  # the scheduler slept for an hour
    hint = CronDue.of(due.job_id)
    stored = (await store.of(Crons).many([hint.token]))[hint.token]
    assert stored.cron is not None
    step = ticks.tick(stored.cron, store.clock.moment(), None, hint.op)
    assert isinstance(step, Step)
    assert len(triggered(step.record)) == 1
    assert step.record.next_at is not None
    assert step.record.next_at > due.at + 3_599_000


async def test_an_answer_that_is_lost_changes_nothing(store: Store) -> None:
    with losing_answers(store.nats, f"$KV.{store.config.bucket}.cron.", 2) as lost:
        await register(store, overlap="allow")
        async with schedulers(store):
            await until_run(store, 2)
    assert len(lost) == 2
    cron = await store.of(Crons).get("entry")
    assert await handed_out(store, "entry") == cron.run_count
    assert len(await live_timers(store)) <= 1


async def test_a_moment_without_a_leader_is_survived(store: Store) -> None:
    with (
        unreachable(store.nats, f"{store.config.namespace}.timer.cron.", 2),
        unreachable(store.nats, f"$KV.{store.config.bucket}.cron.", 2),
    ):
        await register(store, overlap="allow")
    async with schedulers(store):
        await until_run(store, 2)


# Timers


async def test_registering_again_keeps_one_timer(store: Store) -> None:
    first = await register(store, "entry", NEVER_SOON)
    for _ in range(3):
        assert (await register(store, "entry", NEVER_SOON)).timer == first.timer
    assert len(await live_timers(store)) == 1
    second = await register(store, "entry", "0 0 2 1 *")
    assert second.timer is not None
    assert await live_timers(store) == [f"{store.config.namespace}.timer.cron.entry.{second.timer.op}"]


async def test_many_registrations_at_once_leave_one_timer(store: Store, open_here: OpenStore) -> None:
    other = await open_here()
    entries = [wanted("entry", f"0 0 {day} 1 *") for day in range(1, 6)]
    outcomes = await asyncio.gather(*(each.of(Crons).register(entry) for entry in entries for each in (store, other)))
    assert sum(created for created, _ in outcomes) == 1
    cron = await store.of(Crons).get("entry")
    assert cron.timer is not None

    async def one_left() -> bool:
        return await live_timers(store) == [f"{store.config.namespace}.timer.cron.entry.{cron.timer.op if cron.timer else ''}"]

    await eventually(one_left)


async def test_a_timer_appears_where_schedulers_look_for_it(store: Store) -> None:
    cron = await register(store, "daily.report-1", NEVER_SOON)
    assert cron.timer is not None
    found = await message(store, f"{store.config.namespace}.timer.cron.daily=2Ereport-1.{cron.timer.op}")
    assert found is not None
    assert found[1]["Nats-Schedule-Target"] == f"{store.config.namespace}.due.cron.daily=2Ereport-1_{cron.timer.op}"
    assert CronDue.of(f"daily=2Ereport-1_{cron.timer.op}") == ("daily=2Ereport-1", cron.timer.op)


async def test_a_pause_stops_ticks_and_resuming_goes_on(store: Store) -> None:
    async with schedulers(store):
        await register(store, overlap="allow")
        await until_run(store, 1)
        paused = await store.of(Crons).change("entry", lambda cron, moment: changes.switch(cron, False, moment))
        assert paused.next_at is None
        assert await live_timers(store) == []
        await settled(store)
        assert (await store.of(Crons).get("entry")).run_count == paused.run_count
        resumed = await store.of(Crons).change("entry", lambda cron, moment: changes.switch(cron, True, moment))
        assert resumed.next_at is not None
        await until_run(store, paused.run_count + 1)


async def test_a_deleted_entry_is_gone_but_its_jobs_stay(store: Store) -> None:
    await register(store, overlap="allow")
    _, step = await half_done(store)
    await store.of(Crons).change("entry", changes.delete)
    assert await live_timers(store) == []
    with refusal("not_found"):
        await store.of(Crons).get("entry")
    with refusal("not_found"):
        await store.of(Crons).change("entry", changes.delete)
    with refusal("not_found"):
        await store.of(Crons).run_now("entry", unchanged)
    assert await store.of(Crons).all() == []
    async with schedulers(store):
        await settled(store)
    assert step.run is not None
    assert list(await jobs_of(store, [step.run])) == [step.run.job_id], "the run was decided before"
    created, cron = await store.of(Crons).register(wanted("entry", NEVER_SOON))
    assert (created, cron.run_count) == (True, 0)


async def test_a_record_that_can_not_be_read_keeps_nobody_waiting(store: Store) -> None:
    await register(store, "broken")
    await register(store, "sound", overlap="allow")
    answer = await store.nats.request(cron_subject(store.config, "broken"), b"not json")
    assert b"seq" in getattr(answer, "data", b"")
    async with schedulers(store):
        await until_run(store, 2, "sound")
    assert [cron.name for cron in await store.of(Crons).all()] == ["sound"]
    with refusal("unreadable_record"):
        await store.of(Crons).get("broken")


# Overlap


async def test_skip_leaves_ticks_out_while_a_job_runs(store: Store) -> None:
    async with schedulers(store):
        await register(store)
        found = await eventually(lambda: skipped(store))
        cron = await store.of(Crons).get("entry")
        assert (cron.run_count, {run.reason for run in found}) == (1, {"overlap_skip"})
        assert {run.job_id for run in found} == {cron.last_job}
        await finish(store, "entry")
        await until_run(store, 2)


async def test_cancel_previous_ends_the_job_before(store: Store) -> None:
    async with schedulers(store):
        await register(store, overlap="cancel_previous")
        cron = await until_run(store, 1)
        assert len(await fetch(store, "entry")) == 1
        cron = await until_run(store, 3)
        await store.of(Crons).change("entry", lambda cron, moment: changes.switch(cron, False, moment))
        await settled(store)
    jobs = await jobs_of(store, triggered(cron))
    states = [jobs[run.job_id or ""].state for run in triggered(cron)]
    assert states[:-1] == [State.CANCELLED] * (len(states) - 1)
    assert jobs[triggered(cron)[0].job_id or ""].transitions[-1].reason == "the next run of cron 'entry' is due"


async def test_enqueue_runs_one_after_another_and_leaves_none_out(store: Store) -> None:
    async with schedulers(store):
        await register(store, overlap="enqueue")

        async def waiting() -> bool:
            return len((await store.of(Crons).get("entry")).waiting) >= 2

        await eventually(waiting)
        assert await tokens(store, "entry") == 1, "only one at a time"
        await store.of(Crons).register(wanted("entry", NEVER_SOON, overlap="enqueue", queue="entry"))
        left = 1 + len((await store.of(Crons).get("entry")).waiting)
        finished = [await finish(store, "entry") for _ in range(left)]
    cron = await store.of(Crons).get("entry")
    assert finished == [run.job_id for run in triggered(cron)]
    assert [run.tick for run in triggered(cron)] == sorted({run.tick for run in triggered(cron)})
    assert cron.waiting == ()


# Run now


async def test_a_run_by_hand_needs_no_scheduler(store: Store) -> None:
    before = await register(store, "entry", NEVER_SOON)
    cron, run, _ = await store.of(Crons).run_now("entry", unchanged)
    assert run is not None
    assert list(await jobs_of(store, [run])) == [run.job_id]
    assert (cron.next_at, cron.run_count) == (before.next_at, 1)
    with refusal("conflict"):
        await store.of(Crons).run_now("entry", unchanged)

    async def insurance_is_gone() -> bool:
        return len(await live_timers(store)) == 1

    await eventually(insurance_is_gone)


async def test_a_run_by_hand_is_finished_by_a_scheduler_if_its_gateway_dies(store: Store) -> None:
    await register(store, "entry", NEVER_SOON)
    stored = (await store.of(Crons).many(["entry"]))["entry"]
    assert stored.cron is not None
    moment = store.clock.moment()
    step = changes.run_now(stored.cron, moment, None)
    await store.of(Crons).commit(step, stored.sequence, moment.op)  # and that was all
    assert step.run is not None
    run = step.run
    async with schedulers(store):

        async def created() -> dict[str, Job]:
            return await jobs_of(store, [run])

        await eventually(created)
        await settled(store)
    assert await handed_out(store, "entry") == 1


# Run now, into a bounded queue


async def filled(store: Store, **config: Any) -> list[Job]:
    """The queue of the entries, with as many jobs as it takes."""
    await set_up([store], "entry", max_size=2, **config)
    return [await store.enqueue.push(draft(queue="entry")) for _ in range(2)]


async def test_a_run_that_a_full_queue_refuses_is_none_and_will_be_none(store: Store) -> None:
    before = await register(store, "entry", NEVER_SOON, overlap="allow")
    waiting = await filled(store)
    async with schedulers(store):
        for _ in range(2):
            with refusal("queue_full"):
                await store.of(Crons).run_now("entry", unchanged)
        assert await store.of(Crons).get("entry") == before
        assert len(await live_timers(store)) == 1
        for job in waiting:
            await store.jobs.change(job.id, transitions.cancel)
        cron, run, created = await store.of(Crons).run_now("entry", unchanged)
        assert (cron.run_count, created) == (1, True)
        await settled(store)
    assert run is not None
    assert [job.id for job in await fetch(store, "entry", count=9)] == [run.job_id]


async def test_of_two_runs_at_once_the_one_for_which_there_is_room_is_stored(store: Store, open_here: OpenStore) -> None:
    other = await open_here()
    await register(store, "entry", NEVER_SOON, overlap="allow")
    await set_up([store, other], "entry", max_size=1)
    outcomes = await asyncio.gather(
        *(one.of(Crons).run_now("entry", unchanged) for one in (store, other)), return_exceptions=True
    )
    assert sorted(outcome.code for outcome in outcomes if isinstance(outcome, OjsError)) == ["queue_full"]
    assert (await store.of(Crons).get("entry")).run_count == 1
    assert await handed_out(store, "entry") == 1


async def test_a_run_whose_job_is_a_duplicate_takes_no_place(store: Store) -> None:
    policy = Raw(b'{"keys": ["type", "args"]}')
    await register(store, "entry", NEVER_SOON, unique=policy)
    await set_up([store], "entry", max_size=2, overflow_policy="drop_oldest")
    waiting = [
        await store.enqueue.push(draft(queue="entry")),
        await store.enqueue.push(keyed(draft(queue="entry", args=Raw(b"[]"), unique=policy))),
    ]
    cron, run, created = await store.of(Crons).run_now("entry", unchanged)
    assert run is not None
    assert (cron.run_count, created, await jobs_of(store, [run])) == (1, True, {}), "that is its answer, as for a tick"
    assert [job.id for job in await fetch(store, "entry", count=9)] == [job.id for job in waiting], "nothing was dropped"


async def test_a_run_takes_the_place_of_the_job_that_it_cancels(store: Store) -> None:
    await register(store, "entry", NEVER_SOON, overlap="cancel_previous")
    await set_up([store], "entry", max_size=1)
    runs = [await store.of(Crons).run_now("entry", unchanged) for _ in range(2)]
    assert [run.created for run in runs] == [True, True]
    jobs = await jobs_of(store, [run.run for run in runs if run.run is not None])
    assert [job.state for job in jobs.values()] == [State.CANCELLED, State.AVAILABLE]


@pytest.mark.parametrize("trouble", ["no room", "no answer"])
async def test_what_follows_a_stored_run_is_no_refusal(store: Store, trouble: str) -> None:
    """The job before runs, so its end makes no room; or NATS is away just then. A scheduler creates the job when it can."""
    await register(store, "entry", NEVER_SOON, overlap="cancel_previous")
    await store.of(Crons).run_now("entry", unchanged)
    [first] = await fetch(store, "entry")
    waiting = await filled(store) if trouble == "no room" else []

    async def unled() -> Failed:
        return Failed("NATS has no leader for this yet", sent=False)

    def away(_send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        is_the_runs = subject.startswith(store.config.job("")) and first.id not in subject
        return unled() if trouble == "no answer" and is_the_runs else None

    with tapped(store.nats, away):
        _, run, created = await store.of(Crons).run_now("entry", unchanged)
    assert run is not None
    assert not created
    assert (await store.jobs.get(first.id)).state is State.CANCELLED
    async with schedulers(store):
        for job in waiting:
            await store.jobs.change(job.id, transitions.cancel)
        await eventually(lambda: jobs_of(store, [run]))
        await settled(store)
    assert [job.id for job in await fetch(store, "entry", count=9)] == [run.job_id]


async def test_a_job_that_is_refused_by_hand_leaves_no_run(store: Store) -> None:
    before = await register(store, "entry", NEVER_SOON)

    async def refusing(_draft: Job) -> Job | None:
        raise invalid("args", "args don't please")

    with refusal("invalid_request"):
        await store.of(Crons).run_now("entry", refusing)
    assert await store.of(Crons).get("entry") == before


# The check of a job


async def test_a_check_that_fails_holds_the_tick_up_until_it_works(store: Store) -> None:
    failures = 2

    async def flaky(draft: Job) -> Job | None:
        nonlocal failures
        if failures:
            failures -= 1
            raise RuntimeError("not now")
        return draft

    await register(store, overlap="allow", expression="@every 1s")
    keeper = CronWorker(store, flaky)
    await keeper.start()
    try:
        cron = await until_run(store, 2)

        async def all_created() -> bool:
            return len(await jobs_of(store, triggered(cron))) == len(triggered(cron))

        await eventually(all_created)
    finally:
        await keeper.stop()
    assert failures == 0


# Lists and reset


async def test_more_entries_than_one_answer_holds_are_listed(store: Store) -> None:
    names = [f"entry-{number:04}" for number in range(1_100)]
    for start in range(0, len(names), 100):
        await asyncio.gather(*(register(store, name, NEVER_SOON) for name in names[start : start + 100]))
    await store.of(Crons).change(names[7], changes.delete)
    found = await store.of(Crons).all()
    assert [cron.name for cron in found] == [name for name in names if name != names[7]]


async def test_a_reset_wipes_entries_with_their_timers(store: Store) -> None:
    async with schedulers(store):
        await register(store, overlap="allow")
        await until_run(store, 1)
        await store.reset(KINDS)
        await settled(store)
        assert await store.of(Crons).all() == []
        assert await live_timers(store) == []
        created, cron = await store.of(Crons).register(wanted("entry", NEVER_SOON))
        assert (created, cron.n) == (True, 0)


async def test_a_finished_job_does_not_come_back_through_an_old_message(store: Store) -> None:
    """The message of a run that was handled comes again after its job has ended."""
    await register(store, overlap="allow", expression="@every 2s")
    _, step = await half_done(store, deliver=True)
    assert step.run is not None
    done = await finish(store, "entry")
    async with schedulers(store):
        await until_run(store, 2)
    job = await store.jobs.get(done)
    assert (done, job.state) == (step.run.job_id, State.COMPLETED)


async def test_a_job_that_is_deleted_is_not_in_the_way(store: Store) -> None:
    cron = await register(store, "entry", NEVER_SOON)
    _, run, _ = await store.of(Crons).run_now("entry", unchanged)
    assert run is not None
    waiting = await store.of(Crons).previous(await store.of(Crons).get("entry"), unchanged)
    assert (waiting and waiting.state) == State.AVAILABLE
    await store.jobs.change(run.job_id or "", transitions.cancel)
    ended = await store.of(Crons).previous(await store.of(Crons).get("entry"), unchanged)
    assert (ended and ended.state) == State.CANCELLED
    assert await store.of(Crons).previous(cron, unchanged) is None


async def test_a_job_of_an_old_run_that_has_left_is_not_created_again(store: Store) -> None:
    await register(store)
    _, step = await half_done(store)
    clock_of(store).ahead_ms = 3_600_001
    assert await store.of(Crons).previous(step.record, unchanged) is None
    assert step.run is not None
    assert await jobs_of(store, [step.run]) == {}


@pytest.mark.cluster
@pytest.mark.slow
async def test_a_cluster_whose_leader_moves_loses_no_tick(nats_cluster: NatsCluster, open_store: OpenStore) -> None:
    stores = [await open_store(nats_cluster.url, role="scheduler", replicas=3) for _ in range(3)]
    store = stores[0]
    names = [f"moved-{number}" for number in range(5)]
    async with schedulers(*stores):
        for name in names:
            await register(store, name, overlap="allow")
        for number in (2, 4):
            await until_run(store, number, names[0], 40.0)
            await call(store.nats, f"STREAM.LEADER.STEPDOWN.{store.config.records_stream}")
        for name in names:
            await until_run(store, 7, name, 40.0)
            await store.of(Crons).change(name, lambda cron, moment: changes.switch(cron, False, moment))
        await settled(store)
    for name in names:
        runs = triggered(await store.of(Crons).get(name))
        fired = [run.tick for run in runs]
        assert fired == list(range(fired[0], fired[-1] + 1, 1_000))
        jobs = await fetch(store, name, count=1_000, wait_ms=10_000)  # a consumer is made on first use, and needs a leader
        assert sorted(job.id for job in jobs) == sorted(run.job_id or "" for run in runs)
        assert await handed_out(store, name) == 0
        await store.of(Crons).change(name, changes.delete)
    assert not [cron.name for cron in await store.of(Crons).all() if cron.name in names]

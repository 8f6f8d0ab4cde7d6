"""The safety net: it brings back hints that were lost, and finds nothing where none were."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

import ojs_scheduler
from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import ENDS, lives, patient, projecting
from integration.samples import acked, delayed, draft, due_subjects, fetch, put_raw, subjects, timers, tokens, unreachable
from integration.workflows.flows import create, end, group, hints
from ojs_api.words import Overlap
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.consumers import make_in_memory
from ojs_engine.jetstream.subjects import ANY, REST
from ojs_engine.store.store import Store, StoreFeatures
from ojs_engine.telemetry import metrics
from ojs_features.crons import changes
from ojs_features.crons.changes import Registration
from ojs_features.crons.loop import CronWorker
from ojs_features.crons.record import Cron
from ojs_features.crons.store import Crons
from ojs_features.crons.timings import CronRepairTimings
from ojs_features.limits.limits import Limits
from ojs_features.limits.loop import blocked_jobs_loop
from ojs_features.limits.permits import key_scope
from ojs_features.workflows.coordinator import Coordinator
from ojs_features.workflows.repairs import RepairTimings
from ojs_features.workflows.store import Workflows
from ojs_index.safety_net.lost_tokens import LostTokenTimings
from ojs_index.safety_net.safety import SafetyNet, SafetyTimings
from ojs_projector.projector import Projector, ProjectorTimings
from ojs_runtime.settings import Settings
from support.examples import amount, examples
from support.outside import before, clock_of
from support.waiting import PATIENCE_S, eventually

GRACE_MS = 250
NEVER_S = 3_600.0
"""A safety net looks when a test has it look: two looks at a time would share what they find."""
BLOCKED = examples(1_500, least=450)
CORRECTION_MS = 100
"""By so much the clock may be set back while a test waits for the grace to pass."""
SOON_MS = 1_000
"""Longer than a push takes, which would make the job available at once."""
SOON = SafetyTimings(tokens=LostTokenTimings(grace_ms=GRACE_MS), timer_grace_ms=0)
OF_WORKFLOWS = RepairTimings(grace_ms=GRACE_MS, pause_ms=0)
OF_CRONS = CronRepairTimings(grace_ms=0)


def soon(**others: Any) -> pytest.MarkDecorator:
    """Have a safety net wait as short as `SOON`, with other numbers."""
    return projecting(
        ProjectorTimings(wait_s=PATIENCE_S, safety_s=NEVER_S, safety=replace(SOON, **others), features=(OF_CRONS, OF_WORKFLOWS))
    )


@pytest.fixture
def projector_timings() -> ProjectorTimings:
    return ProjectorTimings(wait_s=PATIENCE_S, safety_s=NEVER_S, safety=SOON, features=(OF_CRONS, OF_WORKFLOWS))


@pytest.fixture
async def net(projector: Projector) -> SafetyNet:
    """The projector's safety net, which waits a quarter of a second instead of five."""
    assert projector._safety is not None
    return projector._safety


async def purge(store: Store, stream: str, subject: str) -> None:
    answer = await call(store.nats, f"STREAM.PURGE.{stream}", {"filter": subject})
    assert "error" not in answer


async def indexed(store: Store) -> None:
    """Everything written before is in the index, and old enough to be suspect."""
    await patient(store).queue("any")
    now = store.clock.now()
    await eventually(lambda: store.clock.now() > now + GRACE_MS + CORRECTION_MS)


async def test_it_finds_nothing_in_normal_running(net: SafetyNet, store: Store) -> None:
    await lives(store, 3 * len(ENDS))
    await store.enqueue.push(draft(queue="later", scheduled_at=store.clock.now() + 60_000))
    await indexed(store)
    await net.look()
    assert net.found == {}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [1, 300 if amount() == "all" else 100])
async def test_it_finds_nothing_among_many_blocked_jobs(net: SafetyNet, store: Store, open_here: OpenStore, keys: int) -> None:
    """Neither before they are put aside, nor while that goes on, nor afterwards; and others of their queue come through."""
    keeper = blocked_jobs_loop(await open_here(role="scheduler"))
    await keeper.start()
    before = safety_net_finds()
    await store.enqueue.push_all([limited("q", f"k{key}") for key in range(keys)])
    assert len(await fetch(store, "q", count=keys)) == keys
    for _ in range(3):
        await store.enqueue.push_all([limited("q", f"k{number % keys}") for number in range(BLOCKED // 3)])
    await indexed(store)
    for _ in range(3):
        await net.look()
        unrelated = await store.enqueue.push(draft(queue="q"))
        assert [job.id for job in await fetch(store, "q", wait_ms=30_000)] == [unrelated.id]
        await indexed(store)

    async def all_are_aside() -> bool:
        assert await fetch(store, "q") == []
        await net.look()
        return await tokens(store, "q") == 0

    await eventually(all_are_aside, 120.0)
    await indexed(store)
    for _ in range(3):
        await net.look()
    assert net.found == {}
    assert safety_net_finds() == before
    for key in range(keys):  # a token whose move wasn't confirmed in time may wait twice
        blocked = 3 * len(range(key, BLOCKED // 3, keys))
        assert blocked <= await store.of(Limits).blocked.count(key_scope(f"k{key}")) <= 2 * blocked
    unrelated = await store.enqueue.push(draft(queue="q"))
    assert [job.id for job in await fetch(store, "q")] == [unrelated.id]
    await keeper.stop()


def safety_net_finds() -> float:
    """What the metric counts in this process."""
    return sum(
        sample.value for metric in metrics.SAFETY_NET.collect() for sample in metric.samples if sample.name.endswith("_total")
    )


@pytest.mark.parametrize("priority", [-100, 0, 7])
async def test_an_available_job_without_a_token_gets_one(net: SafetyNet, store: Store, priority: int) -> None:
    jobs = [await store.enqueue.push(draft(queue="q", priority=priority)) for _ in range(3)]
    await purge(store, store.config.ready_stream, store.config.ready_of_queue("q"))
    await indexed(store)
    await net.look()
    assert net.found == {"token": 3}
    assert {job.id for job in await fetch(store, "q", count=9)} == {job.id for job in jobs}


async def test_only_the_jobs_ahead_of_the_first_token_have_lost_theirs(net: SafetyNet, store: Store) -> None:
    lost = await store.enqueue.push(draft(queue="q"))
    await purge(store, store.config.ready_stream, store.config.ready_of_queue("q"))
    await indexed(store)
    behind = [await store.enqueue.push(draft(queue="q")) for _ in range(3)]
    await indexed(store)
    await net.look()
    assert net.found == {"token": 1}
    assert await tokens(store, "q") == 4
    assert [job.id for job in await fetch(store, "q", count=9)] == [*(job.id for job in behind), lost.id]


async def test_a_job_that_has_a_new_token_behind_others_has_not_lost_one(net: SafetyNet, store: Store) -> None:
    """A changed priority puts a job behind those that have it, however long it has been available."""
    await store.enqueue.push(draft(queue="q", priority=1))
    old = await store.enqueue.push(draft(queue="q"))
    await purge(store, store.config.ready_stream, store.config.ready_of_queue("q"))
    await indexed(store)
    await store.jobs.change(old.id, lambda job, moment: transitions.reprioritise(job, 1, moment))
    await indexed(store)
    await net.look()
    assert net.found == {"token": 1}
    assert await tokens(store, "q") == 2


async def test_it_leaves_a_paused_queue_alone_until_it_goes_on(net: SafetyNet, store: Store) -> None:
    await store.enqueue.push(draft(queue="q"))
    await store.enqueue.push(draft(queue="other"))
    await purge(store, store.config.ready_stream, f"{store.config.namespace}.ready.>")
    await store.queues.pause("q")
    await indexed(store)
    await net.look()
    assert net.found == {"token": 1}
    assert (await tokens(store, "q"), await tokens(store, "other")) == (0, 1)
    await store.queues.resume("q")
    await eventually(lambda: looked(net, 2))
    assert await tokens(store, "q") == 1


async def looked(net: SafetyNet, found: int) -> bool:
    await net.look()
    return net.found["token"] == found


async def test_a_token_in_somebodys_hands_is_not_lost(net: SafetyNet, store: Store) -> None:
    await store.enqueue.push(draft(queue="q"))
    dispatcher = store.dispatcher
    taken = await dispatcher.reader.pull(store.config.ready("q", 0), "q", 1)
    await indexed(store)
    await net.look()
    assert (len(taken), net.found) == (1, {})


async def test_a_lost_timer_is_set_again(net: SafetyNet, store: Store) -> None:
    job = await delayed(store, 1_000, queue="q")
    for op in await timers(store, job.id):
        await purge(store, store.config.records_stream, store.config.timer(job.id, op))
    await indexed(store)
    await net.look()
    assert net.found == {}  # not due yet
    await eventually(lambda: store.clock.now() > (job.scheduled_at or 0))
    await net.look()
    assert net.found == {"timer": 1}
    await eventually(lambda: due_subjects(store, job.id))


async def test_a_timer_that_fired_and_waits_for_its_service_is_not_lost(net: SafetyNet, store: Store) -> None:
    job = await delayed(store, SOON_MS, queue="q")
    await eventually(lambda: due_subjects(store, job.id))
    await indexed(store)
    await net.look()
    assert net.found == {}


# Hints that are late


async def available(store: Store, job_id: str) -> bool:
    return (await store.jobs.get(job_id)).state is State.AVAILABLE


async def test_a_job_whose_timer_was_handled_late_has_not_lost_its_token(net: SafetyNet, store: Store) -> None:
    """Its record says when the timer fired; its token is as young as its scheduler was late."""
    job = await delayed(store, SOON_MS, queue="q")
    await eventually(lambda: due_subjects(store, job.id))
    await indexed(store)
    scheduler = ojs_scheduler.build(store, Settings())
    await scheduler.start()
    try:
        await eventually(lambda: available(store, job.id))
    finally:
        await scheduler.stop()
    await indexed(store)
    await net.look()
    assert net.found == {}


async def test_a_timer_that_is_handled_while_it_is_looked_for_is_not_lost(net: SafetyNet, store: Store) -> None:
    job = await delayed(store, SOON_MS, queue="q")
    await eventually(lambda: due_subjects(store, job.id))
    await indexed(store)
    scheduler = ojs_scheduler.build(store, Settings())

    async def is_handled() -> None:
        await scheduler.start()
        await eventually(lambda: nothing_due(store, job.id))

    def timer_is_read(subject: str, payload: bytes) -> bool:
        return subject.startswith("$JS.API.") and b".timer.job." in payload

    with before(net._store.nats, timer_is_read, is_handled) as looked:
        try:
            await net.look()
        finally:
            await scheduler.stop()
    assert looked
    assert net.found == {}
    assert await available(store, job.id)


async def nothing_due(store: Store, job_id: str) -> bool:
    return not await due_subjects(store, job_id)


async def test_the_tokens_that_a_batch_has_left_out_are_issued_in_its_order(net: SafetyNet, store: Store) -> None:
    """However many they are: in one round, and those of jobs that have theirs not again."""
    with unreachable(store.nats, f"{store.config.namespace}.ready.", times=1_000_000):
        left = await store.enqueue.push_all([draft(queue="q") for _ in range(1_200)])
    kept = await store.enqueue.push_all([draft(queue="q", priority=1), draft(queue="other")])
    await indexed(store)
    await net.look()
    assert net.found == {"token": len(left)}
    found: list[str] = []
    while len(found) <= len(left):
        some = await fetch(store, "q", count=100, wait_ms=60_000)
        assert some, "a token is missing"
        found += [job.id for job in some]
    assert found == [kept[0].id, *(job.id for job in left)]
    await indexed(store)
    await net.look()
    assert net.found == {"token": len(left)}


async def test_a_batch_that_an_earlier_version_has_left_to_its_outbox_is_finished(net: SafetyNet, store: Store) -> None:
    """Its messages and their consumer go when a scheduler starts; the safety net finds the tokens with them and without."""
    config, stream = store.config, store.config.records_stream
    due = config.due("batch", "op")
    consumer = {"durable_name": "batch", "filter_subject": config.due("batch", ANY)}
    assert await make_in_memory(store.nats, stream, consumer) is None
    with unreachable(store.nats, f"{config.namespace}.ready.", times=1_000_000):
        jobs = await store.enqueue.push_all([draft(queue="q") for _ in range(3)])
    outbox = "\n".join(f"{job.id} {job.token}" for job in jobs).encode()
    await put_raw(store, due, outbox)
    await put_raw(store, config.left_by_batches.replace("*", "timer").replace(REST, "other"), outbox)
    await indexed(store)
    await net.look()
    assert net.found == {"token": 3}
    scheduler = ojs_scheduler.build(store, Settings())
    await scheduler.start()

    async def nothing_is_left() -> bool:
        return not await subjects(store, stream, config.left_by_batches)

    try:
        await eventually(nothing_is_left)
        assert "error" in await call(store.nats, f"CONSUMER.INFO.{stream}.batch")
    finally:
        await scheduler.stop()
    assert [job.id for job in await fetch(store, "q", count=9)] == [job.id for job in jobs]


async def test_a_token_that_was_stored_long_after_its_record_is_not_lost(net: SafetyNet, store: Store) -> None:
    """By whoever handled the job's timer a second time, or pushed it again."""
    job = await store.enqueue.push(draft(queue="q"))
    await purge(store, store.config.ready_stream, f"{store.config.namespace}.ready.>")
    await indexed(store)
    found = await store.records.leader(job.id)
    await store.committer.repeat_token(job, found.sequence)
    await indexed(store)
    await net.look()
    assert net.found == {}


async def test_what_a_due_message_will_give_a_token_has_not_lost_it(net: SafetyNet, store: Store) -> None:
    """A scheduler that died between record and token left its message, which comes to another."""
    job = await store.enqueue.push(draft(queue="q"))
    await put_raw(store, store.config.due("scheduler", job.id), b"")
    await purge(store, store.config.ready_stream, f"{store.config.namespace}.ready.>")
    await indexed(store)
    await net.look()
    assert net.found == {}
    await purge(store, store.config.records_stream, store.config.due("scheduler", job.id))
    await net.look()
    assert net.found == {"token": 1}


@soon(at_once=2)
async def test_jobs_behind_many_that_merely_wait_are_found(net: SafetyNet, store: Store) -> None:
    late = [await delayed(store, SOON_MS, queue="q") for _ in range(4)]
    lost = await delayed(store, SOON_MS, queue="q")
    for job in (*late, lost):
        await eventually(partial(due_subjects, store, job.id))
    await purge(store, store.config.records_stream, store.config.due("scheduler", lost.id))
    await indexed(store)

    async def found() -> bool:
        await net.look()
        return net.found == {"timer": 1}

    await eventually(found)


@soon(tokens=LostTokenTimings(grace_ms=GRACE_MS, page=2, pages=1))
async def test_a_search_among_more_tokens_than_one_round_reads_goes_on_in_the_next(net: SafetyNet, store: Store) -> None:
    lost = await store.enqueue.push(draft(queue="q"))
    kept = await store.enqueue.push(draft(queue="q"))
    await purge(store, store.config.ready_stream, f"{store.config.namespace}.ready.>")
    await indexed(store)
    for _ in range(4):
        await store.enqueue.push(draft(queue="q"))
    await store.committer.repeat_token(kept, (await store.records.leader(kept.id)).sequence)
    found = []
    for _ in range(4):
        await net.look()
        found.append(net.found["token"])
    assert found == [0, 0, 0, 1]
    assert await tokens(store, "q") == 6
    assert [job.id for job in await fetch(store, "q", count=9)][-2:] == [kept.id, lost.id]


# Limits of keys


async def test_a_job_that_was_let_go_late_has_not_lost_its_token(net: SafetyNet, store: Store) -> None:
    """While its key had no permit its token was put aside; it comes back behind everything."""
    first, second = [await store.enqueue.push(limited("q", "key")) for _ in range(2)]
    assert [job.id for job in await fetch(store, "q", count=2)] == [first.id]
    assert await store.of(Limits).blocked.count(key_scope("key")) == 1
    await indexed(store)
    await net.look()
    keeper = blocked_jobs_loop(store)
    await keeper.start()
    try:
        await store.jobs.change(first.id, acked)
        await eventually(lambda: tokens(store, "q"))
    finally:
        await keeper.stop()
    await indexed(store)
    await net.look()
    assert net.found == {}
    assert [job.id for job in await fetch(store, "q")] == [second.id]


async def test_a_token_that_was_lost_while_others_of_its_key_wait_is_found(net: SafetyNet, store: Store) -> None:
    running, lost = [await store.enqueue.push(limited("q", "key")) for _ in range(2)]
    assert [job.id for job in await fetch(store, "q", count=2)] == [running.id]
    await purge(store, store.config.ready_stream, f"{store.config.namespace}.hold.>")
    await indexed(store)
    await store.enqueue.push(limited("q", "key"))
    assert await fetch(store, "q") == []
    assert await store.of(Limits).blocked.count(key_scope("key")) == 1
    await net.look()
    assert net.found == {"token": 1}
    await store.jobs.change(running.id, acked)
    assert [job.id for job in await fetch(store, "q")] == [lost.id]


async def test_a_job_that_a_limit_has_held_starts_where_the_server_runs_without_limits(
    store: Store, open_here: OpenStore, start_projector: StartProjector
) -> None:
    running, held = [await store.enqueue.push(limited("q", "key")) for _ in range(2)]
    assert [job.id for job in await fetch(store, "q", count=2)] == [running.id]
    assert await store.of(Limits).blocked.count(key_scope("key")) == 1
    net = (await start_projector(in_memory=True, features=StoreFeatures()))._safety
    assert net is not None
    await indexed(store)
    for _ in range(2):
        await net.look()
        assert net.found == {"token": 1}
    assert [job.id for job in await fetch(await open_here(features=StoreFeatures()), "q")] == [held.id]


def limited(queue: str, key: str) -> Job:
    return draft(queue=queue, rate_limit=Raw(msgspec.json.encode({"key": key, "concurrency": 1})))


# Cron entries


async def unchanged(job: Job) -> Job:
    return job


async def register(store: Store, name: str, overlap: Overlap = "skip") -> Cron:
    """An entry that is due every second."""
    job = Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE, queue=name)
    _, cron = await store.of(Crons).register(Registration(name=name, expression="* * * * * *", draft=job, overlap=overlap))
    return cron


async def cron_hints(store: Store, kind: str) -> list[str]:
    """The subjects of timers (`timer`), or of the messages that they have become (`due`)."""
    return list(await subjects(store, store.config.records_stream, f"{store.config.namespace}.{kind}.cron.>"))


async def test_a_cron_entry_whose_timer_is_lost_runs_again(net: SafetyNet, store: Store) -> None:
    await register(store, "daily.report")
    [due] = await eventually(lambda: cron_hints(store, "due"))
    await indexed(store)
    await net.look()
    assert net.found == {}  # it waits for its scheduler
    await purge(store, store.config.records_stream, due)
    await net.look()
    assert net.found == {"cron": 1}
    assert await eventually(lambda: cron_hints(store, "due")) == [due]


async def test_cron_entries_that_want_nothing_have_lost_nothing(net: SafetyNet, store: Store) -> None:
    for name in ("paused", "deleted"):
        await register(store, name)
    await eventually(lambda: cron_hints(store, "due"))
    await store.of(Crons).change("paused", lambda cron, moment: changes.switch(cron, False, moment))
    await store.of(Crons).change("deleted", changes.delete)
    await purge(store, store.config.records_stream, f"{store.config.namespace}.*.cron.>")
    await indexed(store)
    await net.look()
    assert net.found == {}
    assert await cron_hints(store, "*") == []


async def test_it_finds_nothing_while_entries_run_and_wait(net: SafetyNet, store: Store) -> None:
    overlaps: dict[str, Overlap] = {"runs": "allow", "skips": "skip", "waits": "enqueue"}
    for name, overlap in overlaps.items():
        await register(store, name, overlap)
    keeper = CronWorker(store, unchanged)
    await keeper.start()

    async def has_run() -> bool:
        await net.look()
        return (await store.of(Crons).get("runs")).run_count >= 3

    try:
        await eventually(has_run)
    finally:
        await keeper.stop()
    assert len((await store.of(Crons).get("waits")).waiting) > 0
    assert net.found == {}


# Workflows


async def test_a_workflow_that_has_not_heard_of_its_jobs_goes_on(net: SafetyNet, store: Store) -> None:
    name = await create(store, group("q", "a", "b"))
    await end(store, "q", number=2)
    await indexed(store)
    await net.look()
    assert net.found == {}  # the coordinator will come to it
    assert await hints(store, name)
    await purge(store, store.config.records_stream, store.config.note("workflow", name, REST))
    await net.look()
    assert net.found == {"workflow": 1}
    assert (await store.of(Workflows).get(name)).record.state == "completed"


@projecting(
    ProjectorTimings(
        wait_s=PATIENCE_S, safety_s=NEVER_S, safety=SOON, features=(replace(OF_WORKFLOWS, pause_ms=300_000, at_once=2),)
    )
)
async def test_a_workflow_is_not_looked_at_again_and_again(net: SafetyNet, store: Store) -> None:
    for number in range(3):
        await create(store, group(f"q{number}", "a", "b"))
        await end(store, f"q{number}", number=2)
    await purge(store, store.config.records_stream, store.config.notes("workflow"))
    await indexed(store)
    found = []
    for _ in range(3):
        await net.look()
        found.append(net.found["workflow"])
    assert found == [2, 3, 3]
    late = await create(store, group("late", "a"))
    await end(store, "late")
    await purge(store, store.config.records_stream, store.config.notes("workflow"))
    await indexed(store)
    await net.look()
    assert (await store.of(Workflows).get(late)).record.state == "running"
    clock_of(net._store).ahead_ms = 300_000
    await net.look()
    assert (await store.of(Workflows).get(late)).record.state == "completed"


async def test_it_finds_nothing_while_workflows_run(net: SafetyNet, store: Store, open_here: OpenStore) -> None:
    quiet = await create(store, group("quiet", "a", "b"))
    names = [await create(store, group("q", "a", "b", "c")) for _ in range(5)]
    coordinator = Coordinator(await open_here(role="coordinator"))

    async def have_ended() -> bool:
        await end(store, "q", number=2)
        await net.look()
        return all([(await store.of(Workflows).get(name)).record.terminal for name in names])

    await coordinator.start()
    try:
        await eventually(have_ended)
    finally:
        await coordinator.stop()
    await indexed(store)
    await net.look()
    assert net.found == {}
    assert (await store.of(Workflows).get(quiet)).record.state == "running"


# Whose word counts


async def test_what_the_index_says_of_a_job_that_has_moved_on_does_not_count(
    net: SafetyNet, projector: Projector, store: Store
) -> None:
    job = await store.enqueue.push(draft(queue="q"))
    await indexed(store)
    await purge(store, store.config.ready_stream, store.config.ready_of_queue("q"))
    assert projector._tasks
    projector._tasks[0].cancel()
    await store.jobs.change(job.id, transitions.cancel)
    await net.look()
    assert net.found == {}


@projecting(ProjectorTimings(wait_s=PATIENCE_S, safety_s=0.05, safety=SafetyTimings(tokens=LostTokenTimings(grace_ms=0))))
async def test_the_tokens_of_a_batch_come_when_a_projector_does(start_projector: StartProjector, store: Store) -> None:
    with unreachable(store.nats, f"{store.config.namespace}.ready.", times=1_000_000):
        jobs = await store.enqueue.push_all([draft(queue="q") for _ in range(3)])
    await start_projector()

    async def all_are_there() -> bool:
        return await tokens(store, "q") == len(jobs)

    await eventually(all_are_there)
    assert [job.id for job in await fetch(store, "q", count=9)] == [job.id for job in jobs]


@projecting(ProjectorTimings(wait_s=PATIENCE_S, safety_s=0.05, safety=SafetyTimings(tokens=LostTokenTimings(grace_ms=0))))
async def test_only_the_relay_looks(start_projector: StartProjector, store: Store) -> None:
    first, second = await start_projector(), await start_projector()
    await store.enqueue.push(draft(queue="q"))
    await purge(store, store.config.ready_stream, store.config.ready_of_queue("q"))
    await eventually(lambda: tokens(store, "q"))

    def counted() -> bool:
        """It counts once the token is stored."""
        return any(projector.status().repaired.get("token", 0) for projector in (first, second))

    await eventually(counted)
    found = [projector.status().repaired.get("token", 0) for projector in (first, second)]
    leading = [projector.status().relaying for projector in (first, second)]
    assert [bool(number) for number in found] == leading

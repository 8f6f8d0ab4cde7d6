"""The event relay over real streams: every transition becomes its events, in order, whoever relays and whatever stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from integration.projector.conftest import StartProjector
from integration.projector.samples import ENDS, assert_events_complete, crash, dead, lives, patient, projecting
from integration.samples import KINDS, acked, draft, fetch, losing_answers, put_raw
from integration.workflows.flows import create, finish, group
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.jetstream.api import parse_ack
from ojs_engine.jetstream.connection import Reply, ReplyOrFailure, header
from ojs_engine.jetstream.event_log import EventLog, Fenced, Outgoing
from ojs_engine.store.announce import tell_of_job
from ojs_engine.store.store import Store
from ojs_features.crons import changes, ticks
from ojs_features.crons.changes import Registration
from ojs_features.crons.record import Cron
from ojs_features.crons.step import Step
from ojs_features.crons.store import Crons
from ojs_features.crons.subjects import cron_subject
from ojs_index.asking.client import Queries
from ojs_index.relaying.relay import Relay, RelayTimings
from ojs_projector.projector import Projector, ProjectorTimings
from support.nats import NatsServer
from support.outside import Send, before, tapped, tapped_connection
from support.truth import all_events
from support.waiting import PATIENCE_S, eventually

pytestmark = pytest.mark.usefixtures("own_namespace")
"""What a projector leaves behind that is killed is no other test's affair."""

quick = projecting(ProjectorTimings(wait_s=PATIENCE_S, relay=RelayTimings(renew_s=0.1, look_s=0.025, takeover_ms=400)))
"""A lease that is renewed and taken over ten times as fast."""


def relay_of(projector: Projector) -> Relay:
    assert projector._relay is not None
    return projector._relay


async def relaying(projector: Projector) -> Projector:
    await eventually(lambda: relay_of(projector).leading)
    return projector


async def all_relayed(store: Store) -> bool:
    try:
        await Queries(store).until_relayed()
    except Exception:  # noqa: BLE001  # nobody holds the role yet
        return False
    return True


async def test_each_transition_is_its_events_in_order(projector: Projector, store: Store) -> None:
    ids = await lives(store, 5 * len(ENDS))
    await patient(store).until_relayed()
    await assert_events_complete(store, ids)
    assert projector.status().events == len(await all_events(store))


async def test_revisions_that_nobody_saw_lose_no_event(start_projector: StartProjector, store: Store) -> None:
    """The bucket keeps one revision of a job: all that came before it is told from its log."""
    ids = await lives(store, 5 * len(ENDS))
    await start_projector()
    await eventually(lambda: all_relayed(store))
    await assert_events_complete(store, ids)


async def test_a_reader_sees_an_event_once_the_barrier_says_so(projector: Projector, store: Store) -> None:
    for n in range(1, 11):
        await store.enqueue.push(draft(queue="q"))
        await patient(store).until_relayed()
        assert len(await all_events(store)) == n
    assert projector.status().relaying


@pytest.mark.usefixtures("projector")
async def test_a_live_event_has_the_number_of_the_transition_that_it_follows_as_stored_ones_have(store: Store) -> None:
    heard: list[Reply] = []
    for subject in (f"{store.config.namespace}.events.job.>", store.config.live_events):
        await store.nats.listen(subject, heard.append)
    job = await store.enqueue.push(draft(queue="q"))
    [taken] = await fetch(store, "q")
    tell_of_job(store, "job.heartbeat", taken, {"attempt": 1})
    await store.jobs.change(job.id, acked)
    await patient(store).until_relayed()
    await eventually(lambda: len(heard) >= 4)

    def place(message: Reply) -> tuple[int, str]:
        return int(header(message.headers, b"Ojs-Entry") or 0), message.subject.decode().split(".")[3]

    assert sorted(map(place, heard)) == [(1, "enqueued"), (2, "heartbeat"), (2, "started"), (3, "completed")]


async def test_a_live_event_needs_no_projector(store: Store) -> None:
    heard: list[Reply] = []
    await store.nats.listen(store.config.live_events, heard.append)
    await store.enqueue.push(draft(queue="q"))
    [taken] = await fetch(store, "q")
    tell_of_job(store, "job.progress", taken, {"attempt": 1})
    await eventually(lambda: len(heard) == 1)


async def test_a_workflow_is_created_before_its_jobs_do_anything_whenever_its_record_is_read(
    start_projector: StartProjector, store: Store
) -> None:
    await finish(store, await create(store, group("q", "a", "b")), "q")
    await start_projector()
    await eventually(lambda: all_relayed(store))
    types = [event.type for event in await all_events(store)]
    assert types[0] == "workflow.created"
    assert types.count("workflow.created") == 1
    assert types[-1] == "workflow.completed"
    assert types.index("workflow.started") < types.index("workflow.job_completed")


def retried_as_it_was(job: Job, moment: Moment) -> Transition:
    return transitions.retry_discarded(job, transitions.RetryOverride(), moment)


async def test_a_deletion_that_nobody_saw_is_told_by_the_job_in_its_place(
    start_projector: StartProjector, store: Store
) -> None:
    job = await store.enqueue.push(draft(queue="q"))
    await fetch(store, "q")
    await store.jobs.change(job.id, dead)
    await store.jobs.change(job.id, retried_as_it_was)
    await fetch(store, "q")
    await store.jobs.change(job.id, dead)
    await store.jobs.change(job.id, transitions.delete)
    again = await store.enqueue.push(draft(id=job.id, queue="q"))
    assert [entry.n for entry in again.transitions] == list(range(1, 9))
    await start_projector()
    await eventually(lambda: all_relayed(store))
    events = await all_events(store)
    await assert_events_complete(store, [job.id])
    assert [event.type for event in events][-2:] == ["dead_letter.deleted", "job.enqueued"]
    [retried] = [msgspec.json.decode(event.body) for event in events if event.type == "dead_letter.retried"]
    assert retried["data"]["retry_count"] == 1


# Cron entries


async def unchanged(job: Job) -> Job:
    return job


async def register(store: Store, name: str) -> Cron:
    """An entry that is not due before the new year."""
    job = Job(id="", type="report.make", args=Raw(b"[]"), state=State.AVAILABLE, queue="reports")
    _, cron = await store.of(Crons).register(Registration(name=name, expression="0 0 1 1 *", draft=job))
    return cron


async def run(store: Store, name: str) -> None:
    """Run an entry, and the job."""
    _, decided, _ = await store.of(Crons).run_now(name, unchanged)
    assert decided is not None
    [job] = await fetch(store, "reports")
    await store.jobs.change(job.id, acked)


async def skip(store: Store, name: str) -> None:
    """What a scheduler does at the new year if the job before still runs."""

    def due(cron: Cron, moment: Moment) -> Step:
        assert cron.next_at is not None
        assert cron.timer is not None
        step = ticks.tick(cron, replace(moment, now=cron.next_at), draft(state=State.ACTIVE), cron.timer.op)
        assert isinstance(step, Step)
        return step

    await store.of(Crons).change(name, due)


async def cron_events(store: Store) -> list[dict[str, Any]]:
    return [msgspec.json.decode(event.body) for event in await all_events(store) if event.type.startswith("cron.")]


async def test_each_run_of_a_cron_entry_is_one_event_in_order(projector: Projector, store: Store) -> None:
    cron = await register(store, "daily.report")
    for step in (run, skip, run):
        await step(store, cron.name)
    await patient(store).until_relayed()
    found = [event for event in await all_events(store) if event.type.startswith("cron.")]
    assert [(event.type, event.queue, event.subject_id) for event in found] == [
        ("cron.triggered", "cron", "daily=2Ereport"),
        ("cron.skipped", "cron", "daily=2Ereport"),
        ("cron.triggered", "cron", "daily=2Ereport"),
    ]
    first, skipped, last = await cron_events(store)
    log = (await store.of(Crons).get(cron.name)).log
    assert [event["subject"] for event in (first, skipped, last)] == ["daily.report"] * 3
    assert (first["data"]["job_id"], first["data"]["run_count"], first["data"]["manual"]) == (log[0].job_id, 1, True)
    assert (skipped["data"]["reason"], skipped["data"]["existing_job_id"]) == ("overlap_skip", log[0].job_id)
    assert skipped["data"]["scheduled_at"].endswith("-01-01T00:00:00.000Z")
    assert (last["data"]["job_id"], last["data"]["run_count"]) == (log[2].job_id, 2)
    assert projector.status().events == len(await all_events(store))


@quick
async def test_a_successor_tells_each_run_of_a_cron_entry_once(start_projector: StartProjector, store: Store) -> None:
    first = await relaying(await start_projector(in_memory=True))
    names = [(await register(store, name)).name for name in ("a", "b")]
    for name in names:
        await run(store, name)
    await patient(store).until_relayed()
    await crash(first)
    for name in names:
        await run(store, name)
        await skip(store, name)
    await put_raw(store, store.config.record("relay", "events"), b'{"holder":"","done":0}')  # all is read again
    await relaying(await start_projector(in_memory=True))
    await run(store, "a")
    await eventually(lambda: all_relayed(store))
    events = await cron_events(store)
    told = {name: [event["type"] for event in events if event["subject"] == name] for name in names}
    once = ["cron.triggered", "cron.triggered", "cron.skipped"]
    assert told == {"a": [*once, "cron.triggered"], "b": once}
    assert len({event["id"] for event in events}) == len(events)


@quick
async def test_a_cron_entry_registered_again_is_a_new_one(start_projector: StartProjector, store: Store) -> None:
    first = await relaying(await start_projector(in_memory=True))
    old = await register(store, "entry")
    await run(store, "entry")
    await patient(store).until_relayed()
    await store.of(Crons).change("entry", changes.delete)
    again = await register(store, "entry")
    await run(store, "entry")
    assert (await store.of(Crons).get("entry")).n == 2
    await patient(store).until_relayed()
    await crash(first)
    # An hour later the deleted entry has left, and the count begins anew.
    await store.of(Crons).change("entry", changes.delete)
    await put_raw(store, cron_subject(store.config, "entry"), b"")
    await relaying(await start_projector(in_memory=True))
    third = await register(store, "entry")
    await run(store, "entry")
    await eventually(lambda: all_relayed(store))
    assert old.created_at < again.created_at < third.created_at
    assert (await store.of(Crons).get("entry")).n == 1
    events = await cron_events(store)
    assert [event["data"]["run_count"] for event in events] == [1, 1, 1]
    assert len({event["id"] for event in events}) == 3


# Who relays


async def test_one_of_several_relays(start_projector: StartProjector, store: Store) -> None:
    first = await relaying(await start_projector())
    second = await start_projector()
    ids = await lives(store, 2 * len(ENDS))
    await patient(store).until_relayed()
    assert relay_of(first).leading
    assert not relay_of(second).leading
    await assert_events_complete(store, ids)


@projecting(ProjectorTimings(wait_s=PATIENCE_S, relay=RelayTimings(takeover_ms=3_600_000)))
@pytest.mark.usefixtures("own_namespace")
async def test_a_projector_that_stops_hands_over_at_once(start_projector: StartProjector, store: Store) -> None:
    """Its successor doesn't wait until its lease is over, which is in an hour here."""
    first = await relaying(await start_projector())
    second = await start_projector()
    ids = await lives(store, len(ENDS))
    await first.stop()
    await relaying(second)
    ids += await lives(store, len(ENDS))
    await patient(store).until_relayed()
    await assert_events_complete(store, ids)


async def test_a_projector_that_dies_is_succeeded_within_five_seconds(start_projector: StartProjector, store: Store) -> None:
    first = await relaying(await start_projector())
    second = await start_projector()
    ids = await lives(store, len(ENDS))
    await crash(first)
    ids += await lives(store, len(ENDS))
    await relaying(second)
    times = RelayTimings()
    assert times.takeover_ms / 1_000 + times.renew_s + 2 * times.look_s <= 5.0
    await eventually(lambda: all_relayed(store))
    await assert_events_complete(store, ids)


@quick
async def test_takeovers_amid_load_lose_and_double_nothing(start_projector: StartProjector, store: Store) -> None:
    ids: list[str] = []
    holder = await relaying(await start_projector(in_memory=True))
    for _ in range(4):
        successor = await start_projector(in_memory=True)
        loading = asyncio.create_task(lives(store, 3 * len(ENDS)))
        await asyncio.wait([loading], timeout=0.05)
        await crash(holder)
        ids += await loading
        holder = await relaying(successor)
    await eventually(lambda: all_relayed(store))
    await assert_events_complete(store, ids)


# The fence


class Stalled:
    """A relay that was stopped between deciding what to append and sending it, its lease unattended."""

    def __init__(self, projector: Projector, store: Store) -> None:
        self._relay = relay_of(projector)
        self._events = appends_of(store)
        assert self._relay._task is not None
        self._relay._task.cancel()
        self.waiting = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.outcome: list[str] = []
        tapped_connection(self._relay._log._nats).taps.append(self._tap)

    def _tap(self, send: Send, subject: str, *rest: Any) -> Awaitable[ReplyOrFailure] | None:
        return self._late(send, subject, *rest) if subject.startswith(self._events) else None

    async def _late(self, send: Send, *request: Any) -> ReplyOrFailure:
        self.waiting.set()
        await self.goes_on.wait()
        answer = await send(*request)
        assert isinstance(answer, Reply)
        self.outcome.append("stored" if parse_ack(answer.data).error is None else "refused")
        return answer


def appends_of(store: Store) -> str:
    """Return how the subjects begin that a relay's requests are sent to."""
    return f"{store.config.namespace}.events."


@quick
async def test_a_stopped_relay_gets_nothing_in_once_it_has_a_successor(start_projector: StartProjector, store: Store) -> None:
    first = await relaying(await start_projector())
    stalled = Stalled(first, store)
    ids = [(await store.enqueue.push(draft())).id]
    await asyncio.wait_for(stalled.waiting.wait(), 60.0)
    ids += await lives(store, 2 * len(ENDS))
    second = await relaying(await start_projector())
    await patient(store).until_relayed()
    stalled.goes_on.set()
    await eventually(lambda: stalled.outcome == ["refused"])
    ids += await lives(store, len(ENDS))
    await patient(store).until_relayed()
    assert relay_of(second).leading
    await assert_events_complete(store, ids)


@quick
async def test_a_stopped_relay_that_goes_on_first_is_right_and_its_successor_begins_anew(
    start_projector: StartProjector, store: Store
) -> None:
    """The successor holds the role but has appended nothing yet: whoever is first wins, the other finds out."""
    first = await relaying(await start_projector())
    stalled = Stalled(first, store)
    ids = [(await store.enqueue.push(draft())).id]
    await asyncio.wait_for(stalled.waiting.wait(), 60.0)
    second = await start_projector()
    limiter = asyncio.Event()
    with before(relay_of(second)._log._nats, appends_of(store), limiter.wait, times=1_000_000) as met:
        await relaying(second)
        await eventually(lambda: met)
        stalled.goes_on.set()
        await eventually(lambda: stalled.outcome[:1] == ["stored"])
        await first._relay._close(first._relay._term)  # type: ignore[union-attr,arg-type]
        limiter.set()
        ids += await lives(store, len(ENDS))
        await eventually(lambda: all_relayed(store))
        assert relay_of(second).leading
    await assert_events_complete(store, ids)


async def test_events_published_without_a_relay_do_not_end_its_tenure(projector: Projector, store: Store) -> None:
    await relaying(projector)
    tenure = relay_of(projector)._term
    ids: list[str] = []
    for _ in range(5):
        ids += await lives(store, len(ENDS), queues=("q",))
        await put_raw(store, store.config.event("job.heartbeat", "q", ids[-1]), b'{"data":{"job_type":"t"}}')
    await patient(store).until_relayed()
    assert relay_of(projector)._term is tenure
    events = await all_events(store)
    beats = [event for event in events if event.type == "job.heartbeat"]
    assert [(beat.queue, beat.subject_id) for beat in beats] == [("q", job_id) for job_id in ids[len(ENDS) - 1 :: len(ENDS)]]
    assert len(events) - 5 == projector.status().events


@quick
async def test_a_successor_finds_a_jobs_last_event_behind_those_of_others(
    start_projector: StartProjector, store: Store
) -> None:
    first = await relaying(await start_projector())
    ids = await lives(store, len(ENDS), queues=("q",))
    await patient(store).until_relayed()
    await crash(first)
    for job_id in ids:
        await put_raw(store, store.config.event("job.heartbeat", "q", job_id), b"{}")
    relay = await store.nats.request(store.config.record("relay", "events"), b'{"holder":"","done":0}')
    assert relay is not None  # the checkpoint is gone: all is read again
    await relaying(await start_projector())
    await patient(store).until_relayed()
    events = [event for event in await all_events(store) if event.type != "job.heartbeat"]
    assert len({event.body for event in events}) == len(events)
    await assert_events_complete(store, ids, ignoring="job.heartbeat")


@quick
async def test_an_append_whose_answer_is_lost_is_neither_lost_nor_doubled(projector: Projector, store: Store) -> None:
    await relaying(projector)
    ids = await lives(store, len(ENDS))
    with losing_answers(relay_of(projector)._log._nats, appends_of(store), times=3) as lost:
        for _ in range(3):
            ids += await lives(store, len(ENDS))
            await eventually(lambda: all_relayed(store))
    assert lost
    await assert_events_complete(store, ids)


async def test_a_restart_of_nats_loses_no_event(projector: Projector, store: Store, nats_server: NatsServer) -> None:
    ids = await lives(store, 3 * len(ENDS))
    await asyncio.to_thread(nats_server.restart)
    await eventually(lambda: store.connected)

    async def settled() -> bool:
        return await all_relayed(store)

    await eventually(settled)
    await assert_events_complete(store, ids)
    assert projector.status().applied > 0


# Reset


async def test_a_reset_lets_no_event_of_before_through(projector: Projector, store: Store) -> None:
    await relaying(projector)
    fixed = [draft(queue="q") for _ in range(20)]
    for _ in range(5):
        for job in fixed:
            await store.enqueue.push(job)
        [job] = await fetch(store, "q")
        await store.jobs.change(job.id, acked)
        await store.reset(KINDS)
        assert await all_events(store) == []
        await store.enqueue.push(fixed[0])
        await patient(store).until_relayed()
        assert [event.type for event in await all_events(store)] == ["job.enqueued"]
        await store.reset(KINDS)


@projecting(ProjectorTimings(wait_s=PATIENCE_S, relay=RelayTimings(reset_s=0.1)))
async def test_a_reset_that_is_never_completed_stops_events_for_a_while_only(projector: Projector, store: Store) -> None:
    await relaying(projector)
    await relay_of(projector).clear()
    ids = await lives(store, len(ENDS))
    await eventually(lambda: all_relayed(store))
    await assert_events_complete(store, ids)


@pytest.mark.parametrize(("jobs", "batches"), [(3, False), (20, True)])
async def test_a_few_events_are_appended_without_a_batch(store: Store, jobs: int, batches: bool) -> None:
    sent: list[str] = []

    def spy(_send: Send, _subject: str, _body: bytes, headers: str, _timeout_s: float) -> None:
        sent.append(headers)

    log = EventLog(store.nats, store.config)
    events = [Outgoing(store.config.event("job.started", "q", f"id-{n}"), b"{}", 1, 1, n) for n in range(jobs)]
    with tapped(store.nats, spy):
        assert await log.append(events, 0, apart=True) == jobs
    assert any("Nats-Batch-Id" in headers for headers in sent) is batches
    with pytest.raises(Fenced):
        await log.append(events, 0, apart=True)
    assert len(await all_events(store)) == jobs

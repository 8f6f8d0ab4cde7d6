"""The judgement of a run knows a good one, and names each kind of fault that is planted into it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.domain.job import Entry, Job, Membership, State
from ojs_engine.jetstream.event_reader import StoredEvent
from reliability.judgement import RULES, judge
from reliability.ledger import Asked, Disturbance, Flow, Hold, Kind, Ledger, Verdict
from reliability.reading import Reading
from reliability.traffic import BOUND, CONCURRENCY, KEY_CONCURRENCY, RATE
from support.events import all_events_of

T = 1_000_000.0


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


class Run(Struct):
    """A run that keeps every promise, to be spoilt."""

    ledger: Ledger
    jobs: dict[str, Job]
    flows: dict[str, str | None]
    events: list[StoredEvent]
    changes: dict[str, Any]
    """Members of the reading that are not what the jobs say."""

    def add(self, job_id: str, kind: Kind, at: float = T, *, queue: str = "q", key: str | None = None, **more: Any) -> Hold:
        """One job's whole life: asked for at `at`, held from 1 to 2 seconds later."""
        self.ledger.asked[job_id] = Asked(
            job_id=job_id, kind=kind, queue=queue, sent=at, key=key, answered=at + 0.1, verdict=Verdict.DONE, **more
        )
        self.jobs[job_id] = job(job_id, kind, key, at, queue=queue)
        return self.hold(job_id, kind, at + 1, key=key)

    def hold(self, job_id: str, kind: Kind, at: float, *, attempt: int = 1, key: str | None = None) -> Hold:
        hold = Hold(
            job_id=job_id,
            attempt=attempt,
            worker="w1",
            kind=kind,
            key=key,
            asked=at - 0.01,
            got=at,
            lease_ends=at + 5,
            finish="ack",
            finish_sent=at + 1,
            verdict=Verdict.DONE,
        )
        self.ledger.holds.append(hold)
        return hold

    def tell(self) -> None:
        """Store the events of all jobs."""
        told = [event for one in self.jobs.values() for entry in one.transitions for event in all_events_of(one, entry)]
        self.events = [
            StoredEvent(number, event.type, "q", event.subject, msgspec.json.encode({"id": event.id}))
            for number, event in enumerate(told, 1)
        ]

    def reading(self) -> Reading:
        queues: dict[str, dict[str, int]] = {}
        totals: dict[str, int] = {}
        for one in self.jobs.values():
            counts = queues.setdefault(one.queue, {})
            counts[one.state] = counts.get(one.state, 0) + 1
            totals[one.state] = totals.get(one.state, 0) + 1
        stored = [msgspec.json.decode(event.body)["id"] for event in self.events]
        found = Reading(
            jobs=self.jobs,
            listed=list(self.jobs),
            queues=queues,
            totals=totals,
            events=self.events,
            heard=stored,
            flows=self.flows,
        )
        return replace(found, **self.changes)

    def rules(self) -> set[str]:
        return {wrong.rule for wrong in judge(self.ledger, self.reading())}


def job(job_id: str, kind: Kind, key: str | None, at: float, *, queue: str = "q", **more: Any) -> Job:
    """A completed job, by the ack of w1's first attempt."""
    ms = round(at * 1000)
    steps = [
        (None, State.AVAILABLE, "pushed"),
        (State.AVAILABLE, State.ACTIVE, "claimed"),
        (State.ACTIVE, State.COMPLETED, "acked"),
    ]
    entries = tuple(
        Entry(n=n, op=f"{job_id}-{n}", event=event, at=ms + n, before=before, after=after, attempt=min(n - 1, 1), worker="w1")
        for n, (before, after, event) in enumerate(steps, 1)
    )
    known = {"type": "reliability", "args": raw([kind, key]), "state": State.COMPLETED, "result": raw("w1#1")} | more
    return Job(id=job_id, queue=queue, attempt=1, created_at=ms, transitions=entries, **known)


@pytest.fixture
def run() -> Run:
    made = Run(Ledger(), {}, {}, [], {})
    made.add("plain", Kind.PLAIN)
    made.add("delayed", Kind.DELAYED, not_before=T + 0.9)
    made.add("unique-1", Kind.UNIQUE, key="u")
    made.add("unique-2", Kind.UNIQUE, T + 3, key="u")
    made.add("batch-1", Kind.BATCH, group="b")
    made.add("batch-2", Kind.BATCH, group="b")
    for number in range(BOUND):
        made.add(f"bounded-{number}", Kind.BOUNDED, queue="bounded")
    for number in range(RATE):
        made.add(f"rated-{number}", Kind.RATED, queue="rated")
    made.add("rated-later", Kind.RATED, T + 2.1, queue="rated")
    for number in range(CONCURRENCY):
        made.add(f"concurrent-{number}", Kind.CONCURRENT, queue="three-at-once")
    for number in range(KEY_CONCURRENCY):
        made.add(f"keyed-{number}", Kind.KEYED, key="k")
    for number in range(2):
        made.jobs[f"bulk-{number}"] = job(f"bulk-{number}", Kind.BULK, "bulk", T, args=raw([Kind.BULK, "bulk", number]))
        made.hold(f"bulk-{number}", Kind.BULK, T + 1, key="bulk")
    made.ledger.bulks["bulk"] = (2, Verdict.DONE)
    for step, at in (("a", T), ("b", T + 2)):
        member = Membership(id="flow", node=0, kind="chain", step=step, index=0, size=2)
        made.jobs[step] = job(step, Kind.STEP, "flow", at, type=step, workflow=member)
        made.hold(step, Kind.STEP, at + 1, key="flow")
    made.ledger.flows["flow"] = Flow(flow_id="flow", steps=("a", "b"), after=(("a", "b"),), sent=T, verdict=Verdict.DONE)
    made.flows["flow"] = "completed"
    for number in range(4):
        made.jobs[f"tick-{number}"] = tick(number)
        made.hold(f"tick-{number}", Kind.TICK, T + number + 1, key="c")
    made.ledger.crons["c"] = 1.0
    made.tell()
    return made


def tick(number: int, name: str | None = None) -> Job:
    meta = raw({"cron_name": "c", "cron_triggered_at": f"2026-11-22T00:00:{number:02d}.000Z"})
    return job(name or f"tick-{number}", Kind.TICK, "c", T + number, meta=meta)


def test_a_good_run_keeps_every_promise(run: Run) -> None:
    assert judge(run.ledger, run.reading()) == []


def gone(run: Run, job_id: str) -> None:
    """A record is missing, and whatever is derived agrees with that."""
    del run.jobs[job_id]
    run.ledger.holds = [hold for hold in run.ledger.holds if hold.job_id != job_id]
    run.tell()


def added(run: Run, made: Job) -> None:
    """A record too many, and whatever is derived agrees with that."""
    run.jobs[made.id] = made
    run.hold(made.id, Kind.PLAIN, T + 60)
    run.tell()


def part_of_an_unanswered_batch(run: Run) -> None:
    gone(run, "batch-1")
    for one in ("batch-1", "batch-2"):
        run.ledger.asked[one].verdict = Verdict.OPEN


def unfinished(run: Run) -> None:
    run.jobs["plain"] = replace(run.jobs["plain"], state=State.AVAILABLE)
    run.ledger.holds = [hold for hold in run.ledger.holds if hold.job_id != "plain"]


def refused_and_there(run: Run) -> None:
    run.ledger.asked["plain"].verdict = Verdict.REFUSED


def completed_by_a_stranger(run: Run) -> None:
    run.jobs["plain"] = replace(run.jobs["plain"], result=raw("w9#1"))


def acked_twice(run: Run) -> None:
    run.hold("plain", Kind.PLAIN, T + 30, attempt=2)


def ack_undone(run: Run) -> None:
    run.jobs["plain"] = replace(run.jobs["plain"], state=State.AVAILABLE)


def refused_ack_counted(run: Run) -> None:
    held(run, "plain").verdict = Verdict.REFUSED


def held(run: Run, job_id: str) -> Hold:
    return next(hold for hold in run.ledger.holds if hold.job_id == job_id)


def second_holder(run: Run) -> None:
    first = held(run, "plain")
    first.finish = None
    run.jobs["plain"] = replace(run.jobs["plain"], result=raw("w1#2"))
    run.hold("plain", Kind.PLAIN, first.lease_ends - 1, attempt=2)


def same_attempt_twice(run: Run) -> None:
    held(run, "plain").finish = None
    run.hold("plain", Kind.PLAIN, T + 30)


def before_its_delay(run: Run) -> None:
    run.ledger.asked["delayed"].not_before = T + 1.5


def before_its_back_off(run: Run) -> None:
    first = held(run, "plain")
    first.finish, first.retry_s = "nack", 0.3
    run.jobs["plain"] = replace(run.jobs["plain"], result=raw("w1#2"))
    run.hold("plain", Kind.PLAIN, first.finish_sent + 0.1, attempt=2)


def step_before_its_turn(run: Run) -> None:
    held(run, "a").finish_sent = T + 4


def one_more_at_once(kind: Kind, queue: str, key: str | None = None) -> Callable[[Run], None]:
    def plant(run: Run) -> None:
        run.add("more", kind, queue=queue, key=key)
        run.tell()

    return plant


def two_of_a_key(run: Run) -> None:
    held(run, "unique-1").finish_sent = T + 3.5


def missing_tick(run: Run) -> None:
    gone(run, "tick-2")


def changed(**changes: object) -> Callable[[Run], None]:
    return lambda run: run.changes.update(changes)


def list_without_one(run: Run) -> None:
    run.changes["listed"] = [name for name in run.jobs if name != "plain"]


def list_with_one_twice(run: Run) -> None:
    run.changes["listed"] = [*run.jobs, "plain"]


def event_missing(run: Run) -> None:
    del run.events[1]


def events_out_of_order(run: Run) -> None:
    run.events[0], run.events[1] = run.events[1], run.events[0]


def event_of_nothing(run: Run) -> None:
    run.events.append(StoredEvent(9_999, "job.completed", "q", "plain", b'{"id":"evt_more"}'))


PLANTS: dict[str, tuple[set[str], Callable[[Run], object]]] = {
    "a job is lost": ({"lost"}, lambda run: gone(run, "plain")),
    "a batch is lost in part": ({"lost", "torn"}, lambda run: gone(run, "batch-1")),
    "an unanswered batch is there in part": (
        {"torn"},
        part_of_an_unanswered_batch,
    ),
    "a job of a bulk push is lost": ({"lost"}, lambda run: gone(run, "bulk-1")),
    "a job of a bulk push is doubled": (
        {"doubled"},
        lambda run: added(run, replace(run.jobs["bulk-1"], id="bulk-again")),
    ),
    "a step is lost": ({"lost"}, lambda run: gone(run, "b")),
    "a step is doubled": ({"doubled"}, lambda run: added(run, replace(run.jobs["b"], id="b-again"))),
    "a tick is doubled": ({"doubled"}, lambda run: added(run, tick(2, "tick-again"))),
    "a tick is missing": ({"ticks"}, missing_tick),
    "a job that nobody asked for": ({"doubled"}, lambda run: added(run, job("stranger", Kind.PLAIN, None, T))),
    "a refused job is there": ({"doubled"}, refused_and_there),
    "a job is stuck": ({"stuck"}, unfinished),
    "a workflow is stuck": ({"stuck"}, lambda run: run.flows.update(flow="running")),
    "a workflow isn't there": ({"stuck"}, lambda run: run.flows.update(flow=None)),
    "a job is completed by a stranger": ({"finished-once"}, completed_by_a_stranger),
    "a job is acked twice": ({"finished-once"}, acked_twice),
    "an ack is undone": ({"finished-once", "stuck"}, ack_undone),
    "a refused ack counts": ({"finished-once"}, refused_ack_counted),
    "two hold a job": ({"overlap"}, second_holder),
    "an attempt goes out twice": ({"overlap"}, same_attempt_twice),
    "a delayed job is early": ({"early"}, before_its_delay),
    "a retry is early": ({"early"}, before_its_back_off),
    "a step is early": ({"early"}, step_before_its_turn),
    "a uniqueness key lives twice": ({"unique"}, two_of_a_key),
    "a queue's limit is exceeded": ({"concurrency"}, one_more_at_once(Kind.CONCURRENT, "three-at-once")),
    "a key's limit is exceeded": ({"concurrency"}, one_more_at_once(Kind.KEYED, "q", "k")),
    "a rate is exceeded": ({"rate"}, one_more_at_once(Kind.RATED, "rated")),
    "a bound is exceeded": ({"bound"}, one_more_at_once(Kind.BOUNDED, "bounded")),
    "a job isn't listed": ({"lists"}, list_without_one),
    "a job is listed twice": ({"lists"}, list_with_one_twice),
    "a queue's counts are wrong": ({"lists"}, changed(queues={"q": {"completed": 1}})),
    "the totals are wrong": ({"lists"}, changed(totals={"completed": 1})),
    "an event is missing": ({"events"}, event_missing),
    "events are out of order": ({"events"}, events_out_of_order),
    "an event of nothing": ({"events"}, event_of_nothing),
    "a reader isn't sent an event": ({"events"}, changed(heard=["evt_other"])),
    "an answer is 500": ({"errors"}, lambda run: run.ledger.failures.append("push: 500")),
    "a log has a traceback": ({"errors"}, changed(tracebacks=["Traceback"])),
    "a process ended by itself": ({"errors"}, changed(processes=["gateway-1"])),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_fault_is_found_and_named(run: Run, plant: str) -> None:
    expected, spoil = PLANTS[plant]
    spoil(run)
    assert run.rules() == expected, [str(wrong) for wrong in judge(run.ledger, run.reading())]


def test_every_rule_has_a_planted_fault() -> None:
    assert {rule for rules, _ in PLANTS.values() for rule in rules} == set(RULES)


def test_a_tick_may_be_missing_where_a_fault_was(run: Run) -> None:
    missing_tick(run)
    begin = datetime(2026, 11, 22, 0, 0, 1, tzinfo=UTC).timestamp()
    run.ledger.disturbances.append(Disturbance("SIGKILL scheduler-1", begin, begin + 1))
    assert run.rules() == set()


def test_a_job_whose_answers_were_lost_may_be_there_or_not(run: Run) -> None:
    run.ledger.asked["plain"].verdict = Verdict.OPEN
    assert run.rules() == set()
    gone(run, "plain")
    assert run.rules() == set()


def test_an_ack_whose_answer_was_lost_may_count(run: Run) -> None:
    held(run, "plain").verdict = Verdict.OPEN
    assert run.rules() == set()

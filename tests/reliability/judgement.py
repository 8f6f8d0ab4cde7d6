"""What was promised and not kept, by the ledger and by what the system shows at the end.

Each rule stands alone and says nothing of what another one tells. A rule speaks only of what is proven: an interval in which a
client surely held a job is shorter than the one in which it may have, and only the former counts.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.event_reader import StoredEvent
from reliability.ledger import Disturbance, Flow, Hold, Kind, Ledger, Verdict
from reliability.reading import Reading
from reliability.traffic import BOUND, CONCURRENCY, KEY_CONCURRENCY, RATE, RATE_S, result_of
from support.events import all_events_of
from support.truth import counts_of

_SLACK_S: Final = 0.02
"""The clocks of this process and of nats-server are the machine's; what remains is rounding to milliseconds."""
_LATE_TICK_S: Final = 30.0
"""A tick that falls into a fault, or into the time after it, may be left out (docs/cron.md)."""


class Wrong(NamedTuple):
    """A broken promise."""

    rule: str
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.what}"


Told = Iterator[tuple[str, str]]
Rule = Callable[[Ledger, Reading], Told]


def judge(ledger: Ledger, reading: Reading) -> list[Wrong]:
    """Everything that is wrong."""
    return [Wrong(name, subject, what) for name, rule in RULES.items() for subject, what in rule(ledger, reading)]


# Every job there once


def lost(ledger: Ledger, reading: Reading) -> Told:
    """An acknowledged push, or a workflow's step, isn't there."""
    for asked in ledger.asked.values():
        if asked.verdict is Verdict.DONE and asked.job_id not in reading.jobs:
            yield asked.job_id, f"{asked.kind}, acknowledged at {asked.answered:.3f}, isn't there"
    there = Counter(_args(job)[1] for job in reading.jobs.values() if _args(job)[0] == Kind.BULK)
    for key, (size, verdict) in ledger.bulks.items():
        if verdict is Verdict.DONE and there[key] < size:
            yield key, f"{there[key]} of {size} jobs of an acknowledged bulk push are there"
    members = _members(reading)
    for flow in ledger.flows.values():
        if flow.verdict is Verdict.DONE:
            for step in flow.steps:
                if not members[flow.flow_id][step]:
                    yield flow.flow_id, f"step {step} of an acknowledged workflow isn't there"
    for hold in ledger.holds:
        if hold.job_id not in reading.jobs:
            yield hold.job_id, f"{hold.worker} had it at {hold.got:.3f}, and it isn't there"


def doubled(ledger: Ledger, reading: Reading) -> Told:
    """A job that nobody asked for, or twice what was asked for once."""
    for job in reading.jobs.values():
        kind, key = _args(job)[:2]
        known = job.id in ledger.asked or kind in {Kind.BULK, Kind.TICK} or (kind == Kind.STEP and key in ledger.flows)
        if not known:
            yield job.id, "nobody asked for it"
        asked = ledger.asked.get(job.id)
        if asked is not None and asked.verdict is Verdict.REFUSED:
            yield job.id, f"{asked.kind}, refused at {asked.answered:.3f}, is there"
    places = Counter(bytes(job.args) for job in reading.jobs.values() if _args(job)[0] == Kind.BULK)
    for place, number in places.items():
        if number > 1:
            yield place.decode(), f"a job of a bulk push is there {number} times"
    for flow_id, steps in _members(reading).items():
        for step, number in steps.items():
            if number > 1:
                yield flow_id, f"step {step} is there {number} times"
    ticks = Counter(_tick(job) for job in reading.jobs.values() if _args(job)[0] == Kind.TICK)
    for (name, at), number in ticks.items():
        if number > 1:
            yield name, f"the tick of {at} is there {number} times"


def torn(ledger: Ledger, reading: Reading) -> Told:
    """A batch is there in part."""
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for asked in ledger.asked.values():
        if asked.group is not None:
            groups[asked.group].append(asked.job_id in reading.jobs)
    for group, there in groups.items():
        if any(there) and not all(there):
            yield group, f"{sum(there)} of {len(there)} jobs are there"


def stuck(ledger: Ledger, reading: Reading) -> Told:
    """Not completed, though workers waited for it."""
    for job in reading.jobs.values():
        if job.state is not State.COMPLETED:
            yield job.id, f"{_args(job)[0]} stays {job.state}, queue {job.queue}, attempt {job.attempt}"
    for flow in ledger.flows.values():
        state = reading.flows.get(flow.flow_id)
        if flow.verdict is Verdict.DONE and state != "completed":
            yield flow.flow_id, f"the workflow is {state or 'not there'}"


def finished_once(ledger: Ledger, reading: Reading) -> Told:
    """A job isn't completed by exactly one ack that was accepted."""
    for job_id, holds in _by_job(ledger).items():
        acks = [hold for hold in holds if hold.finish == "ack"]
        done = [hold for hold in acks if hold.verdict is Verdict.DONE]
        job = reading.jobs.get(job_id)
        if len(done) > 1:
            yield job_id, f"acks of {_names(done)} were accepted"
        if job is None or job.state is not State.COMPLETED:
            if done:
                yield job_id, f"the ack of {_names(done)} was accepted, and it is {job.state if job else 'not there'}"
            continue
        result = msgspec.json.decode(job.result) if job.result else None
        if done and result != result_of(done[0]):
            yield job_id, f"the ack of {_names(done)} was accepted, and its result is {result}"
        if result not in {result_of(hold) for hold in acks if hold.verdict is not Verdict.REFUSED}:
            yield job_id, f"it is completed by {result}, whose ack was refused, or never sent"


# Holding


def overlap(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001 - what was seen is enough
    """Two workers hold a job at once, or the same attempt goes out twice."""
    for job_id, holds in _by_job(ledger).items():
        for first, second in pairwise(sorted(holds, key=lambda hold: hold.got)):
            if first.attempt == second.attempt:
                yield job_id, f"attempt {first.attempt} went to {first.worker} and to {second.worker}"
            elif first.attempt > second.attempt and first.got < second.asked:
                yield job_id, f"attempt {second.attempt} went out after {first.attempt}"
            elif first.held_until - second.got > _SLACK_S:
                left = first.held_until - second.got
                yield job_id, f"{second.worker} got it {left:.3f} s before {first.worker}'s time was over"


def early(ledger: Ledger, reading: Reading) -> Told:
    """A job is handed out before its time."""
    for job_id, holds in _by_job(ledger).items():
        asked = ledger.asked.get(job_id)
        first = min(hold.got for hold in holds)
        if asked is not None and first < asked.not_before - _SLACK_S:
            yield job_id, f"handed out {asked.not_before - first:.3f} s before its delay was over"
        for one in holds:
            rest = one.finish_sent + one.retry_s if one.finish == "nack" and one.verdict is Verdict.DONE else 0.0
            after = [hold.got for hold in holds if hold.attempt == one.attempt + 1]
            if after and after[0] < rest - _SLACK_S:
                yield job_id, f"handed out {rest - after[0]:.3f} s before its back-off was over"
    moments = {(flow.flow_id, step): at for flow, step, at in _steps(ledger, reading, first=True)}
    ends = {(flow.flow_id, step): at for flow, step, at in _steps(ledger, reading, first=False)}
    for flow in ledger.flows.values():
        for before, after_it in flow.after:
            began, ended = moments.get((flow.flow_id, after_it)), ends.get((flow.flow_id, before))
            if began is not None and ended is not None and began < ended - _SLACK_S:
                yield flow.flow_id, f"step {after_it} began {ended - began:.3f} s before step {before} was acknowledged"


# Limits


def unique(ledger: Ledger, reading: Reading) -> Told:
    """Two jobs of one uniqueness key live at the same time."""
    lives: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    ends = _ends(ledger)
    for asked in ledger.asked.values():
        if asked.kind is Kind.UNIQUE and asked.verdict is Verdict.DONE:
            job = reading.jobs.get(asked.job_id)
            end = ends.get(asked.job_id, asked.answered) if job is None or job.terminal else float("inf")
            lives[str(asked.key)].append((asked.answered, end, asked.job_id))
    for key, spans in lives.items():
        for (_, end, one), (begin, _, other) in pairwise(sorted(span for span in spans if span[1] > span[0])):
            if begin < end - _SLACK_S:
                yield key, f"{one} and {other} live at the same time for {end - begin:.3f} s"


def concurrency(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001
    """More jobs of a limited queue, or key, are held at once than the limit says."""
    for name, limit, holds in (
        ("three-at-once", CONCURRENCY, [hold for hold in ledger.holds if hold.kind is Kind.CONCURRENT]),
        *(
            (key, KEY_CONCURRENCY, [hold for hold in ledger.holds if hold.key == key])
            for key in sorted({str(hold.key) for hold in ledger.holds if hold.kind is Kind.KEYED})
        ),
    ):
        most, at = _most((hold.got, hold.held_until - _SLACK_S) for hold in holds)
        if most > limit:
            yield name, f"{most} held at once at {at:.3f}, {limit} allowed"


def rate(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001
    """More starts within a period than the limit says; a start lies between the fetch and its answer."""
    starts = sorted((hold.asked, hold.got) for hold in ledger.holds if hold.kind is Kind.RATED)
    for index, (asked, _) in enumerate(starts):
        within = sum(1 for _, got in starts[index:] if got < asked + RATE_S - _SLACK_S)
        if within > RATE:
            yield "rated", f"{within} starts within {RATE_S:g} s from {asked:.3f}, {RATE} allowed"
            return


def bound(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001
    """More jobs wait in a bounded queue than fit."""
    firsts = {job_id: min(hold.asked for hold in holds) for job_id, holds in _by_job(ledger).items()}
    waiting = [
        (asked.answered, firsts[asked.job_id])
        for asked in ledger.asked.values()
        if asked.kind is Kind.BOUNDED and asked.verdict is Verdict.DONE and asked.job_id in firsts
    ]
    most, at = _most(waiting)
    if most > BOUND:
        yield "bounded", f"{most} waited at {at:.3f}, {BOUND} fit"


def ticks(ledger: Ledger, reading: Reading) -> Told:
    """A tick of a cron entry is missing, and no fault was near."""
    for name, every_s in ledger.crons.items():
        found = sorted({at for tick, at in map(_tick, _ticks(reading)) if tick == name})
        if not found:
            yield name, "no tick at all"
        for before, after in pairwise(found):
            if after - before > every_s * 1.5 and not _disturbed(ledger.disturbances, before, after):
                yield name, f"no tick between {before:.3f} and {after:.3f}"


# What is derived


def lists(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001
    """The list of jobs, the counts of queues and the totals don't say what the records say."""
    numbers = Counter(reading.listed)
    for job_id in reading.jobs.keys() ^ numbers.keys():
        yield job_id, "in the list alone" if job_id in numbers else "not in the list"
    for job_id, number in numbers.items():
        if number > 1:
            yield job_id, f"in the list {number} times"
    counted = counts_of(reading.jobs.values())
    for queue in counted.keys() | reading.queues.keys():
        wanted = {str(state): number for state, number in counted.get(queue, {}).items() if number}
        shown = dict(reading.queues.get(queue, {}))
        if shown != wanted:
            yield f"queue {queue}", f"shows {shown}, and has {wanted}"
    totals = Counter(str(job.state) for job in reading.jobs.values())
    if dict(reading.totals) != dict(totals):
        yield "totals", f"show {dict(reading.totals)}, and there are {dict(totals)}"


def events(ledger: Ledger, reading: Reading) -> Told:  # noqa: ARG001
    """An event of a job is missing, out of order, or one too many; or a reader of the stream wasn't sent what is stored."""
    places: dict[str, int] = {}
    for place, event in enumerate(reading.events):
        places.setdefault(_event_id(event), place)
    expected: set[str] = set()
    for job in reading.jobs.values():
        due = {event.id: event.type for entry in job.transitions for event in all_events_of(job, entry)}
        expected |= due.keys()
        if untold := [due[one] for one in due if one not in places]:
            yield job.id, f"{', '.join(untold)} missing of {', '.join(due.values())}"
        elif (told := sorted(due, key=places.__getitem__)) != list(due):
            yield job.id, f"{', '.join(due[one] for one in told)} instead of {', '.join(due.values())}"
    for event in reading.events:
        if event.type.startswith("job.") and _event_id(event) not in expected:
            yield event.subject_id, f"{event.type} of nothing that has happened"
    stored = _once(map(_event_id, reading.events))
    heard = _once(reading.heard)
    if stored != heard:
        missing, more = set(stored) - set(heard), set(heard) - set(stored)
        order = "" if missing or more else "the order is another"
        yield "the event stream", f"{len(missing)} events were not sent, {len(more)} are not stored {order}"


def errors(ledger: Ledger, reading: Reading) -> Told:
    """The server didn't know what went wrong, or a process ended by itself."""
    for what in ledger.failures:
        yield "an answer", what
    for line in reading.tracebacks:
        yield "a log", line[:500]
    for name in reading.processes:
        yield name, "ended by itself"


RULES: Final[dict[str, Rule]] = {
    "lost": lost,
    "doubled": doubled,
    "torn": torn,
    "stuck": stuck,
    "finished-once": finished_once,
    "overlap": overlap,
    "early": early,
    "unique": unique,
    "concurrency": concurrency,
    "rate": rate,
    "bound": bound,
    "ticks": ticks,
    "lists": lists,
    "events": events,
    "errors": errors,
}


def _by_job(ledger: Ledger) -> dict[str, list[Hold]]:
    found: defaultdict[str, list[Hold]] = defaultdict(list)
    for hold in ledger.holds:
        found[hold.job_id].append(hold)
    return found


def _ends(ledger: Ledger) -> dict[str, float]:
    """Before when a job can't have come to its end: when the first ack that may have counted was sent."""
    found: dict[str, float] = {}
    for hold in ledger.holds:
        if hold.finish == "ack" and hold.verdict is not Verdict.REFUSED:
            found[hold.job_id] = min(found.get(hold.job_id, hold.finish_sent), hold.finish_sent)
    return found


def _steps(ledger: Ledger, reading: Reading, *, first: bool) -> Iterator[tuple[Flow, str, float]]:
    """When each step was first handed out, or, not before when it ended."""
    ends = _ends(ledger)
    for job_id, holds in _by_job(ledger).items():
        job = reading.jobs.get(job_id)
        if job is not None and holds[0].kind is Kind.STEP and (flow := ledger.flows.get(str(holds[0].key))) is not None:
            if first:
                yield flow, job.type, min(hold.got for hold in holds)
            elif job_id in ends:
                yield flow, job.type, ends[job_id]


def _most(spans: Iterable[tuple[float, float]]) -> tuple[int, float]:
    """How many spans share a moment, at the most, and when."""
    edges = itertools.chain.from_iterable(((begin, 1), (end, -1)) for begin, end in spans if end > begin)
    most, at, now = 0, 0.0, 0
    for moment, step in sorted(edges):
        now += step
        if now > most:
            most, at = now, moment
    return most, at


def _members(reading: Reading) -> defaultdict[str, Counter[str]]:
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for job in reading.jobs.values():
        if job.workflow is not None:
            found[job.workflow.id][job.type] += 1
    return found


def _ticks(reading: Reading) -> list[Job]:
    return [job for job in reading.jobs.values() if _args(job)[0] == Kind.TICK]


def _tick(job: Job) -> tuple[str, float]:
    """The entry of a tick and its time."""
    meta = msgspec.json.decode(job.meta)
    return meta["cron_name"], datetime.fromisoformat(meta["cron_triggered_at"]).timestamp()


def _disturbed(faults: Sequence[Disturbance], begin: float, end: float) -> bool:
    return any(fault.began <= end and begin <= fault.ended + _LATE_TICK_S for fault in faults)


def _args(job: Job) -> list[Any]:
    found: list[Any] = msgspec.json.decode(job.args)
    return found


def _event_id(event: StoredEvent) -> str:
    return str(msgspec.json.decode(event.body)["id"])


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _names(holds: Sequence[Hold]) -> str:
    return ", ".join(result_of(hold) for hold in holds)

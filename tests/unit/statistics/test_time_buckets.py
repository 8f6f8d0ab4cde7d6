"""Each transition counts once: through any coalescing, rebuilds at any point, and whoever keeps the minutes."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from itertools import count
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import Failure, Moment, Transition
from ojs_engine.jetstream.feed import Record
from ojs_features.statistics.activity import COUNTED, Activity
from ojs_features.statistics.plug import STATISTICS
from ojs_features.statistics.recent import windows
from ojs_features.statistics.records import HOUR_MS, MINUTE_MS, Span, parts_of
from ojs_features.statistics.series import HistoryAsk, history
from ojs_features.statistics.time_buckets import buckets_of
from ojs_index.asking.counting import WINDOWS
from ojs_index.asking.numbers import Point
from ojs_index.reading import lists
from ojs_index.reading.waiting import oldest_available
from ojs_index.sqlite.model import Model, Seen
from support.examples import costly
from unit.domain.transitions.samples import ANYONE, T0, draft
from unit.index.samples import STREAM, epoch, fresh, gone, job, seen

START = T0 - T0 % HOUR_MS
GRACE_MS = 30_000

_names = count()


class Bucket:
    """A stream that keeps the last message of each subject, and what was truly done."""

    def __init__(self) -> None:
        self.now = START
        self.sequence = 0
        self.messages: dict[str, Seen] = {}
        self.done: Counter[tuple[str, int, str]] = Counter()
        """By queue, start of the minute, and what."""
        self._ops = 0

    def moment(self) -> Moment:
        self._ops += 1
        return Moment(self.now, f"op{self._ops}")

    def store(self, found: Job, ttl_s: int | None = None) -> None:
        self._add(f"job.{found.id}", "job", found.id, msgspec.json.encode(found), found, ttl_s)

    def keep(self, start: int, length: int, queues: dict[str, Activity], by: str = "") -> None:
        for span in parts_of(start, length, queues, by=by, limit=200):
            name = f"{'minute' if length == MINUTE_MS else 'hour'}.{start // 1_000}.{span.part}"
            if name not in self.messages:
                self._add(name, "stats", name, msgspec.json.encode(span), None, None)

    def leave(self, job_id: str) -> None:
        """A record's TTL is over; nobody sees it any more."""
        self.messages.pop(f"job.{job_id}", None)

    def _add(self, subject: str, kind: str, name: str, data: bytes, found: Job | None, ttl_s: int | None) -> None:
        self.sequence += 1
        record = Record(kind, self.sequence, self.now, name, data, ttl_s)
        held = msgspec.json.decode(data, type=Span) if kind == "stats" else None
        self.messages[subject] = Seen(record, found, held)

    def count(self, queue: str, *what: str) -> None:
        for name in what:
            self.done[queue, self.now - self.now % MINUTE_MS, name] += 1

    def after(self, sequence: int) -> list[Seen]:
        there = [found for found in self.messages.values() if found.record.sequence > sequence]
        return sorted(there, key=lambda found: found.record.sequence)


class Replica:
    def __init__(self, bucket: Bucket, path: Path | None = None) -> None:
        self._bucket = bucket
        self.model = Model(path, followed=STATISTICS.followed)
        self.model.attach(STREAM, bucket.sequence)
        spans = [found.record for found in bucket.after(0) if found.record.kind == "stats"]
        self.name = f"replica-{next(_names)}"
        self.model.counter.begin(bucket.now, spans[-1] if spans else None, self.name)

    def read(self, number: int = 1_000) -> None:
        found = self._bucket.after(self.model.applied)
        self.model.apply(found[:number])
        if len(found) <= number:
            self.model.counter.caught_up(self.model.applied)
            self.model.reached_end()

    def keep(self) -> None:
        """What the keeper does, with a bucket that answers at once."""
        self.read()
        spans = buckets_of(self.model)
        for start in spans.open_minutes(self._bucket.now - GRACE_MS):
            spans.close(start + MINUTE_MS)
            self._bucket.keep(start, MINUTE_MS, spans.minute(start), self.name)
        self.read()
        for start in spans.open_hours(self._bucket.now - GRACE_MS):
            assert spans.settled(start, start + HOUR_MS)
            queues = {name: spans.within(name, start, start + HOUR_MS) for name in spans.queues_within(start, start + HOUR_MS)}
            self._bucket.keep(start, HOUR_MS, queues, self.name)
        self.read()

    def counted(self, step: int = MINUTE_MS) -> dict[tuple[str, int, str], int]:
        found: dict[tuple[str, int, str], int] = {}
        until = self._bucket.now + MINUTE_MS
        for queue in ("a", "b"):
            series = history(self.model, HistoryAsk(queue=queue, step_ms=step, since=START, until=until))
            for point in series.points:
                found |= {(queue, point.at, name): n for name in COUNTED if (n := getattr(point, name))}
        return found


def windows_of(model: Model, queue: str | None, now: int) -> dict[str, Point]:
    return windows(model.db, queue, now, tuple(WINDOWS))


def by_hour(done: Counter[tuple[str, int, str]]) -> Counter[tuple[str, int, str]]:
    found: Counter[tuple[str, int, str]] = Counter()
    for (queue, at, name), number in done.items():
        found[queue, at - at % HOUR_MS, name] += number
    return found


class World:
    """Jobs that live in a bucket, and two projectors."""

    def __init__(self) -> None:
        self.bucket = Bucket()
        self.first, self.second = Replica(self.bucket), Replica(self.bucket)
        self.jobs: dict[str, Job] = {}

    def push(self, job_id: str, queue: str) -> None:
        known = self.jobs.get(job_id)
        if known is not None and not known.deleted:
            return
        new = draft(id=job_id, queue=queue, transitions=transitions.leading_to(queue, known) if known is not None else ())
        self._step(transitions.push(new, self.bucket.moment()), "pushed")

    def act(self, job_id: str, what: str) -> None:
        known = self.jobs.get(job_id)
        if known is None or known.deleted:
            return
        moment = self.bucket.moment()
        match known.state, what:
            case State.AVAILABLE, "on":
                self._step(transitions.claim(known, "w", None, moment), "started")
            case State.ACTIVE, "on":
                self._step(transitions.ack(known, known.args, ANYONE, moment), "completed")
            case State.ACTIVE, "fail":
                failed = transitions.nack(known, Failure(message="no"), ANYONE, moment)
                self._step(failed, "failed", "discarded" if failed.job.terminal else "retried")
            case State.RETRYABLE, "on":
                self._step(transitions.retry_now(known, moment))
            case ((State.AVAILABLE | State.ACTIVE | State.RETRYABLE), "cancel"):
                self._step(transitions.cancel(known, moment), "cancelled")
            case ((State.COMPLETED | State.CANCELLED | State.DISCARDED), "remove"):
                self._step(transitions.remove(known, moment))
            case _:
                pass

    def leave(self, job_id: str) -> None:
        """The record's TTL is over, which takes an hour at least."""
        known = self.jobs.get(job_id)
        if known is not None and (known.terminal or known.deleted):
            self.wait(3_601)
            del self.jobs[job_id]
            self.bucket.leave(job_id)

    def wait(self, seconds: int) -> None:
        """Somebody looks after the minutes meanwhile."""
        self.first.keep()
        self.bucket.now += seconds * 1_000
        self.first.keep()

    def _step(self, transition: Transition, *what: str) -> None:
        self.jobs[transition.job.id] = transition.job
        self.bucket.store(transition.job, transition.ttl_s)
        self.bucket.count(transition.job.queue, *what)


IDS = st.sampled_from([f"job-{number}" for number in range(4)])
STEPS = st.one_of(
    st.tuples(st.just("push"), IDS, st.sampled_from(["a", "b"])),
    st.tuples(st.just("act"), IDS, st.sampled_from(["on", "on", "fail", "cancel", "remove"])),
    st.tuples(st.just("leave"), IDS),
    st.tuples(st.just("wait"), st.sampled_from([1, 20, 61, 95, 1_800])),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("swap")),
    st.tuples(st.just("rebuild")),
)


@costly
@given(st.lists(STEPS, max_size=60))
def test_every_transition_counts_once_in_its_minute(steps: list[tuple[str, ...]]) -> None:
    world = World()
    for step in steps:
        match step:
            case "push", job_id, queue:
                world.push(job_id, queue)
            case "act", job_id, what:
                world.act(job_id, what)
            case "leave", job_id:
                world.leave(job_id)
            case "wait", seconds:
                world.wait(int(seconds))
            case "read", number:
                world.second.read(int(number))
            case ("swap",):
                world.second.read()
                world.first, world.second = world.second, world.first
            case _:
                world.first = Replica(world.bucket)
    for replica in (world.first, world.second, Replica(world.bucket)):
        replica.read()
        assert replica.counted() == world.bucket.done
        assert replica.counted(HOUR_MS) == by_hour(world.bucket.done)


def lived(world: World, number: int, queue: str = "a") -> None:
    for n in range(number):
        name = f"{queue}-{len(world.jobs)}-{n}"
        world.push(name, queue)
        world.bucket.now += 10
        world.act(name, "on")
        world.bucket.now += 40
        world.act(name, "on")


def test_what_is_stored_after_its_minute_was_kept_counts_where_it_was_stored() -> None:
    world = World()
    lived(world, 2)
    stalled = transitions.push(draft(id="stalled", queue="a"), world.bucket.moment())
    world.second.read()
    world.wait(120)
    world.second.read()
    world._step(stalled, "pushed")
    for replica in (world.first, world.second):
        replica.read()
        assert replica.counted() == world.bucket.done


def test_who_keeps_a_minute_knows_what_came_too_late_for_it() -> None:
    world = World()
    lived(world, 2)
    stalled = transitions.push(draft(id="stalled", queue="a"), world.bucket.moment())
    world.first.read()
    world.bucket.now += 120_000
    spans = buckets_of(world.first.model)
    spans.close(START + MINUTE_MS)
    world.bucket.keep(START, MINUTE_MS, spans.minute(START), world.first.name)
    world._step(stalled, "pushed")
    world.first.read()  # its own record, and what comes right behind it
    assert world.first.counted() == world.bucket.done


def test_a_projector_that_was_away_takes_over_what_was_kept_meanwhile() -> None:
    world = World()
    lived(world, 3)
    world.second.read()
    world.wait(90)
    lived(world, 4)
    world.wait(4_000)
    lived(world, 1, "b")
    assert world.second.counted() != world.bucket.done
    world.second.read(2)
    world.second.read()
    assert world.second.counted() == world.bucket.done


def test_an_id_that_is_used_again_does_not_count_its_former_life_again() -> None:
    world = World()
    for _ in range(3):
        world.push("again", "a")
        world.act("again", "on")
        world.first.read()
        world.act("again", "on")
        world.act("again", "remove")
        world.first.read()
    world.first.model.applied = 0  # a relay that begins has some of it read once more
    for replica in (world.first, Replica(world.bucket)):
        replica.read()
        assert replica.counted() == world.bucket.done


def test_what_a_record_says_replaces_what_was_counted() -> None:
    world = World()
    lived(world, 1)
    world.first.read()
    world.bucket.keep(START, MINUTE_MS, {"b": Activity(pushed=7)})
    world.first.read()
    assert world.first.counted() == {("b", START, "pushed"): 7}
    assert windows_of(world.first.model, None, world.bucket.now)["5m"].pushed == 7


def test_minutes_go_with_their_day_and_hours_after_a_month() -> None:
    world = World()
    lived(world, 3)
    world.wait(2 * HOUR_MS // 1_000)
    model = world.first.model

    def kept() -> dict[int, int]:
        return dict(model.db.execute("SELECT length, count(*) FROM spans GROUP BY length"))

    assert kept() == {MINUTE_MS: 2, HOUR_MS: 2}
    model.forget(START + 26 * HOUR_MS)
    assert kept() == {HOUR_MS: 2}
    assert world.first.counted(HOUR_MS) == by_hour(world.bucket.done)
    model.forget(START + 32 * 24 * HOUR_MS)
    assert kept() == {}


def test_minutes_stay_until_their_hour_is_kept() -> None:
    world = World()
    lived(world, 3)
    world.first.read()
    world.first.model.forget(START + 26 * HOUR_MS)
    world.bucket.now += 26 * HOUR_MS
    assert world.first.counted(HOUR_MS) == by_hour(world.bucket.done)


def test_a_reset_begins_anew() -> None:
    world = World()
    lived(world, 3)
    world.first.read()
    model = world.first.model
    sequence = world.bucket.sequence + 1
    model.apply([epoch(sequence)])
    assert windows_of(model, None, world.bucket.now)["1d"].pushed == 0
    world.bucket.sequence = sequence
    lived(world, 1, "b")
    world.first.read()
    model.apply([epoch(sequence)])  # a relay that begins reads it once more
    assert windows_of(model, "b", world.bucket.now)["5m"].completed == 1


def test_a_record_that_is_none_is_passed_over() -> None:
    world = World()
    lived(world, 1)
    world.first.read()
    before = world.first.counted()
    name = f"minute.{START // 1_000}.0"
    world.first.model.apply([Seen(Record("stats", 99, START, name, b'{"start": "x"}', None), None)])
    world.first.model.apply([Seen(Record("stats", 100, START, name, b"", None), None)])
    assert world.first.counted() == before


def test_a_transaction_that_fails_leaves_no_counts() -> None:
    world = World()
    lived(world, 1)
    model = world.first.model
    model.db.execute("ALTER TABLE counts RENAME TO hidden")
    with pytest.raises(sqlite3.OperationalError, match="counts"):
        world.first.read()
    model.db.execute("ALTER TABLE hidden RENAME TO counts")
    world.first.read()
    assert world.first.counted() == world.bucket.done


# Reading


def test_windows_and_points_tell_times() -> None:
    world = World()
    lived(world, 100)
    world.first.read()
    found = windows_of(world.first.model, "a", world.bucket.now)
    assert set(found) == {"5m", "1h", "1d"}
    point = found["5m"]
    assert (point.pushed, point.started, point.completed) == (100, 100, 100)
    assert (point.avg_wait_ms, point.avg_run_ms) == (10.0, 40.0)
    assert point.wait is not None
    assert point.run is not None
    assert (point.wait.p50, point.wait.max) == (10.0, 10.0)
    assert abs(point.run.p99 - 40) <= 2
    assert found["1d"].run == point.run
    assert windows_of(world.first.model, None, world.bucket.now)["1h"].completed == 100
    later = windows_of(world.first.model, "a", world.bucket.now + 2 * HOUR_MS)
    assert (later["1h"].completed, later["1d"].completed, later["5m"].wait) == (0, 100, None)


def in_windows(world: World, queue: str | None) -> dict[str, dict[str, int]]:
    """Sum up what was truly done in each window: the present minute, and those before it."""
    until = world.bucket.now - world.bucket.now % MINUTE_MS + MINUTE_MS
    found: dict[str, dict[str, int]] = {}
    for name, length in WINDOWS.items():
        total: Counter[str] = Counter()
        for (of, at, what), number in world.bucket.done.items():
            if queue in {of, None} and until - length <= at < until:
                total[what] += number
        found[name] = dict(total)
    return found


def shown_in_windows(replica: Replica, queue: str | None, now: int) -> dict[str, dict[str, int]]:
    found = windows_of(replica.model, queue, now)
    return {name: {what: n for what in COUNTED if (n := getattr(point, what))} for name, point in found.items()}


def test_windows_hold_what_was_done_in_them_at_every_minute() -> None:
    """Compare the minutes after a day with gaps of minutes and of hours, while hours are closed."""
    world = World()
    chance = random.Random(7)
    quiet = {3, 4, 9, 23}
    for minute in range(25 * 60 + 90):
        world.bucket.now = START + minute * MINUTE_MS
        if minute // 60 not in quiet and chance.random() < 0.4:
            lived(world, chance.randint(1, 3), chance.choice("ab"))
        if minute < 24 * 60:
            if minute % 60 == 1:
                world.first.keep()
            continue
        world.first.keep()
        for queue in ("a", "b", None):
            shown = shown_in_windows(world.first, queue, world.bucket.now)
            assert shown == in_windows(world, queue), f"queue {queue}, minute {minute}"


def test_an_hour_of_which_a_part_was_read_counts_once() -> None:
    world = World()
    for queue in "abcdefgh":
        lived(world, 5, queue)
    world.first.read()
    world.bucket.now += 2 * HOUR_MS
    for start in buckets_of(world.first.model).open_minutes(world.bucket.now):
        world.bucket.keep(start, MINUTE_MS, buckets_of(world.first.model).minute(start))
    world.first.read()
    spans = buckets_of(world.first.model)
    world.bucket.keep(START, HOUR_MS, {name: spans.within(name, START, START + HOUR_MS) for name in "abcdefgh"})
    parts = len(world.bucket.after(world.first.model.applied))
    assert parts > 1
    for _ in range(parts):
        world.first.read(1)
        for name in (*"abcdefgh", None):
            expected = in_windows(world, name)["1d"]
            assert shown_in_windows(world.first, name, world.bucket.now)["1d"] == expected


def test_a_series_has_a_point_for_every_step() -> None:
    world = World()
    lived(world, 1)
    world.first.read()
    ask = HistoryAsk(step_ms=5 * MINUTE_MS, since=START - 7 * MINUTE_MS, until=START + MINUTE_MS)
    points = history(world.first.model, ask).points
    assert [(point.at - START, point.pushed) for point in points] == [(-600_000, 0), (-300_000, 0), (0, 1)]


def test_an_index_without_a_counter_says_nothing_of_what_happened_and_is_built_anew_with_one(tmp_path: Path) -> None:
    without = Model(tmp_path / "index")
    without.attach(STREAM, 1)
    without.apply([seen(1, transitions.push(draft(id="one", queue="a"), Moment(START, "op")).job)])
    found = lists.queue(without, "a", START)
    assert (found.counts.available, found.windows, found.pushed_per_second) == (1, {}, 0.0)
    without.close()
    again = Model(tmp_path / "index", followed=STATISTICS.followed)
    again.attach(STREAM, 1)
    assert again.applied == 0
    again.close()


def test_the_oldest_waiting_job_is_found_over_all_priorities() -> None:
    model = Model(None)
    model.attach(STREAM, 0)
    model.apply(
        [
            seen(1, job("one", enqueued_at=T0 + 5, priority=9)),
            seen(2, job("two", enqueued_at=T0 + 3, priority=-9)),
            seen(3, job("three", enqueued_at=T0 + 1, queue="other")),
            seen(4, job("four", State.ACTIVE, enqueued_at=T0)),
        ]
    )
    assert oldest_available(model.db) == {"default": T0 + 3, "other": T0 + 1}
    model.apply([gone(9, "three")])
    assert oldest_available(model.db) == {"default": T0 + 3}


def test_answers_say_that_not_all_is_there_yet() -> None:
    model = fresh(last_sequence=10)
    model.apply([seen(5, job())])
    found = history(model, HistoryAsk(step_ms=MINUTE_MS, since=START, until=START + 1))
    assert (found.partial, found.progress) == (True, 0.5)

from __future__ import annotations

from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ojs_api import words
from ojs_engine.base.ids import is_job_id
from ojs_engine.domain.job import State
from ojs_features.crons.record import KEPT, Cron
from ojs_features.crons.run import job_of_run
from ojs_features.crons.step import Step
from ojs_features.crons.ticks import MAX_WAITING, tick
from unit.crons.samples import MINUTE, SECOND, T0, at, before, draft, early, entry, fired


def test_a_due_tick_is_a_run_with_the_next_timer_ahead() -> None:
    record = entry()
    assert (record.next_at, record.timer and record.timer.at) == (T0, T0)
    step = fired(record, 3)
    new, run = step.record, step.run
    assert run is not None
    assert run == new.log[-1]
    assert (run.n, run.outcome, run.tick, run.at, run.number) == (1, "triggered", T0, T0 + 3, 1)
    assert record.timer is not None
    assert run.hint == record.timer.op
    assert (new.next_at, new.run_count, new.last_run_at, new.last_job) == (T0 + MINUTE, 1, T0 + 3, run.job_id)
    assert step.arm == new.timer
    assert step.arm is not None
    assert step.arm.at == T0 + MINUTE
    assert step.cancel is None, "the timer that fired is spent"


def test_the_jobs_id_is_a_uuidv7_of_the_tick_and_the_same_whoever_makes_it() -> None:
    record = entry()
    first, second = fired(record, 0).run, fired(record, 900).run
    assert first is not None
    assert second is not None
    assert first.job_id == second.job_id
    assert first.job_id is not None
    assert is_job_id(first.job_id)
    assert int(first.job_id.replace("-", "")[:12], 16) == T0
    assert fired(entry(name="other"), 0).record.last_job != first.job_id
    assert fired(fired(record, 0).record, MINUTE).record.last_job != first.job_id


def test_the_job_comes_from_the_template() -> None:
    asked = draft(meta=Raw(b'{"a": 1,"cron_name":"no"}'), scheduled_at=5_000, expires_at=60_000, queue="q")
    step = fired(entry(draft=asked), 250)
    assert step.run is not None
    job = job_of_run(step.record, step.run)
    assert (job.id, job.queue, job.args) == (step.run.job_id, "q", Raw(b"[1]"))
    meta = {"a": 1, "cron_name": "nightly", "cron_triggered_at": "2027-01-15T08:00:00.000Z"}
    assert msgspec.json.decode(job.meta) == meta
    assert (job.scheduled_at, job.expires_at) == (T0 + 5_250, T0 + 60_250), "relative times count from the run"


def test_an_absolute_time_of_the_template_stays() -> None:
    asked = draft(expires_at=T0 + 7, verbatim={"expires_at": "2027-01-15T08:00:00.007Z"})
    step = fired(entry(draft=asked), 0)
    assert step.run is not None
    assert job_of_run(step.record, step.run).expires_at == T0 + 7


def test_an_early_message_sets_the_timer_again() -> None:
    record = entry()
    timer = early(record, -5)
    assert record.timer is not None
    assert timer == record.timer


def test_a_message_of_an_earlier_revision_says_nothing() -> None:
    assert tick(entry(), at(-5), None, "another") is None


def test_a_message_of_an_earlier_revision_may_find_something_due() -> None:
    record = entry()
    step = tick(record, at(5), None, "another")
    assert isinstance(step, Step)
    assert record.timer is not None
    assert step.cancel == record.timer.op, "that timer didn't fire yet"
    assert step.run is not None
    assert step.run.hint == "another", "the message in hand stays until the job exists"


# Catching up


def test_ticks_a_little_late_all_run() -> None:
    record = entry(expression="* * * * * *", moment=at(-500), overlap="allow")
    ticks = []
    for _ in range(5):
        step = fired(record, 4_400)
        assert step.run is not None
        ticks.append((step.run.tick - T0) // SECOND)
        record = step.record
    assert ticks == [0, 1, 2, 3, 4]


def test_of_missed_ticks_one_runs() -> None:
    record = fired(entry(), 10 * MINUTE + 30 * SECOND).record
    assert (record.run_count, record.log[-1].tick) == (1, T0)
    assert record.next_at == T0 + 11 * MINUTE
    assert record.timer is not None
    assert record.timer.at == T0 + 11 * MINUTE


def test_an_interval_keeps_its_phase_after_a_pause() -> None:
    record = fired(entry(expression="@every 45s", moment=at()), 200 * SECOND).record
    assert record.log[-1].tick == T0 + 45 * SECOND
    assert record.next_at == T0 + 225 * SECOND


# Overlap


def test_skip_waits_for_nothing_but_the_next_tick() -> None:
    record = fired(entry(), 0).record
    step = fired(record, MINUTE, State.AVAILABLE)
    assert step.run is None
    run = step.record.log[-1]
    assert (run.outcome, run.reason, run.job_id, run.tick) == ("skipped", "overlap_skip", record.last_job, T0 + MINUTE)
    assert (step.record.run_count, step.record.next_at) == (1, T0 + 2 * MINUTE)
    again = fired(step.record, 2 * MINUTE, State.COMPLETED)
    assert again.run is not None


def test_every_state_that_is_not_terminal_counts_as_running() -> None:
    record = fired(entry(), 0).record
    outcomes = {state: fired(record, MINUTE, state).record.log[-1].outcome for state in State}
    finished = {State.COMPLETED, State.CANCELLED, State.DISCARDED}
    assert {state for state, outcome in outcomes.items() if outcome == "triggered"} == finished


def test_allow_runs_beside_the_job_before() -> None:
    record = fired(entry(overlap="allow"), 0).record
    step = fired(record, MINUTE, State.ACTIVE)
    assert step.run is not None
    assert step.run.cancels is None


def test_cancel_previous_names_the_job_that_gives_way() -> None:
    record = fired(entry(overlap="cancel_previous"), 0).record
    step = fired(record, MINUTE, State.ACTIVE)
    assert step.run is not None
    assert step.run.cancels == record.last_job
    done = fired(record, MINUTE, State.COMPLETED)
    assert done.run is not None
    assert done.run.cancels is None


def test_enqueue_waits_for_the_end_of_the_job_before_and_loses_no_tick() -> None:
    record = fired(entry(overlap="enqueue"), 0).record
    for minute in (1, 2):
        step = fired(record, minute * MINUTE, State.ACTIVE)
        assert step.run is None
        record = step.record
    assert [waiting.at for waiting in record.waiting] == [T0 + MINUTE, T0 + 2 * MINUTE]
    assert record.run_count == 1

    step = fired(record, 2 * MINUTE + 700, State.COMPLETED)
    assert step.run is not None
    assert step.run.tick == T0 + MINUTE
    record = step.record
    assert [waiting.at for waiting in record.waiting] == [T0 + 2 * MINUTE]
    assert early(record, 2 * MINUTE + 1_300, State.AVAILABLE) is not None, "the one just born is in the way now"
    step = fired(record, 3 * MINUTE, State.COMPLETED)
    assert step.run is not None
    assert step.run.tick == T0 + 2 * MINUTE
    assert [waiting.at for waiting in step.record.waiting] == [T0 + 3 * MINUTE]


def test_a_waiting_run_is_looked_after_seldom_when_it_waits_long_and_without_writing() -> None:
    record = fired(fired(entry(overlap="enqueue", expression="0 * * * *"), 0).record, 60 * MINUTE, State.ACTIVE).record
    start = 60 * MINUTE
    assert record.timer is not None
    assert record.timer.at == T0 + start + 500
    for waited, pause in ((1_000, 500), (8_000, 1_000), (16_000, 2_000), (600_000, 15_000)):
        timer = early(record, start + waited, State.ACTIVE)
        assert timer is not None
        assert (timer.op, timer.at) == (record.timer.op, T0 + start + waited + pause)


def test_what_waits_is_bounded() -> None:
    record = fired(entry(overlap="enqueue"), 0).record
    for minute in range(1, MAX_WAITING + 2):
        record = fired(record, minute * MINUTE, State.ACTIVE).record
    assert len(record.waiting) == MAX_WAITING
    assert (record.log[-1].outcome, record.log[-1].reason) == ("skipped", "overlap_skip")


# Clocks put forward


def test_a_gap_is_told_when_it_comes_and_nothing_runs() -> None:
    # 2027-03-14, 2:30 in New York doesn't exist
    start = 1_804_923_000_000 - T0  # 2027-03-13T02:30:00-05:00
    record = entry(expression="30 2 * * *", timezone="America/New_York", moment=at(start - 1))
    record = fired(record, start).record
    gap_at = T0 + start + 23 * 60 * MINUTE + 30 * MINUTE  # 2:00, which is 3:00 at once
    assert record.timer is not None
    assert record.timer.at == gap_at
    step = fired(record, gap_at - T0, State.COMPLETED)
    assert step.run is None
    run = step.record.log[-1]
    assert (run.outcome, run.reason, run.count, run.at) == ("skipped", "dst_skip", 1, gap_at)
    assert step.record.gap is None
    assert step.record.next_at == T0 + start + 47 * 60 * MINUTE
    assert step.record.timer is not None
    assert step.record.timer.at == step.record.next_at


# The log


def test_the_log_is_bounded_and_its_numbers_go_on() -> None:
    record = entry(overlap="allow")
    for minute in range(KEPT + 10):
        record = fired(record, minute * MINUTE).record
    assert len(record.log) == KEPT
    assert [run.n for run in record.log] == list(range(11, KEPT + 11))
    assert record.run_count == KEPT + 10


# Random lives


@given(
    overlap=st.sampled_from(get_args(words.Overlap)),
    lives=st.lists(st.tuples(st.integers(0, 90_000), st.sampled_from([*State, None])), max_size=30),
)
def test_no_tick_runs_twice_and_every_timer_is_ahead(overlap: str, lives: list[tuple[int, State | None]]) -> None:
    record: Cron = entry(overlap=overlap, expression="*/30 * * * * *")
    now = 0
    seen: list[int] = []
    for pause, previous in lives:
        assert record.timer is not None
        now = max(now + pause, record.timer.at - T0)
        step = tick(record, at(now), before(previous if record.last_job else None), record.timer.op)
        if not isinstance(step, Step):
            assert step is not None
            assert step.at > T0 + now
            continue
        record = step.record
        if step.run is not None:
            seen.append(step.run.tick)
            if overlap in {"skip", "enqueue"} and record.run_count > 1:
                assert previous is None or previous in {State.COMPLETED, State.CANCELLED, State.DISCARDED}
        assert record.next_at is not None
        assert step.arm is not None
        assert record.timer == step.arm
        assert record.next_at > T0 + now - 5_000
    assert seen == sorted(set(seen))

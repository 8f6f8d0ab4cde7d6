from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import State
from ojs_features.crons.changes import INSURANCE_MS, delete, register, run_now, switch
from ojs_features.crons.record import Cron
from ojs_features.crons.step import job_id_of
from ojs_features.crons.ticks import MAX_WAITING
from unit.crons.samples import MINUTE, SECOND, T0, at, before, draft, entry, fired, wanted


def test_a_new_entry_has_a_next_tick_and_its_timer() -> None:
    step = register(None, wanted(description="about"), at(1))
    record = step.record
    assert (record.next_at, record.enabled, record.run_count, record.description) == (T0 + MINUTE, True, 0, "about")
    assert step.arm == record.timer
    assert step.arm is not None
    assert (step.arm.at, step.cancel) == (T0 + MINUTE, None)


def test_a_new_entry_may_be_registered_paused() -> None:
    step = register(None, wanted(enabled=False), at())
    assert (step.record.next_at, step.record.enabled, step.arm) == (None, False, None)


def test_the_same_registration_again_leaves_the_schedule_alone() -> None:
    record = entry(expression="@every 30m", moment=at())
    step = register(record, wanted(expression="@every 30m"), at(29 * MINUTE))
    assert (step.record.next_at, step.record.anchor, step.record.created_at) == (T0 + 30 * MINUTE, T0, T0)
    assert (step.arm, step.cancel) == (None, None)
    assert step.record.timer == record.timer
    assert step.record.updated_at == T0 + 29 * MINUTE


@pytest.mark.parametrize("change", [{"expression": "*/5 * * * *"}, {"timezone": "Asia/Kolkata", "expression": "15 * * * *"}])
def test_another_schedule_replaces_the_timer(change: dict[str, str]) -> None:
    record = entry()
    step = register(record, wanted(**change), at(1))
    assert record.timer is not None
    assert step.cancel == record.timer.op
    assert step.arm is not None
    assert step.record.next_at == step.arm.at > T0 + MINUTE


def test_an_update_replaces_what_is_asked_for_and_keeps_the_history() -> None:
    record = fired(entry(), 0).record
    changed = wanted(draft=draft(type="other.job"), overlap="allow", description="new")
    new = register(record, changed, at(1)).record
    assert (new.draft.type, new.overlap, new.description) == ("other.job", "allow", "new")
    assert (new.run_count, new.log, new.last_job, new.created_at) == (1, record.log, record.last_job, record.created_at)


def test_a_paused_entry_stays_paused_unless_told_otherwise() -> None:
    paused = switched(entry(), enabled=False)
    assert register(paused, wanted(), at(1)).record.enabled is False
    resumed = register(paused, wanted(enabled=True), at(1))
    assert (resumed.record.enabled, resumed.record.next_at) == (True, T0 + MINUTE)
    assert resumed.arm is not None


def test_a_registration_may_pause() -> None:
    step = register(entry(), wanted(enabled=False), at(-1))
    assert (step.record.enabled, step.record.next_at, step.record.timer, step.arm) == (False, None, None, None)
    assert step.cancel is not None


def switched(record: Cron, after_ms: int = 0, *, enabled: bool) -> Cron:
    step = switch(record, enabled, at(after_ms))
    assert step is not None
    return step.record


def test_a_pause_takes_the_tick_and_the_timer_away() -> None:
    record = entry()
    step = switch(record, False, at(-1))
    assert step is not None
    assert record.timer is not None
    assert (step.record.next_at, step.record.timer, step.cancel, step.arm) == (None, None, record.timer.op, None)
    assert step.record.log == ()


def test_a_pause_tells_the_ticks_that_it_takes_along() -> None:
    record = fired(fired(entry(overlap="enqueue"), 0).record, MINUTE, State.ACTIVE).record
    paused = switched(record, 2 * MINUTE + 5, enabled=False)
    told = [(run.tick, run.outcome, run.reason) for run in paused.log[1:]]
    assert told == [(T0 + MINUTE, "skipped", "disabled"), (T0 + 2 * MINUTE, "skipped", "disabled")]
    assert paused.waiting == ()


def test_resuming_goes_on_from_now() -> None:
    paused = switched(entry(), -1, enabled=False)
    step = switch(paused, True, at(10 * MINUTE + 1))
    assert step is not None
    assert step.record.next_at == T0 + 11 * MINUTE
    assert step.arm is not None


def test_switching_to_what_it_is_writes_nothing() -> None:
    assert switch(entry(), True, at()) is None
    assert switch(switched(entry(), enabled=False), False, at()) is None


def test_deleting_leaves_a_tombstone_that_can_still_create_its_jobs() -> None:
    record = fired(entry(), 0).record
    step = delete(record, at(5))
    assert record.timer is not None
    assert (step.record.deleted, step.record.next_at, step.cancel, step.arm) == (True, None, record.timer.op, None)
    assert step.ttl_s == 3_600
    assert step.record.log == record.log


def test_an_entry_of_a_deleted_ones_name_is_new_but_its_numbers_go_on() -> None:
    gone = delete(fired(entry(), 0).record, at(5)).record
    new = register(gone, wanted(), at(SECOND)).record
    assert (new.deleted, new.run_count, new.log, new.created_at, new.n) == (False, 0, (), T0 + SECOND, 1)


# Run now


def test_a_run_by_hand_is_beside_the_schedule() -> None:
    record = fired(entry(), 0).record
    step = run_now(record, at(10 * SECOND), before(State.COMPLETED))
    run = step.run
    assert run is not None
    assert run.job_id is not None
    assert (run.tick, run.at, bool(run.key), run.number) == (T0 + 10 * SECOND, T0 + 10 * SECOND, True, 2)
    assert (step.record.next_at, step.record.timer) == (record.next_at, record.timer), "the schedule goes on"
    assert step.arm is not None
    assert (step.arm.op, step.arm.at) == (run.hint, T0 + 10 * SECOND + INSURANCE_MS)
    assert step.cancel is None


def test_two_runs_by_hand_in_one_millisecond_are_two() -> None:
    record = entry(overlap="allow")
    first = run_now(record, at(), None)
    second = run_now(first.record, at(), None)
    assert first.run is not None
    assert second.run is not None
    assert first.run.job_id != second.run.job_id


def test_a_paused_entry_may_be_run() -> None:
    assert run_now(switched(entry(), enabled=False), at(), None).run is not None


def test_skip_refuses_a_run_while_the_job_before_runs() -> None:
    record = fired(entry(), 0).record
    with pytest.raises(OjsError, match=r"its job .* is active, and its overlap policy is skip") as caught:
        run_now(record, at(1), before(State.ACTIVE))
    assert (caught.value.code, caught.value.details["job_id"]) == ("conflict", record.last_job)


def test_cancel_previous_holds_for_a_run_by_hand() -> None:
    record = fired(entry(overlap="cancel_previous"), 0).record
    run = run_now(record, at(1), before(State.ACTIVE)).run
    assert run is not None
    assert run.cancels == record.last_job


def test_enqueue_lets_a_run_by_hand_wait_and_its_job_is_known_already() -> None:
    record = fired(entry(overlap="enqueue", expression="0 * * * *"), 0).record
    step = run_now(record, at(1), before(State.ACTIVE))
    assert step.run is None
    waiting = step.record.waiting[-1]
    assert step.arm is not None
    assert record.timer is not None
    assert step.cancel == record.timer.op
    born = fired(step.record, 2_000, State.COMPLETED).run
    assert born is not None
    assert born.job_id == job_id_of(record.name, waiting)


def test_what_waits_for_a_run_by_hand_is_bounded() -> None:
    record = fired(entry(overlap="enqueue"), 0).record
    for _ in range(MAX_WAITING):
        record = run_now(record, at(1), before(State.ACTIVE)).record
    with pytest.raises(OjsError, match="100 of its runs are waiting"):
        run_now(record, at(1), before(State.ACTIVE))

"""The judge must be able to find fault: each promise is broken on purpose, and each lawful oddity let pass."""

from __future__ import annotations

from typing import Any

import pytest

from ojs_engine.domain.job import State
from support.history import FOREVER, Call, Fault, History, Outcome, Plan, Seen
from support.verdict import judge

ID = "0190a0a0-0000-7000-8000-000000000001"
PLAN = Plan(queue="q", retry_s=0.2, max_attempts=3)
DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN


class Story:
    """Calls about one job, told by start time; each takes 10 ms unless said otherwise."""

    def __init__(self, plan: Plan = PLAN) -> None:
        self.history = History()
        self.plan = plan

    def call(self, op: str, at: float, outcome: Outcome = DONE, *, took: float = 0.01, **more: Any) -> Story:
        ended = FOREVER if outcome is UNKNOWN else at + took
        fields: dict[str, Any] = {"client": "w1", "worker": "w1", "job_id": ID} | more
        self.history.add(Call(op=op, started=at, ended=ended, outcome=outcome, **fields))
        return self

    def push(self, at: float = 0.0, outcome: Outcome = DONE, **more: Any) -> Story:
        return self.call("push", at, outcome, plan=self.plan, client="p", worker=None, **more)

    def fetch(self, at: float, attempt: int, worker: str = "w1", *, lease: float = 3.0, **more: Any) -> Story:
        seen = (Seen(ID, State.ACTIVE, attempt),)
        return self.call(
            "fetch", at, queues=("q",), lease_s=lease, client=worker, worker=worker, seen=seen, job_id=None, **more
        )

    def nothing(self, at: float, outcome: Outcome = DONE, **more: Any) -> Story:
        """A fetch that brought nothing, or whose answer was lost."""
        return self.call("fetch", at, outcome, queues=("q",), lease_s=3.0, client="w9", worker="w9", job_id=None, **more)

    def seen(self, op: str, at: float, state: State, attempt: int | None = None, **more: Any) -> Story:
        return self.call(op, at, seen=(Seen(ID, state, attempt),), **more)

    def rules(self, final: dict[str, Any] | None) -> list[str]:
        return [violation.rule for violation in judge(self.history, {ID: final})]


def end(state: State, attempt: int, *errors: tuple[int, str]) -> dict[str, Any]:
    listed = [{"attempt": number, "code": code} for number, code in errors]
    return {"id": ID, "state": state, "attempt": attempt, "errors": listed}


COMPLETED = end(State.COMPLETED, 1)


def plain() -> Story:
    return Story().push().fetch(1, 1).seen("ack", 2, State.COMPLETED)


# What must be found


def test_an_acknowledged_job_that_is_gone_is_lost() -> None:
    assert Story().push().rules(None) == ["lost"]


def test_a_job_whose_id_was_found_taken_is_lost_when_it_is_gone() -> None:
    assert Story().push(0, UNKNOWN).push(1, REFUSED, status=409).rules(None) == ["lost"]


def test_a_job_that_nobody_pushed_is_unexpected() -> None:
    assert Story().fetch(1, 1).rules(COMPLETED) == ["unexpected"]


def test_one_attempt_in_two_hands_is_handed_out_twice() -> None:
    story = plain().fetch(5, 1, "w2")
    assert "handed-out-twice" in story.rules(COMPLETED)


def test_an_attempt_number_that_falls_is_found() -> None:
    story = Story().push().fetch(1, 2).fetch(9, 1).seen("ack", 10, State.COMPLETED)
    assert "attempt-shrank" in story.rules(end(State.COMPLETED, 2))


def test_a_hand_out_during_a_lease_overlaps() -> None:
    story = Story().push().fetch(1, 1).fetch(2, 2, "w2").seen("ack", 2.5, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == ["overlap"]


def test_a_hand_out_during_a_renewed_lease_is_unlawful() -> None:
    story = Story().push().fetch(1, 1).seen("heartbeat", 3.5, State.ACTIVE, lease_s=3.0)
    story.fetch(4.5, 2, "w2").seen("ack", 4.6, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == ["unlawful"]


def test_a_completed_job_that_is_handed_out_again_is_resurrected() -> None:
    story = plain().fetch(9, 2, "w2").seen("ack", 10, State.COMPLETED, worker="w2")
    assert "resurrected" in story.rules(end(State.COMPLETED, 2))


def test_a_cancelled_job_that_is_handed_out_is_resurrected() -> None:
    story = Story().push().seen("cancel", 1, State.CANCELLED).fetch(2, 1).seen("ack", 3, State.COMPLETED)
    assert "resurrected" in story.rules(COMPLETED)


@pytest.mark.parametrize("state", [State.AVAILABLE, State.ACTIVE, State.RETRYABLE, State.SCHEDULED, State.PENDING])
def test_a_job_that_is_not_terminal_after_the_drain_is_stuck(state: State) -> None:
    assert Story().push().rules(end(state, 0)) == ["stuck"]


def test_a_hand_out_after_the_expiry_is_found() -> None:
    story = Story(Plan(queue="q", expires_s=1.0)).push().fetch(2, 1).seen("ack", 3, State.COMPLETED)
    assert "expired" in story.rules(COMPLETED)


def test_an_internal_error_is_found() -> None:
    assert "server-error" in plain().call("cancel", 5, UNKNOWN, status=500).rules(COMPLETED)


def test_an_acknowledged_ack_that_left_no_trace_is_unlawful() -> None:
    assert plain().rules(end(State.DISCARDED, 1)) == ["unlawful"]


def test_a_completion_that_nobody_asked_for_is_unlawful() -> None:
    assert Story().push().fetch(1, 1).seen("get", 9, State.COMPLETED, 1).rules(COMPLETED) == ["unlawful"]


def test_a_lost_attempt_without_its_error_is_unlawful() -> None:
    story = Story().push().fetch(1, 1).fetch(9, 2, "w2").seen("ack", 10, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2)) == ["unlawful"]


def test_an_acknowledged_nack_without_its_error_is_unlawful() -> None:
    story = Story().push().fetch(1, 1).seen("nack", 2, State.RETRYABLE, 1, code="boom")
    story.fetch(3, 2).seen("ack", 4, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2)) == ["unlawful"]


def test_a_retry_before_its_time_is_unlawful() -> None:
    plan = Plan(queue="q", retry_s=2.0)
    story = Story(plan).push().fetch(1, 1).seen("nack", 2, State.RETRYABLE, 1, code="boom")
    story.fetch(3, 2).seen("ack", 4, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2, (1, "boom"))) == ["unlawful"]


def test_a_delayed_job_before_its_time_is_unlawful() -> None:
    story = Story(Plan(queue="q", delay_s=2.0)).push().fetch(1, 1).seen("ack", 2, State.COMPLETED)
    assert story.rules(COMPLETED) == ["unlawful"]


def test_one_attempt_too_many_is_unlawful() -> None:
    story = Story(Plan(queue="q", max_attempts=1, retry_s=0.1)).push().fetch(1, 1)
    story.seen("nack", 2, State.RETRYABLE, 1, code="boom").fetch(3, 2).seen("ack", 4, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2, (1, "boom"))) == ["unlawful"]


def test_an_ack_by_another_worker_that_is_accepted_is_unlawful() -> None:
    assert Story().push().fetch(1, 1).seen("ack", 2, State.COMPLETED, worker="w2").rules(COMPLETED) == ["unlawful"]


def test_an_ack_by_the_holder_that_is_refused_is_unlawful() -> None:
    story = Story().push().fetch(1, 1).call("ack", 2, REFUSED, status=409).fetch(9, 2, "w2")
    story.seen("ack", 10, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == ["unlawful"]


def test_an_attempt_that_only_a_lost_claim_explains_is_unlawful_when_no_answer_was_lost() -> None:
    story = Story().push().nothing(0.5).fetch(9, 2).seen("ack", 10, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == ["unlawful"]


def test_a_job_that_is_not_found_after_its_push_is_unlawful() -> None:
    story = plain().call("cancel", 0.5, REFUSED, status=404)
    assert story.rules(COMPLETED) == ["unlawful"]


# What must be let pass


def test_an_ordinary_life_passes() -> None:
    assert plain().rules(COMPLETED) == []


@pytest.mark.parametrize(("took", "rules"), [(1.2, []), (0.5, ["unlawful"])])
def test_a_delayed_job_that_is_stored_after_its_delay_waits_for_nothing(took: float, rules: list[str]) -> None:
    pushed = Story(Plan(queue="q", delay_s=1.0)).push(took=took, seen=(Seen(ID, State.AVAILABLE, 0),))
    assert pushed.fetch(2, 1).seen("ack", 3, State.COMPLETED).rules(COMPLETED) == rules


def test_a_push_nobody_knows_of_may_be_there_or_not() -> None:
    assert Story().push(0, UNKNOWN).rules(None) == []
    assert Story().push(0, UNKNOWN).fetch(1, 1).seen("ack", 2, State.COMPLETED).rules(COMPLETED) == []


def test_an_ack_nobody_knows_of_may_have_completed_the_job() -> None:
    story = Story().push().fetch(1, 1).call("ack", 2, UNKNOWN).call("ack", 3, REFUSED, status=409)
    assert story.rules(COMPLETED) == []


def test_a_lost_lease_leads_to_another_attempt() -> None:
    story = Story().push().fetch(1, 1).fetch(4.1, 2, "w2").call("ack", 4.5, REFUSED, status=409)
    story.seen("ack", 5, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == []


def test_the_last_lost_lease_discards() -> None:
    story = Story(Plan(queue="q", max_attempts=1)).push().fetch(1, 1).seen("get", 9, State.DISCARDED, 1)
    assert story.rules(end(State.DISCARDED, 1, (1, "visibility_timeout"))) == []


def test_a_fetch_whose_answer_was_lost_explains_an_unheard_attempt() -> None:
    story = Story().push().nothing(0.5, UNKNOWN).fetch(9, 2).seen("ack", 10, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2, (1, "visibility_timeout"))) == []
    assert story.rules(end(State.COMPLETED, 2)) == []  # given back


def test_a_fetch_during_a_fault_explains_an_unheard_attempt() -> None:
    story = Story().push().nothing(0.5).fetch(9, 2).seen("ack", 10, State.COMPLETED)
    story.history.faults.append(Fault("nats-server", 0.4, 0.8))
    assert story.rules(end(State.COMPLETED, 2)) == []


def test_calls_that_overlap_may_have_gone_in_either_order() -> None:
    story = Story().push().fetch(1, 1).call("cancel", 2, REFUSED, status=409, took=0.5)
    story.seen("ack", 2.1, State.COMPLETED)
    assert story.rules(COMPLETED) == []


def test_a_long_fetch_may_get_what_a_later_one_had_first() -> None:
    story = Story().push().fetch(1, 2, "w2", took=1.0).fetch(1.2, 1).seen("requeue", 1.3, State.AVAILABLE, 1)
    story.seen("ack", 3, State.COMPLETED, worker="w2")
    assert story.rules(end(State.COMPLETED, 2)) == []


def test_a_requeued_attempt_is_not_charged() -> None:
    story = Story(Plan(queue="q", max_attempts=1)).push().fetch(1, 1).seen("requeue", 2, State.AVAILABLE, 1)
    story.fetch(3, 2).seen("ack", 4, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2)) == []


def test_a_failure_then_success_passes() -> None:
    story = Story().push().fetch(1, 1).seen("nack", 2, State.RETRYABLE, 1, code="boom")
    story.fetch(2.21, 2).seen("ack", 4, State.COMPLETED)
    assert story.rules(end(State.COMPLETED, 2, (1, "boom"))) == []


def test_a_pending_job_runs_once_it_is_activated() -> None:
    story = Story(Plan(queue="q", pending=True)).push().seen("activate", 1, State.AVAILABLE)
    story.fetch(2, 1).seen("ack", 3, State.COMPLETED)
    assert story.rules(COMPLETED) == []


def test_a_job_that_nobody_takes_may_expire() -> None:
    assert Story(Plan(queue="q", expires_s=1.0)).push().rules(end(State.DISCARDED, 0, (0, "expired"))) == []

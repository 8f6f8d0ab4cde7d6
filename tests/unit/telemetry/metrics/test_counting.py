"""What a transition counts as. Other tests of this process count, too, so each uses a queue of its own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.transitions import Failure, JobHolder, Moment, Transition
from ojs_engine.telemetry import metrics

_numbers = itertools.count()
NOBODY = JobHolder()


class Life:
    """A job that goes through transitions, each of which is counted."""

    def __init__(self, **members: object) -> None:
        self._before = _values()
        self.queue = f"counted-{next(_numbers)}"
        self.now = 1_770_000_000_000
        self.job = Job(id="j", type="mail.send", args=Raw(b"[]"), state=State.AVAILABLE, queue=self.queue)
        self.job = replace(self.job, **members)
        self.do(transitions.push)

    def do(self, decide: Callable[[Job, Moment], Transition], after_ms: int = 0) -> Life:
        self.now += after_ms
        op = f"op{next(_numbers)}"
        self.job = decide(self.job, Moment(now=self.now, op=op, chance=0.5)).job
        metrics.stored(self.job, op)
        return self

    def claim(self, after_ms: int = 0) -> Life:
        return self.do(lambda job, moment: transitions.claim(job, "w", None, moment), after_ms)

    def ack(self, after_ms: int = 0) -> Life:
        return self.do(lambda job, moment: transitions.ack(job, Raw(b"1"), NOBODY, moment), after_ms)

    def nack(self, failure: Failure, after_ms: int = 0) -> Life:
        return self.do(lambda job, moment: transitions.nack(job, failure, NOBODY, moment), after_ms)

    def counted(self) -> dict[str, float]:
        """By how much every counter of jobs, and every histogram's count and sum, is above what it was before this job."""
        now = _values()
        return {name: round(now[name] - self._before[name], 6) for name in now if now[name] != self._before[name]}


def _values() -> defaultdict[str, float]:
    """What is counted of jobs, over all queues and types: other tests of this process may have used up the series."""
    values: defaultdict[str, float] = defaultdict(float)
    for family in metrics.REGISTRY.collect():
        for sample in family.samples:
            if "queue" in sample.labels and "type" in sample.labels and not sample.name.endswith("_bucket"):
                values[",".join([sample.name, *([sample.labels["state"]] if "state" in sample.labels else [])])] += sample.value
    return values


ENQUEUED = {"ojs_job_enqueued_total": 1}
STARTED = {"ojs_job_queue_time_seconds_count": 1, "ojs_job_queue_time_seconds_sum": 0.04}
FAILED = {"ojs_job_failed_total": 1}


def ran(state: str) -> dict[str, float]:
    return {f"ojs_job_duration_seconds_count,{state}": 1, f"ojs_job_duration_seconds_sum,{state}": 0.25}


@pytest.mark.parametrize(
    "members", [{}, {"state": State.PENDING}, {"scheduled_at": 1_780_000_000_000}], ids=["now", "pending", "delayed"]
)
def test_a_push_counts_once_whatever_it_leads_to(members: dict[str, object]) -> None:
    assert Life(**members).counted() == ENQUEUED


def test_a_claim_counts_the_wait_and_an_ack_the_run() -> None:
    assert Life().claim(40).ack(250).counted() == ENQUEUED | STARTED | ran("completed") | {"ojs_job_completed_total": 1}


def test_a_failure_with_another_attempt_is_a_retry() -> None:
    counted = Life().claim(40).nack(Failure(message="m"), 250).counted()
    assert counted == ENQUEUED | STARTED | ran("retryable") | {"ojs_job_retried_total": 1}


def test_the_wait_of_a_later_attempt_is_no_queue_time() -> None:
    life = Life().claim(40).nack(Failure(message="m")).do(_promote, 5_000).claim(60)
    counted = life.counted()
    assert (counted["ojs_job_queue_time_seconds_count"], counted["ojs_job_queue_time_seconds_sum"]) == (1, 0.04)
    assert counted["ojs_job_enqueued_total"] == 1


def test_the_last_failure_ends_the_job() -> None:
    counted = Life(retry=Retry(max_attempts=1)).claim(40).nack(Failure(message="m"), 250).counted()
    assert counted == ENQUEUED | STARTED | ran("discarded") | FAILED


def test_a_job_that_is_given_back_is_no_retry() -> None:
    counted = Life().claim(40).nack(Failure(message="m", requeue=True), 250).counted()
    assert "ojs_job_retried_total" not in counted


def test_a_cancelled_run_is_neither_completed_nor_failed() -> None:
    counted = Life().claim(40).do(transitions.cancel, 250).counted()
    assert counted == ENQUEUED | STARTED | ran("cancelled") | {"ojs_job_cancelled_total": 1}


def test_an_expired_job_counts_as_failed_and_as_expired() -> None:
    counted = Life(expires_at=1_770_000_001_000).do(transitions.expire, 2_000).counted()
    assert counted == ENQUEUED | FAILED | {"ojs_job_expired_total": 1}


def test_a_longer_lease_counts_as_a_commit_only() -> None:
    life = Life().claim(40)
    before, commits = life.counted(), _commits()
    metrics.stored(life.job, "another-op")
    assert (life.counted(), _commits()) == (before, commits + 1)


def test_a_deleted_dead_letter_counts_as_nothing_more() -> None:
    life = Life(retry=Retry(max_attempts=1, on_exhaustion="dead_letter")).claim(40).nack(Failure(message="m"), 250)
    before = life.counted()
    assert life.do(transitions.delete).counted() == before


def _promote(job: Job, moment: Moment) -> Transition:
    transition = transitions.due(job, moment, None)
    assert isinstance(transition, Transition)
    return transition


def _commits() -> float:
    value = metrics.REGISTRY.get_sample_value("ojs_commits_total", {"outcome": "stored"})
    assert value is not None
    return value

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from ojs_engine.domain import transitions
from ojs_engine.domain.job import Entry, Job, Retry, State
from ojs_engine.domain.transitions import Failure, Moment, RetryOverride, leading_to
from ojs_features.statistics.activity import COUNTED, Activity, count
from ojs_features.statistics.histogram import percentiles
from unit.domain.transitions.samples import ANYONE, T0, at, available, draft

SECOND = 1_000


def counted(job: Job, after: int = 0) -> dict[tuple[str, int], Activity]:
    """What is counted, by queue and seconds after T0."""
    found: dict[tuple[str, int], Activity] = {}

    def pick(queue: str, moment: int) -> Activity:
        return found.setdefault((queue, (moment - T0) // SECOND), Activity())

    count(job, after, pick)
    return found


def total(job: Job, after: int = 0) -> Activity:
    whole = Activity()
    for activity in counted(job, after).values():
        whole.add(activity)
    return whole


def numbers(activity: Activity) -> dict[str, int]:
    return {name: getattr(activity, name) for name in COUNTED if getattr(activity, name)}


def ran(job: Job, end: Callable[[Job, Moment], transitions.Transition], waited: int = 2, ran_for: int = 5) -> Job:
    """The job claimed and ended; both in seconds after it became available."""
    begun = (job.enqueued_at or 0) - T0 + waited * SECOND
    active = transitions.claim(job, "w", None, at(begun)).job
    return end(active, at(begun + ran_for * SECOND)).job


def acked(job: Job, moment: Moment) -> transitions.Transition:
    return transitions.ack(job, Raw(b"1"), ANYONE, moment)


def nacked(job: Job, moment: Moment) -> transitions.Transition:
    return transitions.nack(job, Failure(message="no"), ANYONE, moment)


def test_a_whole_life_is_counted_where_it_happened() -> None:
    done = ran(available(queue="q"), acked)
    found = counted(done)
    assert {key: numbers(activity) for key, activity in found.items()} == {
        ("q", 0): {"pushed": 1},
        ("q", 2): {"started": 1},
        ("q", 7): {"completed": 1},
    }
    wait, run = percentiles(found["q", 2].waits), percentiles(found["q", 7].runs)
    assert wait is not None
    assert run is not None
    assert (found["q", 2].wait_ms, found["q", 7].completed_ms) == (2_000, 5_000)
    assert abs(wait.p50 - 2_000) <= 100
    assert abs(run.p50 - 5_000) <= 250


def test_what_was_counted_is_not_counted_again() -> None:
    done = ran(available(), acked)
    assert numbers(total(done, after=2)) == {"completed": 1}
    assert counted(done, after=3) == {}


def test_failures_are_attempts_and_their_end_is_the_jobs() -> None:
    retryable = ran(available(retry=Retry(max_attempts=2)), nacked)
    assert numbers(total(retryable, after=2)) == {"failed": 1, "retried": 1}
    due = retryable.next_attempt_at or 0
    again = transitions.due(retryable, Moment(due, "op-due"))
    assert isinstance(again, transitions.Transition)
    ended = ran(again.job, nacked, waited=1)
    assert numbers(total(ended, after=4)) == {"started": 1, "failed": 1, "discarded": 1}
    assert total(ended, after=4).wait_ms == 1_000, "from the moment it became available again"


def test_other_ends() -> None:
    assert numbers(total(transitions.cancel(available(), at()).job)) == {"pushed": 1, "cancelled": 1}
    requeued = ran(available(), lambda job, moment: transitions.nack(job, Failure(message="", requeue=True), ANYONE, moment))
    assert numbers(total(requeued, after=2)) == {}
    assert sum(total(requeued).runs.values()) == 1
    expiring = available(expires_at=T0 + SECOND)
    expired = transitions.due(expiring, at(2 * SECOND))
    assert isinstance(expired, transitions.Transition)
    assert numbers(total(expired.job, after=1)) == {"discarded": 1, "expired": 1}


def test_a_move_leaves_behind_what_happened_before() -> None:
    moved = transitions.move(available(queue="a"), "b", at(SECOND)).job
    done = ran(moved, acked, waited=1)
    assert {key: numbers(found) for key, found in counted(done).items()} == {
        ("a", 0): {"pushed": 1},
        ("b", 1): {},
        ("b", 2): {"started": 1},
        ("b", 7): {"completed": 1},
    }
    assert counted(done)["b", 2].wait_ms == 1_000, "it went to the end of the other queue"


def test_lives_in_different_queues_count_in_their_own() -> None:
    """A manual retry into another queue, and an id that is used again after its deletion."""
    dead = ran(available(queue="a", retry=Retry(max_attempts=1, on_exhaustion="dead_letter")), nacked)
    retried = transitions.retry_discarded(dead, RetryOverride(queue="b"), at(10 * SECOND)).job
    done = ran(retried, acked)
    gone = transitions.remove(done, at(20 * SECOND)).job
    again = transitions.push(draft(id=gone.id, queue="c", transitions=leading_to("c", gone)), at(30 * SECOND)).job
    for job in (retried, done, gone, again):
        moves = {(queue, name) for (queue, _), found in counted(job).items() for name in numbers(found)}
        assert {name for queue, name in moves if queue == "a"} == {"pushed", "started", "failed", "discarded"}
        assert {name for queue, name in moves if queue == "b"} <= {"started", "completed"}
        assert {name for queue, name in moves if queue == "c"} == ({"pushed"} if job is again else set())


def test_a_deadline_that_was_acted_on_late_counts_where_that_happened() -> None:
    scheduled = transitions.push(draft(scheduled_at=T0 + SECOND), at()).job
    late = transitions.due(scheduled, Moment(T0 + SECOND, "op-late", late_ms=90 * SECOND))
    assert isinstance(late, transitions.Transition)
    assert set(counted(late.job)) == {("default", 0), ("default", 91)}


def test_a_log_that_was_cut_gives_no_times() -> None:
    log = (Entry(n=70, op="x", event="claimed", at=T0, before=State.AVAILABLE, after=State.ACTIVE),)
    found = total(draft(transitions=log))
    assert (found.started, found.waits) == (1, {})

"""Every word of the log as events: which, in which order, and with every member that the specification requires."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.events.envelope import Event, event_id
from ojs_engine.domain.events.vocabulary import ENTERED, events_of
from ojs_engine.domain.job import Entry, Job, Retry, State
from ojs_engine.domain.transitions import (
    Failure,
    JobHolder,
    Liveness,
    RetryOverride,
    Transition,
    ack,
    activate,
    cancel,
    claim,
    delete,
    drop,
    due,
    move,
    nack,
    postpone,
    prune,
    push,
    reissue,
    remove,
    reprioritise,
    retry_discarded,
)
from ojs_engine.domain.transitions import TransitionName as Word
from support.tables import each
from unit.domain.transitions.samples import (
    ANYONE,
    SECOND,
    T0,
    active,
    at,
    available,
    dead_letter,
    discarded,
    draft,
    once,
    pending,
    retryable,
    scheduled,
)

REQUIRED = {
    "job.enqueued": {"priority"},
    "job.scheduled": {"scheduled_at"},
    "job.started": {"worker_id", "attempt"},
    "job.completed": {"duration_ms", "attempt"},
    "job.failed": {"attempt", "error"},
    "job.retrying": {"attempt", "max_attempts", "next_retry_at", "error"},
    "job.discarded": {"total_attempts", "last_error"},
    "job.cancelled": set(),
    "priority.changed": {"previous_priority", "new_priority"},
    "job.expired": {"created_at", "expired_at", "ttl_ms"},
    "job.timeout": {"timeout_kind", "limit_seconds", "elapsed_seconds", "attempt"},
    "job.stalled": {"timeout_kind", "limit_seconds", "elapsed_seconds", "attempt"},
    "job.ttl_expired": {"timeout_kind", "limit_seconds", "elapsed_seconds", "attempt"},
    "job.total_timeout": {"timeout_kind", "limit_seconds", "elapsed_seconds", "attempt"},
    "result.stored": {"result_size_bytes"},
    "dead_letter.added": {"total_attempts", "last_error"},
    "dead_letter.retried": {"retry_count"},
    "dead_letter.deleted": set(),
    "dead_letter.pruned": {"count", "reason"},
    "backpressure.dropped": set(),
    "queue.overflow": set(),
    "rate_limit.dropped": set(),
}


def done(transition: object) -> Job:
    assert isinstance(transition, Transition), transition
    return transition.job


def after(job: Job, ms: int, liveness: Liveness | None = None) -> Job:
    return done(due(job, at(ms), liveness))


def failing(job: Job, code: str | None = None) -> Job:
    return nack(job, Failure(message="no", code=code), ANYONE, at(SECOND)).job


CASES: dict[str, tuple[str, Callable[[], Job], list[str]]] = {
    "pushed": ("pushed", available, ["job.enqueued"]),
    "pushed for later": ("pushed", scheduled, ["job.scheduled"]),
    "pushed pending": ("pushed", pending, []),
    "activated": ("activated", lambda: activate(pending(), at()).job, ["job.enqueued"]),
    "promoted": ("promoted", lambda: after(scheduled(), 10 * SECOND), ["job.enqueued"]),
    "promoted after back-off": ("promoted", lambda: after(retryable(), SECOND), ["job.enqueued"]),
    "claimed": ("claimed", active, ["job.started"]),
    "acked": ("acked", lambda: ack(active(), Raw(b"1"), ANYONE, at(5)).job, ["job.completed", "result.stored"]),
    "acked without a result": ("acked", lambda: ack(active(), Raw(b""), ANYONE, at(5)).job, ["job.completed"]),
    "failed": ("failed", retryable, ["job.failed", "job.retrying"]),
    "failed for good": ("failed", discarded, ["job.failed", "job.discarded"]),
    "failed into the dead letters": ("failed", dead_letter, ["job.failed", "job.discarded", "dead_letter.added"]),
    "requeued": (
        "requeued",
        lambda: nack(active(), Failure(message="", requeue=True), ANYONE, at()).job,
        ["job.enqueued"],
    ),
    "put off": (
        "requeued",
        lambda: nack(active(), Failure(message="", requeue=True, delay_ms=SECOND), ANYONE, at()).job,
        ["job.retrying"],
    ),
    "timed out": (
        "timed_out",
        lambda: after(active(None, timeout_ms=2 * SECOND), 3 * SECOND),
        ["job.timeout", "job.failed", "job.retrying"],
    ),
    "timed out for good": (
        "timed_out",
        lambda: after(active(None, timeout_ms=2 * SECOND, retry=once(on_exhaustion="dead_letter")), 3 * SECOND),
        ["job.timeout", "job.failed", "job.discarded", "dead_letter.added"],
    ),
    "stalled": (
        "stalled",
        lambda: after(active(heartbeat_timeout_ms=2 * SECOND), 3 * SECOND),
        ["job.stalled", "job.failed", "job.retrying"],
    ),
    "lease lost": (
        "lease_expired",
        lambda: after(active(None, lease_ms=SECOND), 2 * SECOND),
        ["job.failed", "job.retrying", "job.enqueued"],
    ),
    "lease lost for good": (
        "lease_expired",
        lambda: after(active(None, lease_ms=SECOND, retry=once()), 2 * SECOND),
        ["job.failed", "job.discarded"],
    ),
    "worker died": (
        "worker_died",
        lambda: after(active(), 31 * SECOND, Liveness(seen_at=T0, covered=True)),
        ["job.failed", "job.retrying", "job.enqueued"],
    ),
    "expired": ("expired", lambda: after(available(expires_at=T0 + SECOND), 2 * SECOND), ["job.expired", "job.discarded"]),
    "queued too long": (
        "ttl_expired",
        lambda: after(available(enqueue_ttl_ms=SECOND), 2 * SECOND),
        ["job.ttl_expired", "job.discarded"],
    ),
    "lived too long, waiting": (
        "total_timed_out",
        lambda: after(available(total_timeout_ms=SECOND), 2 * SECOND),
        ["job.total_timeout", "job.discarded"],
    ),
    "lived too long, running": (
        "total_timed_out",
        lambda: after(active(total_timeout_ms=SECOND), 2 * SECOND),
        ["job.total_timeout", "job.failed", "job.discarded"],
    ),
    "cancelled": ("cancelled", lambda: cancel(active(), at(), "why not").job, ["job.cancelled"]),
    "retried": ("retried", lambda: retry_discarded(discarded(), RetryOverride(), at()).job, ["job.enqueued"]),
    "retried dead letter": (
        "retried",
        lambda: retry_discarded(dead_letter(), RetryOverride(), at()).job,
        ["dead_letter.retried", "job.enqueued"],
    ),
    "reissued": ("reissued", lambda: reissue(available(), at()).job, []),
    "reprioritised": ("reprioritised", lambda: reprioritise(available(), -7, at()).job, ["priority.changed"]),
    "pruned": ("pruned", lambda: prune(dead_letter(), T0, at()).job, ["dead_letter.pruned"]),
    "deleted": ("deleted", lambda: delete(dead_letter(), at()).job, ["dead_letter.deleted"]),
    "dropped": ("dropped", lambda: drop(available(), "queue_deleted", at()).job, ["job.discarded"]),
    "made room": (
        "dropped",
        lambda: drop(available(), "overflow", at()).job,
        ["job.discarded", "backpressure.dropped", "queue.overflow"],
    ),
    "over its rate": ("dropped", lambda: drop(available(), "rate_limited", at()).job, ["job.discarded", "rate_limit.dropped"]),
    "postponed": ("postponed", lambda: postpone(available(), T0 + SECOND, at()).job, ["job.scheduled"]),
    "moved": ("moved", lambda: move(available(), "other", at()).job, ["job.enqueued"]),
    "removed": ("removed", lambda: remove(discarded(), at()).job, []),
}


@each("case", CASES)
def test_an_entry_is_these_events(case: str) -> None:
    word, make, expected = CASES[case]
    job = make()
    entry = job.transitions[-1]
    assert entry.event == word
    assert [event.type for event in events_of(job, entry)] == expected


def test_every_word_of_the_log_has_a_case() -> None:
    assert {word for word, _, _ in CASES.values()} == set(get_args(Word))


@each("case", CASES)
def test_events_say_all_that_is_required(case: str) -> None:
    job = CASES[case][1]()
    for event in events_of(job, job.transitions[-1]):
        assert event.data.keys() >= {"job_id", "job_type", "queue"} | REQUIRED[event.type]
        assert None not in event.data.values()
        error = event.data.get("error") or event.data.get("last_error")
        assert error is None or error.keys() >= {"code", "message"}
        if event.type == "job.failed":
            assert isinstance(event.data["error"]["retryable"], bool)
        if "timeout_kind" in event.data:
            assert event.data["elapsed_seconds"] >= event.data["limit_seconds"] > 0


@each("case", CASES)
def test_events_say_the_state_and_one_of_them_that_the_job_has_come_into_it(case: str) -> None:
    job = CASES[case][1]()
    entry = job.transitions[-1]
    events = events_of(job, entry)
    for event in events:
        assert (event.data.get("state"), event.data.get("previous_state")) == (entry.after, entry.before)
    if events and entry.after not in {None, entry.before}:
        assert [event.data["state"] for event in events if ENTERED.get(event.type) is entry.after] == [entry.after]


def test_the_envelope_is_that_of_the_specification() -> None:
    job = available()
    [event] = events_of(job, job.transitions[0])
    body = msgspec.json.decode(msgspec.json.encode(event))
    assert body["specversion"] == "1.0"
    assert (body["type"], body["time"]) == ("job.enqueued", "2027-01-15T08:00:00.000Z")
    assert (body["subject"], body["datacontenttype"]) == ("job-1", "application/json")
    assert body["source"].startswith("ojs://")


# Ids


def ids(events: list[Event]) -> list[str]:
    return [event.id for event in events]


def test_ids_never_change_and_differ_by_entry_type_and_life() -> None:
    job = failing(claim(available(), "w1", None, at()).job)
    first = [one for entry in job.transitions for one in ids(events_of(job, entry))]
    again = [one for entry in job.transitions for one in ids(events_of(job, entry))]
    assert first == again
    assert len(set(first)) == len(first) == 4
    namesake = available()
    assert set(ids(events_of(namesake, namesake.transitions[0]))).isdisjoint(first)


def test_an_id_is_the_one_that_earlier_versions_gave() -> None:
    late = Entry(n=3, op="op-1", event="acked", at=1_800_000_000_000)
    assert event_id("job-1", late, "job.completed") == "evt_01a3185c-5000-7d93-80c4-b1b9d245b75d"
    early = Entry(n=1, op="op-2", event="pushed", at=5)
    assert event_id("job-1", early, "job.enqueued") == "evt_00000000-0005-70e0-93e7-7a7b6e0e83c6"


def test_ids_are_uuid7_of_the_entrys_time() -> None:
    job = available()
    [event] = events_of(job, job.transitions[0])
    prefix, _, text = event.id.partition("_")
    assert prefix == "evt"
    assert int(text.replace("-", "")[:12], 16) == T0
    assert text[14] == "7"
    assert text[19] in "89ab"


# Trace context


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (b"{}", None),
        (b'{"a":1}', None),
        (b'{"trace_id":"abc"}', "abc"),
        (b'{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}', "4bf92f3577b34da6a3ce929d0e0e4736"),
        (b'{"traceparent":"nonsense"}', None),
        (b'{"trace_id":7}', None),
    ],
)
def test_every_event_of_a_traced_job_carries_its_trace(meta: bytes, expected: str | None) -> None:
    job = available(meta=Raw(meta))
    [event] = events_of(job, job.transitions[0])
    assert event.data.get("trace_id") == expected


# Later revisions: what is said of an entry does not depend on when it is seen


def told(job: Job, entry: Entry) -> list[dict[str, Any]]:
    return [event.data for event in events_of(job, entry)]


def test_all_events_of_a_life_can_be_told_from_its_end() -> None:
    """Two failures with errors of their own, then success: each revision's own events equal those told at the end."""
    at_the_time: list[list[dict[str, Any]]] = []

    def seen(job: Job) -> Job:
        at_the_time.append(told(job, job.transitions[-1]))
        return job

    job = seen(push(draft(), at()).job)
    for attempt, delay in ((1, 1_000), (2, 2_000)):
        begun = 10_000 * attempt
        job = seen(claim(job, f"w{attempt}", None, at(begun)).job)
        failure = Failure(message=f"failure {attempt}", code=f"code_{attempt}", backtrace=Raw(b'["a","b"]'))
        job = seen(nack(job, failure, ANYONE, at(begun + 500)).job)
        job = seen(after(job, begun + 500 + delay))
    job = seen(claim(job, "w3", None, at(30_000)).job)
    job = seen(ack(job, Raw(b'{"n":1}'), JobHolder(), at(30_700)).job)

    assert [told(job, entry) for entry in job.transitions] == at_the_time
    failures = [event for events in at_the_time for event in events if "duration_ms" in event]
    assert [event["duration_ms"] for event in failures] == [500, 500, 700]
    assert failures[0]["error"] == {
        "code": "code_1",
        "type": "code_1",
        "message": "failure 1",
        "retryable": True,
        "stack_trace": "a\nb",
    }


@pytest.mark.parametrize(
    ("end", "told_as"),
    [(delete, "dead_letter.deleted"), (lambda job, moment: prune(job, job.discarded_at, moment), "dead_letter.pruned")],
)
def test_a_dead_letter_that_was_retried_and_deleted_is_told_from_the_tombstone(end: Any, told_as: str) -> None:
    job = dead_letter()
    job = retry_discarded(job, RetryOverride(), at(SECOND)).job
    job = failing(claim(job, "w2", None, at(2 * SECOND)).job, "DEAD_LETTER")
    tombstone = end(job, at(3 * SECOND)).job
    types = [[event.type for event in events_of(tombstone, entry)] for entry in tombstone.transitions]
    assert types == [
        ["job.enqueued"],
        ["job.started"],
        ["job.failed", "job.discarded", "dead_letter.added"],
        ["dead_letter.retried", "job.enqueued"],
        ["job.started"],
        ["job.failed", "job.discarded", "dead_letter.added"],
        [told_as],
    ]


def test_a_discard_without_dead_letter_stays_one_after_a_retry() -> None:
    job = retry_discarded(discarded(), RetryOverride(), at(SECOND)).job
    assert [event.type for event in events_of(job, job.transitions[2])] == ["job.failed", "job.discarded"]


def test_an_error_that_is_no_longer_kept_is_named_by_what_the_log_says() -> None:
    job = replace(retryable(), errors=(), error=None)
    failed, retrying = told(job, job.transitions[-1])
    assert failed["error"] == {
        "code": "handler_error",
        "type": "handler_error",
        "message": "the error is no longer kept",
        "retryable": True,
    }
    assert retrying["error"]["code"] == "handler_error"


def test_two_errors_of_one_attempt_are_not_confused() -> None:
    job = retryable(expires_at=T0 + 900)
    expired = after(job, 950)
    failed = told(expired, expired.transitions[-2])[0]
    _, dropped = told(expired, expired.transitions[-1])
    assert (failed["error"]["code"], dropped["last_error"]["code"]) == ("handler_error", "expired")


def test_errors_of_an_earlier_life_are_told_as_its_own() -> None:
    first = nack(active(), Failure(message="first life", action="DEAD_LETTER"), ANYONE, at(1)).job
    again = claim(retry_discarded(first, RetryOverride(), at(2)).job, "w", None, at(3)).job
    second = nack(again, Failure(message="second life", action="DEAD_LETTER"), ANYONE, at(4)).job
    messages = [
        event.data["error"]["message"]
        for entry in second.transitions
        for event in events_of(second, entry)
        if event.type == "job.failed"
    ]
    assert messages == ["first life", "second life"]


def test_a_log_that_has_lost_its_beginning_still_tells_the_rest() -> None:
    job = failing(active())
    cut = replace(job, transitions=job.transitions[-1:])
    [failed, retrying] = events_of(cut, cut.transitions[0])
    assert (failed.type, retrying.type) == ("job.failed", "job.retrying")
    assert failed.data["duration_ms"] == SECOND


# Members


def test_a_result_that_is_set_apart_is_told_of_by_its_size() -> None:
    job = ack(active(result_ttl_s=60), Raw(b"12345"), ANYONE, at(5)).job
    completed, stored = (event.data for event in events_of(job, job.transitions[-1]))
    assert "result" not in completed
    assert (stored["result_size_bytes"], stored["expires_at"]) == (5, "2027-01-15T08:01:00.005Z")


def test_a_large_result_stays_with_the_job() -> None:
    small, large = Raw(b'"' + b"x" * 4_000 + b'"'), Raw(b'"' + b"x" * 5_000 + b'"')
    for result, kept in ((small, True), (large, False)):
        job = ack(active(), result, ANYONE, at(5)).job
        completed, stored = told(job, job.transitions[-1])
        assert ("result" in completed) is kept
        assert stored["result_size_bytes"] == len(result)


def test_a_scheduled_time_comes_back_as_it_was_written() -> None:
    job = scheduled(verbatim={"scheduled_at": "2099-01-01T00:00:00+02:00"})
    assert told(job, job.transitions[-1])[0]["scheduled_at"] == "2099-01-01T00:00:00+02:00"


def test_a_cancellation_says_why_and_from_where() -> None:
    job = cancel(active(), at(), "superseded").job
    assert told(job, job.transitions[-1])[0].items() >= {"reason": "superseded", "previous_state": State.ACTIVE}.items()


def test_a_retry_says_when() -> None:
    job = failing(active(retry=Retry(jitter=False, initial_interval_ms=7 * SECOND)))
    assert told(job, job.transitions[-1])[1]["next_retry_at"] == "2027-01-15T08:00:08.000Z"


def test_a_word_of_a_newer_version_has_no_events() -> None:
    job = available()
    assert events_of(job, msgspec.structs.replace(job.transitions[0], event="beamed")) == []


def test_a_new_priority_says_both() -> None:
    job = reprioritise(available(priority=5), -7, at()).job
    (event,) = events_of(job, job.transitions[-1])
    assert (event.data["previous_priority"], event.data["new_priority"]) == (5, -7)

from __future__ import annotations

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import Entry, Job, JobError, Retry, State
from ojs_features.history.timelines import job_history, job_retries, job_trace

NOW = 1_800_000_000_000


def failed(attempt: int) -> JobError:
    return JobError(code="c", type=f"E{attempt}", message="m", attempt=attempt, at=NOW + attempt * 1_000)


def claimed(attempt: int) -> Entry:
    return Entry(n=attempt, op="o", event="claimed", at=NOW + attempt * 1_000 - 400, attempt=attempt)


def test_each_failed_attempt_says_when_it_began_and_the_last_what_follows() -> None:
    job = Job(
        id="j",
        type="a.b",
        args=Raw(b"[]"),
        state=State.RETRYABLE,
        attempt=3,
        created_at=NOW,
        retry=Retry(max_attempts=5),
        errors=(failed(1), failed(2), failed(3)),
        transitions=(claimed(2), claimed(3)),
        next_attempt_at=NOW + 9_000,
    )
    view = msgspec.to_builtins(job_retries(job))
    assert [(one["attempt"], one["state"], one["type"]) for one in view["retries"]] == [
        (1, "failed", "E1"),
        (2, "failed", "E2"),
        (3, "retryable", "E3"),
    ]
    first, second, third = view["retries"]
    assert "started_at" not in first, "its transition is not logged any more"
    assert (second["started_at"], second["failed_at"]) == ("2027-01-15T08:00:01.600Z", "2027-01-15T08:00:02.000Z")
    assert third["next_retry_at"] == "2027-01-15T08:00:09.000Z"
    assert "next_retry_at" not in second
    assert (view["attempt"], view["policy"]["max_attempts"]) == (3, 5)


def test_the_log_is_read_by_states_and_by_events() -> None:
    entries = (
        Entry(n=1, op="a", event="pushed", at=NOW, after=State.AVAILABLE),
        Entry(n=2, op="b", event="claimed", at=NOW + 1_500, before=State.AVAILABLE, after=State.ACTIVE),
        Entry(n=3, op="c", event="failed", at=NOW + 3_500, before=State.ACTIVE, after=State.DISCARDED, reason="no"),
    )
    job = Job(id="j", type="a.b", args=Raw(b"[]"), state=State.DISCARDED, created_at=NOW, transitions=entries)
    snapshots = msgspec.to_builtins(job_trace(job))["snapshots"]
    assert [(one["phase"], one["state"], one.get("duration"), one.get("error")) for one in snapshots] == [
        ("pushed", "available", "1.5s", None),
        ("claimed", "active", "2s", None),
        ("failed", "discarded", None, "no"),
    ]
    events = msgspec.to_builtins(job_history(job))["events"]
    assert [(one["type"], one["state"]) for one in events] == [
        ("job.pushed", "available"),
        ("job.claimed", "active"),
        ("job.failed", "discarded"),
    ]
    assert [one["timestamp"] for one in events] == [one["at"] for one in snapshots]

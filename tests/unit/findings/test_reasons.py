"""Why a job is where it is, as sentences."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from ojs_engine.domain.handlers import Handler
from ojs_engine.domain.job import Entry, Job, JobError, Membership, Retry, State
from ojs_engine.operations.finding import Reason
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_features.findings.reasons import JobFacts, reasons
from support.tables import each

NOW = 1_800_000_000_000
LATER = NOW + 60_000
LATER_SAID = "2027-01-15T08:01:00.000Z"
STEP = Membership(id="f", node=0, kind="chain", step="s", index=0, size=1)


def job(state: State = State.AVAILABLE, **members: Any) -> Job:
    return Job(id="j", type="mail.send", args=Raw(b"[]"), state=state, queue="q", created_at=NOW, **members)


def told(found: Job, **facts: Any) -> list[tuple[str, str]]:
    return [(reason.code, reason.message) for reason in reasons(found, JobFacts(now=NOW, **facts))]


def error(**members: Any) -> JobError:
    return JobError(code="handler_error", type="SmtpError", message="secret", attempt=1, at=NOW, **members)


def test_all_that_keeps_an_available_job_back_is_told_what_matters_most_first() -> None:
    limit = Reason(code="limited", message="Limit tenant leaves no room.")
    found = told(job(), maintenance=True, paused=True, blocked=[limit], higher=1, beside=2, workers=[])
    assert [code for code, _ in found] == [
        "maintenance", "queue_paused", "limited", "no_worker", "higher_priority", "in_line", "available",
    ]  # fmt: skip
    assert dict(found)["higher_priority"] == "1 job of higher priority comes first."
    assert dict(found)["in_line"] == "2 other jobs of its priority wait beside it."


def test_the_failed_job_of_a_workflow_leads_to_the_retry_of_the_workflow() -> None:
    for state in (State.DISCARDED, State.CANCELLED):
        found = job(state, attempt=1, retry=Retry(max_attempts=1), workflow=STEP)
        [reason] = reasons(found, JobFacts(now=NOW))
        assert "'ojs-nats workflows retry f'" in (reason.remedy or "")
        [alone] = reasons(job(state, attempt=1, retry=Retry(max_attempts=1)), JobFacts(now=NOW))
        assert "workflow" not in (alone.remedy or "")


def test_a_job_waits_for_a_worker_that_handles_its_type_and_version() -> None:
    worker = WorkerRecord(id="w", queues=("q",), handlers=(Handler("mail.send", "<2.0"),))
    assert dict(told(job(version="2.0"), workers=[worker]))["no_handler"] == (
        "None of the 1 worker of queue q handles mail.send in version 2.0."
    )
    assert "no_handler" not in dict(told(job(version="1.0"), workers=[worker]))
    assert [code for code, _ in told(job(), workers=None)] == ["available"]


@each(
    ("found", "code", "message"),
    [
        (job(State.SCHEDULED, scheduled_at=LATER), "delayed", f"It is delayed until {LATER_SAID}."),
        (job(State.PENDING), "pending", "It is pending until somebody activates it."),
        (
            job(State.RETRYABLE, next_attempt_at=LATER, attempt=1, error=error()),
            "retrying",
            f"Attempt 2 of 3 comes at {LATER_SAID}, after SmtpError.",
        ),
        (job(State.COMPLETED, attempt=2), "completed", "It was completed in attempt 2."),
        (
            job(State.CANCELLED, transitions=(Entry(n=1, op="o", event="cancelled", at=NOW, reason="not needed"),)),
            "cancelled",
            "It was cancelled: not needed.",
        ),
        (
            job(State.DISCARDED, transitions=(Entry(n=1, op="o", event="expired", at=NOW),)),
            "expired",
            "It had expired before a worker took it.",
        ),
        (
            job(State.DISCARDED, attempt=1, retry=Retry(max_attempts=1), error=error()),
            "attempts_used_up",
            "Its 1 attempt is used up; the last error was SmtpError.",
        ),
        (
            job(State.DISCARDED, attempt=1, error=error()),
            "not_retryable",
            "It failed in a way that isn't tried again; the last error was SmtpError.",
        ),
    ],
)
def test_a_job_that_waits_for_its_time_or_is_over(found: Job, code: str, message: str) -> None:
    assert told(found) == [(code, message)]


def test_an_active_job_names_its_worker_its_lease_and_a_silence() -> None:
    found = job(State.ACTIVE, worker="w", started_at=NOW, visible_until=LATER, beat_at=NOW - 5_000)
    assert told(found) == [
        ("active", "It runs on worker w since 2027-01-15T08:00:00.000Z, last heard 5s ago."),
        ("lease", f"Unless it ends or its worker extends it, visibility_timeout comes at {LATER_SAID}."),
    ]
    silent = told(found, holder=WorkerRecord(id="w", seen_at=NOW - 31_000))
    assert [code for code, _ in silent] == ["active", "worker_stale", "lease"]

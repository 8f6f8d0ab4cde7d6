"""What happened to jobs: their histories, origins and attempts, and recent failures (docs/history.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from ojs_api.jobs import RetryPolicy
from ojs_api.members import Count, Moment, QueueName, Uuid, one_of
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import PAGED, Pagination
from ojs_api.words import JobState

ActorKind = Literal["worker", "client", "system"]
AttemptState = Literal["failed", "retryable"]

_State = Annotated[str, one_of(JobState)]
_TraceId = Annotated[str, Meta(description="Of the distributed trace that the job belongs to.")]


class Actor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An actor in a job's history.

    Attributes:
        type: The kind of actor, such as `worker`.
        id: A worker's id.
    """

    type: Annotated[str, one_of(ActorKind)]
    id: Annotated[str, Meta(description="A worker's.")] | None = None


class HistoryEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a job's history."""

    id: str
    job_id: Uuid
    event_type: Annotated[str, Meta(examples=["job.attempt_failed"])]
    timestamp: Moment
    data: dict[str, Any]
    actor: Actor | None = None


class JobHistoryPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Events of one job, the oldest first."""

    events: list[HistoryEvent]
    total: Annotated[Count, Meta(description="Of all pages.")]
    complete: Annotated[bool, Meta(description="False if the oldest events are gone: 64 transitions are kept.")]
    next_cursor: Annotated[str, Meta(description="Goes into `cursor` for the next page.")] | None = None


class JobLineage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of a job: the parent and root that its client named, and its workflow."""

    job_id: Uuid
    parent_id: str | None = None
    root_id: str | None = None
    workflow_id: str | None = None
    workflow_step: Annotated[str, Meta(description="Its id in the workflow.")] | None = None


class AttemptError(Struct, frozen=True, kw_only=True):
    """The error of a failed attempt."""

    code: str
    type: str
    message: str


class AttemptTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt of a job.

    Attributes:
        outcome: The word of the job's log for what ended it.
        state: The job's state after it.
        retry_generation: How many times the job had been retried by hand.
    """

    attempt: Count
    started_at: Moment
    worker_id: str | None = None
    ended_at: Moment | None = None
    duration_ms: Count | None = None
    outcome: Annotated[str, Meta(description="The word of the job's log for what ended it.")] | None = None
    state: Annotated[_State, Meta(description="The job's after it.")] | None = None
    error: AttemptError | None = None
    retry_generation: Annotated[Count, Meta(description="How often the job had been retried by hand.")] | None = None


class JobTraces(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attempts of a job, the oldest first, as far as its log goes back."""

    job_id: Uuid
    traces: list[AttemptTrace]
    trace_id: _TraceId | None = None


class OneAttemptTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt of a job."""

    job_id: Uuid
    trace: AttemptTrace
    trace_id: _TraceId | None = None


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed attempt of some job."""

    job_id: Uuid
    job_type: str
    queue: str
    attempt: Count
    error: AttemptError
    failed_at: Moment
    state: _State | None = None
    worker_id: str | None = None
    duration_ms: Count | None = None
    trace_id: _TraceId | None = None


class FailurePage(Struct, frozen=True, kw_only=True):
    """Failed attempts of all jobs, the latest first."""

    failures: list[Failure]
    pagination: Pagination


class JobPhase(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A state that a job was in, and how long. `error` says why."""

    phase: str
    state: _State | None
    at: Moment
    duration: str | None = None
    error: str | None = None


class JobTrace(Struct, frozen=True, kw_only=True):
    """A job's log: each state with its beginning and, once it is over, its length."""

    job_id: Uuid
    snapshots: list[JobPhase]


class JobHistoryEntry(Struct, frozen=True, kw_only=True):
    """What happened to a job, and the state that it came to."""

    type: str
    state: _State | None
    timestamp: Moment


class JobHistory(Struct, frozen=True, kw_only=True):
    """A job's log as events."""

    job_id: Uuid
    events: list[JobHistoryEntry]


class FailedAttempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A failed attempt of a job.

    Attributes:
        error: The message.
        started_at: None if the job's log doesn't have it any more.
        next_retry_at: None if there was no next attempt, or the log doesn't have it any more.
    """

    attempt: Count
    state: Annotated[str, one_of(AttemptState)]
    error: str
    code: str
    type: str
    failed_at: Moment
    started_at: Moment | None = None
    next_retry_at: Moment | None = None


class JobRetries(Struct, frozen=True, kw_only=True):
    """A job's failed attempts, and its retry policy.

    Attributes:
        attempt: The number of the last attempt.
    """

    job_id: Uuid
    retries: list[FailedAttempt]
    policy: RetryPolicy
    attempt: Count


_GONE: Final = ("not_found",)

# fmt: off
HISTORY: Final = Operation(
    "listJobHistory", "GET /jobs/{job_id}/history", "read", "Read a job's history", {200: JobHistoryPage},
    "The oldest first: its creation, changes of state, attempts and how they ended, as far as its log goes back.",
    query=PAGED, errors=_GONE, narrowing="job", by_queue=True,
)
LINEAGE: Final = Operation(
    "getJobLineage", "GET /jobs/{job_id}/lineage", "read", "Read where a job comes from", {200: JobLineage},
    "`parent_id` and `root_id` are what its client said. Children are not told.", errors=_GONE, narrowing="job", by_queue=True,
)
TRACES: Final = Operation(
    "debugGetTraces", "GET /debug/jobs/{job_id}/traces", "read", "Read a job's attempts", {200: JobTraces}, errors=_GONE,
    narrowing="job",
)
TRACE: Final = Operation(
    "debugGetTraceAttempt", "GET /debug/jobs/{job_id}/traces/{attempt}", "read", "Read one attempt of a job",
    {200: OneAttemptTrace}, "The latest of that number, if the job was retried by hand.", errors=_GONE, narrowing="job",
)
RETRIES: Final = Operation(
    "listJobRetries", "GET /jobs/{job_id}/retries", "read", "Read a job's failed attempts", {200: JobRetries}, errors=_GONE,
    narrowing="job",
)
STATES: Final = Operation(
    "getJobTrace", "GET /admin/jobs/{job_id}/trace", "read", "Read the states that a job was in", {200: JobTrace}, errors=_GONE,
    narrowing="job",
)
LOG: Final = Operation(
    "getJobHistory", "GET /events/{job_id}/history", "read", "Read what happened to a job", {200: JobHistory}, errors=_GONE,
    narrowing="job",
)
FAILURES: Final = Operation(
    "debugListFailures", "GET /debug/failures", "read", "List recent failures", {200: FailurePage},
    "Failed attempts, the latest first, as long as events are kept.",
    query=(*PAGED, Parameter("queue", QueueName, "In this queue alone.")), errors=("queue_name_too_long",),
    narrowing="parameter",
)
HISTORIES: Final = Subject(
    "History", "What happened to jobs, to find out why",
    (HISTORY, LINEAGE, TRACES, TRACE, RETRIES, STATES, LOG, FAILURES),
)

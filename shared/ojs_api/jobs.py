"""Jobs one by one: pushed, read, listed, changed, and their results (docs/api.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypedDict, get_args

from msgspec import Meta, Struct, field

from ojs_api import words
from ojs_api.members import (
    REQUIRED,
    Count,
    JsonList,
    JsonObject,
    Moment,
    OpenAnswer,
    OpenRequest,
    QueueName,
    Text,
    Uuid,
    Warnings,
    described_as,
    one_of,
    wanted,
)
from ojs_api.operations import Operation, Parameter, Subject, query_of
from ojs_api.pages import NUMBERED, PAGED, Indexed, Pagination
from ojs_api.words import Backoff, Exhaustion

DEFAULT_QUEUE: Final = "default"
ENDED: Final = frozenset({"completed", "cancelled", "discarded"})
"""The states of a job that has ended."""
MOST_RESULTS: Final = 100
"""Ids in one request for results."""
META: Final = "meta."
"""The beginning of the names of parameters for members of `meta`."""
MOST_META: Final = 8
"""The most such parameters in one request."""
LONGEST_WAIT_S: Final = 60.0
STANDARD_WAIT_S: Final = 30.0

State = Annotated[str, described_as("State", words.JobState)]
Priority = Annotated[int, Meta(extra_json_schema={"minimum": -100, "maximum": 100})]
SentPriority = Annotated[
    int | float | str,
    Meta(
        extra_json_schema={
            "anyOf": [{"type": "integer", "minimum": -100, "maximum": 100}, {"enum": [*get_args(words.PriorityName)]}]
        }
    ),
    wanted("an integer from -100 to 100"),
]
_Seconds = Annotated[float, Meta(extra_json_schema={"minimum": 0}, description="Seconds.")]
_AtLeastOne = Annotated[int, Meta(extra_json_schema={"minimum": 1})]
_Generation = Annotated[
    int, Meta(extra_json_schema={"minimum": 1}, description="How many manual retries the job had seen by then.")
]
_Interval = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]


class RetryPolicy(OpenAnswer, frozen=True, kw_only=True):
    """A job's effective retry policy (ojs-retry §3). Its intervals are ISO 8601 durations."""

    max_attempts: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 10_000})]
    initial_interval: _Interval
    backoff_coefficient: Annotated[float, Meta(extra_json_schema={"minimum": 1})]
    max_interval: _Interval
    jitter: bool
    non_retryable_errors: Annotated[list[str], Meta(extra_json_schema={"maxItems": 100})]
    on_exhaustion: Annotated[str, one_of(Exhaustion)]
    backoff_strategy: Annotated[str, one_of(Backoff)]


class SkippedJob(Struct, frozen=True):
    """A job that was left as it is.

    Attributes:
        error: Why.
    """

    job_id: Uuid
    error: str


class JobError(Struct, frozen=True, omit_defaults=True):
    """The error of an attempt.

    Attributes:
        message: The text of the exception.
        code: The kind of failure: `handler_error`, `timeout`, `invalid_arguments`. None if the worker didn't say.
        type: The name of the exception's class. None if the worker didn't say.
        attempt: The number of the attempt, from 1.
        details: More about the error. Python workers add `where`.
        backtrace: The backtrace as the worker sent it, a text or a list of lines. `trace` is the same as one text.
        occurred_at: When the attempt failed.
        retryable: Whether the worker said that the job may be tried again. None if it didn't say.
        retry_generation: How many times the job had been retried by hand. None if it hadn't.
    """

    message: str = field(default_factory=str)
    code: Annotated[str, REQUIRED] | None = None
    type: Annotated[str, REQUIRED] | None = None
    attempt: Annotated[Count, REQUIRED] | None = None
    details: Any = None
    backtrace: Any = None
    occurred_at: Annotated[Moment, REQUIRED] | None = None
    retryable: bool | None = None
    retry_generation: _Generation | None = None

    @property
    def where(self) -> str | None:
        """The place in the application that raised the error, as `app/jobs.py:12 in send_email`. None if the worker
        didn't say.
        """
        place = self.details.get("where") if isinstance(self.details, dict) else None
        return place if isinstance(place, str) else None

    @property
    def trace(self) -> str:
        """The backtrace as one text. "" if there is none."""
        found = self.backtrace if self.backtrace is not None else _traced(self.details)
        lines = found if isinstance(found, list) else [found or ""]
        return "\n".join(str(line).rstrip("\n") for line in lines)


def _traced(details: Any) -> Any:
    """Return the backtrace that some clients put among the details."""
    return details.get("backtrace") or details.get("stack_trace") if isinstance(details, dict) else None


class JobRetry(Struct, frozen=True):
    """The part of a job's retry policy that its worker reads.

    Attributes:
        non_retryable_errors: Names of error classes that end the job at once.
    """

    non_retryable_errors: list[str] = []


class Checkpoint(OpenAnswer, frozen=True, omit_defaults=True):
    """What an attempt goes on from (ojs-durable-execution §6.1).

    Attributes:
        state: What was saved.
        sequence: How many times the job has saved, this time included.
        created_at: When it was saved, in UTC.
        step_index: A number that clients in other languages may add.
        metadata: Data that clients in other languages may add.
    """

    state: Annotated[Any, REQUIRED, Meta(description="Any JSON.")] = None
    sequence: _AtLeastOne = field(default_factory=int)
    created_at: Annotated[Moment, REQUIRED] | None = None
    step_index: int | None = None
    metadata: JsonObject = field(default_factory=dict)


class Job(OpenAnswer, frozen=True, omit_defaults=True):
    """A job. Members that a client has added come back as they were sent.

    In Python times are in UTC, and members that the job doesn't have are None.

    Attributes:
        id: The id, a UUIDv7.
        type: The job type.
        state: `scheduled`, `available`, `pending`, `active`, `retryable`, `completed`, `cancelled` or `discarded`.
        queue: The queue.
        args: The arguments, as JSON.
        meta: Data that the job carries besides its arguments.
        attempt: The number of the last attempt; 0 before the first.
        max_attempts: How many attempts the retry policy allows.
        timeout_ms: How long an attempt may run, in milliseconds.
        visibility_timeout_ms: After how many milliseconds without a heartbeat another worker gets the job.
        retry: The part of the retry policy that a worker reads.
        next_attempt_at: When a failed job runs again.
        uncounted_attempts: How many attempts didn't count, since the job was handed back or snoozed.
        worker_id: The worker that runs the job.
        result: What the handler returned, as JSON, if the job is completed.
        error: The error of the last attempt that failed.
        errors: The errors of all failed attempts, the oldest first.
        version: The version of the job's type.
        workflow_id: The workflow that the job is a step of.
        workflow_step: The position of the step in its workflow, from 0.
        workflow_step_id: The id of the step.
        checkpoint: What an earlier attempt saved last.
        parent_results: What the earlier steps of the workflow returned.
        parent_results_by_index: The same, by the position of each step.
    """

    id: Uuid
    type: str
    state: State
    queue: Annotated[str, REQUIRED] = field(default_factory=lambda: DEFAULT_QUEUE)
    args: Annotated[JsonList, REQUIRED] = field(default_factory=list)
    meta: Annotated[JsonObject, REQUIRED] = field(default_factory=dict)
    priority: Priority = field(default_factory=int)
    tags: Annotated[list[str], REQUIRED] = field(default_factory=list)
    attempt: Count = field(default_factory=int)
    max_attempts: Annotated[Count, REQUIRED] | None = None
    timeout_ms: Annotated[_AtLeastOne, REQUIRED] | None = None
    visibility_timeout_ms: Annotated[_AtLeastOne, REQUIRED] | None = None
    retry: Annotated[JobRetry, RetryPolicy, REQUIRED] = JobRetry()
    created_at: Annotated[Moment, REQUIRED] | None = None
    specversion: Annotated[str, REQUIRED] | None = None

    enqueued_at: Moment | None = None
    scheduled_at: Moment | None = None
    expires_at: Moment | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None
    cancelled_at: Moment | None = None
    discarded_at: Moment | None = None
    activated_at: Moment | None = None
    re_enqueued_at: Moment | None = None
    next_attempt_at: Moment | None = None
    retry_delay_ms: Count | None = None
    uncounted_attempts: Annotated[
        Count, Meta(description="How many of `attempt` don't count against `max_attempts`: those handed back.")
    ] = 0
    worker_id: Annotated[str, Meta(description="Who holds it, or held it last.")] | None = None
    result: Annotated[
        Any, Meta(description="Lists leave out what is large, or has a `result_ttl` that ends before its job does.")
    ] = None
    result_size_bytes: Count | None = None
    result_stored_at: Moment | None = None
    result_expires_at: Moment | None = None
    error: JobError | None = None
    errors: Annotated[list[JobError], Meta(description="The failed attempts, oldest first.")] = field(default_factory=list)

    timeout: _Seconds | None = None
    total_timeout: _Seconds | None = None
    enqueue_ttl: _Seconds | None = None
    heartbeat_timeout: _Seconds | None = None
    grace_period: _Seconds | None = None
    result_ttl: (
        Annotated[
            int,
            Meta(
                extra_json_schema={"minimum": -1},
                description="Seconds; 0 keeps none, -1 keeps it and its job for ever.",
            ),
        ]
        | None
    ) = None
    result_size_limit: Annotated[int, Meta(extra_json_schema={"minimum": 1}, description="Bytes.")] | None = None
    schema: str | None = None
    version: Annotated[int | str, Meta(description="Of its type, as it was sent.")] | None = None
    unique: JsonObject | None = None
    rate_limit: JsonObject | None = None
    metadata: JsonObject | None = None
    workflow_id: Uuid | None = None
    workflow_step: (
        Annotated[int, Meta(extra_json_schema={"minimum": 0}, description="Its position in the workflow.")] | None
    ) = None
    workflow_step_id: str | None = None

    previous_state: State | None = None
    rate_limit_until: Annotated[Moment, Meta(description="When its limit has room again.")] | None = None
    checkpoint: Annotated[Checkpoint, Meta(description="What an earlier attempt has saved, to whoever fetches it.")] | None = (
        None
    )
    parent_results: Annotated[
        Any,
        Meta(
            extra_json_schema={"type": "array", "items": {}},
            description="What earlier steps of its workflow hand on, to whoever fetches it.",
        ),
    ] = None
    parent_results_by_index: (
        Annotated[dict[str, Any], Meta(description="The same as an object by the steps' indexes.")] | None
    ) = None

    @property
    def ended(self) -> bool:
        """Whether the job is completed, cancelled or discarded."""
        return self.state in ENDED


class TimelineEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One transition: who, when, why.

    Attributes:
        before: The state before it. None for the first.
        to: The state after it.
    """

    number: _AtLeastOne
    event: str
    at: Moment
    attempt: Count
    before: State | None = field(default=None, name="from")
    to: State | None = None
    worker_id: str | None = None
    reason: str | None = None


class PlannedTransition(Struct, frozen=True, kw_only=True):
    """What will happen by itself, and which service sees to it.

    Attributes:
        service: The service that makes it.
    """

    due_at: Moment
    service: str


class JobDetail(Job, frozen=True, kw_only=True, omit_defaults=True):
    """A job with what happened to it and what will happen by itself. Backtraces are lists of lines.

    Attributes:
        dead_letter: Whether it is kept as a dead letter.
        visible_until: When the server takes it from its worker, unless the worker sends a heartbeat.
        leaves_at: When its record is deleted.
    """

    timeline: Annotated[list[TimelineEntry], Meta(description="Its last transitions, oldest first.")]
    timers: Annotated[list[PlannedTransition], Meta(description="What will happen by itself.")]
    dead_letter: bool
    visible_until: Moment | None = None
    leaves_at: Annotated[Moment, Meta(description="When the record of a finished job leaves.")] | None = None


class OneJob(Struct, frozen=True):
    """The answer about one job."""

    job: Job


class EnqueuedJob(OneJob, frozen=True, omit_defaults=True):
    """A new job."""

    warnings: Warnings | None = None


class PushedJob(Struct, frozen=True, omit_defaults=True):
    """Nothing new: the job that a `unique` policy found."""

    job: Job
    deduplicated: bool | None = None


class AdminChangedJob(Struct, frozen=True):
    """The answer to what an operator does to one job."""

    job: Job


class OneJobDetail(Struct, frozen=True):
    """The answer about one dead letter."""

    job: JobDetail


class JobPage(Indexed, frozen=True, kw_only=True):
    """A page of a list of jobs."""

    jobs: list[Job]
    pagination: Pagination


class AdminJobPage(Indexed, frozen=True, kw_only=True):
    """A page of a list of jobs, as the admin API calls it."""

    items: list[Job]
    pagination: Pagination


class CancelJob(OpenRequest, kw_only=True):
    """Why it is cancelled."""

    reason: Text | None = None


class ChangePriority(OpenRequest, kw_only=True):
    """The priority to come."""

    priority: SentPriority


class ChangedPriority(Struct, frozen=True, kw_only=True):
    """The job's priority now, and what it was (ojs-priority §8.1)."""

    id: Uuid
    priority: Priority
    previous_priority: Priority


class ReadResults(OpenRequest, kw_only=True):
    """The ids of the jobs."""

    ids: Annotated[
        list[str],
        Meta(extra_json_schema={"type": "array", "items": {"type": "string"}, "maxItems": MOST_RESULTS}),
        wanted("a list of job ids"),
    ]


class JobResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`result` is null while, or because, there is none.

    Attributes:
        result: None if the handler returned None, or the job isn't completed.
    """

    job_id: str
    state: Annotated[str, one_of(Literal[words.JobState, "not_found"])]
    result: Any
    completed_at: Moment | None = None
    error: JobError | None = None


class JobResults(Struct, frozen=True):
    """By id as sent; `state` is `not_found` where there is no such job."""

    results: dict[str, JobResult]


class JobsQuery(TypedDict, total=False):
    """What a list of jobs is narrowed by, and its order. What isn't given, or None, doesn't narrow it.

    Attributes:
        state: The state.
        queue: The queue.
        type: The job type. It may end in `*`.
        tag: One of the job's tags.
        error_type: The class of the last error.
        worker: The id of the worker that ran the job.
        since: The earliest time of creation, with a time zone.
        until: The latest time of creation, with a time zone.
        sort: The time or number that the list is sorted by; `"created_at"` if it isn't given.
        order: `"desc"` for the highest first, which is the default; `"asc"` for the lowest.
    """

    state: State | None
    queue: QueueName | None
    type: Annotated[str, Meta(description="A job type, or the beginning of one with * at its end.")] | None
    tag: str | None
    error_type: Annotated[str, Meta(description="Of its last failure.")] | None
    worker: Annotated[str, Meta(description="Who holds it, or held it last.")] | None
    since: Annotated[Moment, Meta(description="Not before this moment.")] | None
    until: Annotated[Moment, Meta(description="Not after this moment.")] | None
    sort: words.Sort | None
    order: words.Order | None


_UNKNOWN: Final = ("not_found",)
_CHANGED: Final = ("not_found", "conflict")
_FOUND_BY: Final = (*query_of(JobsQuery), Parameter("worker_id", str, "Another name of `worker`.", same_as="worker"))
_META_TOO: Final = f"Up to {MOST_META} parameters `meta.<key>=<value>` ask for members of `meta`."
_Wait = Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S, extra_json_schema={"default": STANDARD_WAIT_S})]

# fmt: off
LIST: Final = Operation(
    "listJobs", "GET /jobs", "read", "List jobs", {200: JobPage},
    f"The newest first by default. It has everything that any gateway has answered before. {_META_TOO}",
    query=(*_FOUND_BY, *PAGED), beginnings=(META,), narrowing="parameter",
)
ADMIN_LIST: Final = Operation(
    "adminListJobs", "GET /admin/jobs", "read", "List jobs in numbered pages", {200: AdminJobPage},
    f"The newest first by default. {_META_TOO}",
    query=(*_FOUND_BY, *NUMBERED), beginnings=(META,), narrowing="parameter",
)
GET: Final = Operation(
    "getJob", "GET /jobs/{job_id}", "read", "Read a job", {200: OneJob}, errors=_UNKNOWN, narrowing="job", by_queue=True,
)
DETAIL: Final = Operation(
    "adminGetJob", "GET /admin/jobs/{job_id}", "read", "Read a job in detail", {200: JobDetail},
    "With its timeline (what happened, when, by whom, why) and what will happen to it by itself.",
    errors=_UNKNOWN, narrowing="job",
)
CANCEL: Final = Operation(
    "cancelJob", "DELETE /jobs/{job_id}", "control", "Cancel a job", {200: OneJob},
    "The worker of an active job hears of it with its next heartbeat.",
    also=("POST /jobs/{job_id}/cancel",), body=CancelJob, errors=_CHANGED, narrowing="job", by_queue=True,
)
ADMIN_CANCEL: Final = Operation(
    "adminCancelJob", "POST /admin/jobs/{job_id}/cancel", "control", "Cancel a job, as an operator", {200: AdminChangedJob},
    body=CancelJob, errors=_CHANGED, narrowing="job",
)
RETRY: Final = Operation(
    "adminRetryJob", "POST /admin/jobs/{job_id}/retry", "control", "Retry a job now", {200: AdminChangedJob},
    "A discarded or cancelled job gets a new life, one that waits for its next attempt gets it now.",
    errors=(*_CHANGED, "duplicate"), narrowing="job",
)
RUN: Final = Operation(
    "adminRunJob", "POST /admin/jobs/{job_id}/run", "control", "Run a job now", {200: AdminChangedJob},
    "One that is scheduled, pending, or waits for its next attempt becomes available at once.",
    errors=_CHANGED, narrowing="job",
)
ACTIVATE: Final = Operation(
    "activateJob", "POST /jobs/{job_id}/activate", "control", "Activate a pending job", {200: OneJob},
    errors=_CHANGED, narrowing="job", by_queue=True,
)
REPRIORITISE: Final = Operation(
    "updateJobPriority", "PATCH /jobs/{job_id}", "control", "Change a job's priority", {200: ChangedPriority},
    "Until it is fetched.", also=("PATCH /admin/jobs/{job_id}",), body=ChangePriority, errors=_CHANGED, narrowing="job",
    by_queue=True,
)
RESULT: Final = Operation(
    "getJobResult", "GET /jobs/{job_id}/result", "payloads", "Read or await a job's result", {200: JobResult},
    "408 if it isn't there in time, 410 if it was not kept.",
    query=(Parameter("wait", bool), Parameter("timeout", _Wait, "Seconds.")),
    errors=("not_found", "request_timeout", "result_pruned", "rate_limited"), narrowing="job", by_queue=True,
)
RESULTS: Final = Operation(
    "getJobResults", "POST /jobs/results", "payloads", "Read the results of several jobs", {200: JobResults},
    body=ReadResults, narrowing="job",
)
JOBS: Final = Subject(
    "Jobs", "Jobs one by one",
    (
        LIST, ADMIN_LIST, GET, DETAIL, CANCEL, ADMIN_CANCEL, RETRY, RUN, ACTIVATE, REPRIORITISE, RESULT, RESULTS,
    ),
)

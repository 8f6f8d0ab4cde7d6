"""The worker's side: fetch, acknowledge, report failures, heartbeat (docs/workers.md).

The server reads these requests often, so their structs are decoded as they are: bounds stand in the description, and
the server checks them itself. Members that it doesn't know are passed over.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Raw, Struct

from ojs_api import words
from ojs_api.jobs import Job, State
from ojs_api.members import (
    REQUIRED,
    Count,
    DurationMs,
    ItemError,
    Moment,
    OpenRequest,
    QueueName,
    ShortText,
    TypeName,
    Undecoded,
    Uuid,
    Warnings,
    Whole,
    listed,
    one_of,
    shaped,
    wanted,
    whole,
)
from ojs_api.operations import Operation, Subject
from ojs_api.workers import WorkerHealth

StopReason = Literal["shutdown", "signal", "error"]
"""Why a worker stops (ojs-events §4.3)."""
MOST_QUEUES: Final = 100
MOST_JOBS: Final = 1_000
"""Jobs of one fetch, acks of one request, and jobs in one heartbeat."""
MOST_HANDLERS: Final = 1_000
LONGEST_WAIT_MS: Final = 30_000
STANDARD_WAIT_MS: Final = 200

_NOTHING: Final = Raw()
_IfNotInPath = Annotated[str, Meta(description="Needed where the path doesn't name the job.")]
_Holder = Annotated[ShortText, Meta(description="Who held it: the call is refused if it isn't theirs any more.")]
_Number = Annotated[Whole, Meta(extra_json_schema={"type": "integer"})]
_Attempt = Annotated[_Number, Meta(description="Which attempt this is about.")]
_Queues = Annotated[list[ShortText], listed(MOST_QUEUES)]
_JobIds = Annotated[list[str], listed(MOST_JOBS)]
_StartedAt = Annotated[
    str | int | float,
    Meta(extra_json_schema={"type": "string", "minLength": 1, "maxLength": 255}),
    wanted("a timestamp, or Unix time"),
]
_Json = Annotated[Undecoded, Meta(description="Any JSON.")]
_SentMark = Annotated[str, Meta(extra_json_schema={"maxLength": 40}, description="The `mark` of an answer.")]
_Mark = Annotated[str, Meta(description="When this was, for the `complete` of later heartbeats.")]
_Interval = Annotated[int, Meta(extra_json_schema={"minimum": 1}, description="Seconds.")]


# Requests


class SentHandler(OpenRequest, kw_only=True):
    """A job type that the worker runs."""

    type: Annotated[TypeName, REQUIRED] | None = None
    versions: (
        Annotated[
            str,
            Meta(
                extra_json_schema={"maxLength": 200, "default": "*"},
                description="`*`, a version, or bounds such as `>=1.0 <3.0`.",
            ),
        ]
        | None
    ) = None


_Handlers = Annotated[
    list[SentHandler],
    listed(MOST_HANDLERS),
    Meta(description="What the worker can run: it gets no other jobs. Left out, as it said before; empty, everything."),
]


class AckJob(OpenRequest, kw_only=True):
    """A job that is done."""

    job_id: _IfNotInPath | None = None
    result: _Json = _NOTHING
    worker_id: _Holder | None = None
    attempt: _Attempt | None = None


class DoneJob(AckJob, kw_only=True):
    """One of several jobs that are done."""

    job_id: Annotated[Uuid, REQUIRED] | None = None


class AckJobs(OpenRequest, kw_only=True):
    """Jobs that are done."""

    worker_id: Annotated[str, Meta(description="Of those that don't name one themselves.")] | None = None
    jobs: Annotated[Undecoded, REQUIRED, shaped(Annotated[list[DoneJob], listed(MOST_JOBS, 1)])] = _NOTHING


class FetchJobs(OpenRequest, kw_only=True):
    """What a worker can take."""

    queues: (
        Annotated[list[QueueName], REQUIRED, listed(MOST_QUEUES, 1), Meta(description="Served from the first to the last.")]
        | None
    ) = None
    count: Annotated[int | float, Meta(description="1 if left out, and for 0."), whole(0, MOST_JOBS)] | None = None
    worker_id: ShortText | None = None
    visibility_timeout_ms: DurationMs | None = None
    wait_ms: (
        Annotated[
            int | float,
            Meta(description=f"Left out, as the server is set: {STANDARD_WAIT_MS} unless it is set."),
            whole(0, LONGEST_WAIT_MS),
        ]
        | None
    ) = None
    pool: Annotated[QueueName, Meta(description="The worker's: queues of isolated pools give jobs to no other.")] | None = None
    handlers: _Handlers | None = None
    acks: Annotated[
        Undecoded,
        shaped(Annotated[list[DoneJob], listed(MOST_JOBS)]),
        Meta(description="Jobs that are done, as `ackJobs` takes them. Those that don't name a worker are of `worker_id`."),
    ] = _NOTHING
    handlers_declared: (
        Annotated[
            bool,
            Meta(description="The worker has declared handlers: 404 if they aren't known, and it has to register again."),
        ]
        | None
    ) = None


class SentError(OpenRequest, kw_only=True):
    """What went wrong."""

    message: Annotated[str, REQUIRED] | None = None
    code: str | None = None
    type: str | None = None
    retryable: bool | None = None
    action: Annotated[str, one_of(words.FailureAction)] | None = None
    details: _Json = _NOTHING
    backtrace: _Json = _NOTHING
    rate_limit_until: (
        Annotated[
            str,
            Meta(
                extra_json_schema={"format": "date-time"},
                description="Nothing under the job's rate limit key is to start before.",
            ),
        ]
        | None
    ) = None


class NackJob(OpenRequest, kw_only=True):
    """A failed attempt, or a job that is handed back."""

    job_id: _IfNotInPath | None = None
    error: Annotated[SentError | str, Meta(description="What went wrong; needed unless `requeue` is true.")] | None = None
    worker_id: _Holder | None = None
    attempt: _Attempt | None = None
    requeue: Annotated[bool, Meta(description="Give the job back without counting the attempt.")] | None = None
    retry_after_ms: (
        Annotated[DurationMs, Meta(description="When it goes on: in place of its policy's pause, or of at once.")] | None
    ) = None


class Complete(OpenRequest, kw_only=True):
    """Of a heartbeat: its list names every job that this process holds, of those that it was given between these marks.

    What isn't named is requeued without counting the attempt; what was claimed before `since` was held by an earlier
    process of this id, which is dead.
    """

    since: Annotated[_SentMark, REQUIRED] | None = None
    until: Annotated[_SentMark, REQUIRED] | None = None


class RegisterWorker(OpenRequest, kw_only=True):
    """What a worker says of itself."""

    worker_id: Annotated[ShortText, REQUIRED] | None = None
    state: Annotated[str, Meta(description="running, quiet, drain or terminate; anything else counts as running.")] | None = (
        None
    )
    hostname: ShortText | None = None
    pid: _Number | None = None
    queues: _Queues | None = None
    concurrency: _Number | None = None
    labels: Annotated[Undecoded, Meta(description="Any JSON, such as an object of texts.")] = _NOTHING
    started_at: _StartedAt | None = None
    handlers: _Handlers | None = None


class Heartbeat(RegisterWorker, kw_only=True):
    """What a worker says of itself and of its jobs."""

    active_jobs: Annotated[_JobIds | _Number, Meta(description="Ids of the jobs, or how many.")] | None = None
    active_job_ids: _JobIds | None = None
    visibility_timeout_ms: DurationMs | None = None
    complete: Complete | None = None


class DeregisterWorker(OpenRequest, kw_only=True):
    """A worker that stops."""

    worker_id: Annotated[ShortText, Meta(description="Needed where the path doesn't name the worker.")] | None = None
    reason: StopReason | None = None
    pid: _Number | None = None
    started_at: (
        Annotated[_StartedAt, Meta(description="With `pid`: of the process. 404 if another has the id by now.")] | None
    ) = None


# Answers


class JobOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has become of a job whose attempt has ended, and when it goes on."""

    id: Uuid
    state: State
    attempt: Count
    max_attempts: Count
    job: Job
    completed_at: Moment | None = None
    discarded_at: Moment | None = None
    next_attempt_at: Moment | None = None


class AckAnswer(JobOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """The job is done."""

    acknowledged: bool


class AckedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one job of the request."""

    index: Count
    status: Annotated[str, one_of(Literal["acknowledged", "failed"])]
    job_id: Uuid | None = None
    error: ItemError | None = None


class AcksAnswer(Struct, frozen=True):
    """What became of each job."""

    total: Count
    succeeded: Count
    failed: Count
    items: list[AckedItem]


class FetchedJobs(Struct, frozen=True, omit_defaults=True):
    """Jobs to work on; those of workflows with what earlier steps hand on.

    `acks`: what became of those that came with the fetch. `fetch_error`: why such a fetch brings no jobs, if it failed.
    """

    jobs: list[Job]
    acks: AcksAnswer | None = None
    fetch_error: ItemError | None = None


class NackAnswer(JobOutcome, frozen=True, kw_only=True, omit_defaults=True):
    """The attempt has failed. `rate_limit_until`: until when the job's limit lets nothing start."""

    retry_delay_ms: Count | None = None
    rate_limit_until: Moment | None = None
    warnings: Warnings | None = None


class HeartbeatAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the worker should be, and which of its jobs are still its own."""

    acknowledged: bool
    state: Annotated[str, Meta(description="What the worker should be: running, quiet or terminate.")]
    jobs_extended: list[str]
    server_time: Moment
    mark: _Mark
    cancelled_jobs: Annotated[list[str], Meta(description="Jobs that the worker should stop.")] | None = None
    warnings: Warnings | None = None


class RegisteredWorker(Struct, frozen=True, kw_only=True):
    """The intervals that a worker should keep to (ojs-worker-protocol §3)."""

    ok: bool
    worker_id: str
    server_time: Moment
    mark: _Mark
    heartbeat_interval: _Interval
    heartbeat_timeout: _Interval
    visibility_timeout_default: _Interval


class DeregisteredWorker(Struct, frozen=True):
    """The worker is gone."""

    ok: bool
    worker_id: str


_REPORTS: Final = ("not_found", "conflict")

# fmt: off
FETCH: Final = Operation(
    "fetchJobs", "POST /workers/fetch", "work", "Fetch jobs to work on", {200: FetchedJobs},
    "Answered at once if there is work, else as soon as some arrives or `wait_ms` is over. Jobs in `acks` are acknowledged "
    "before, each by itself; such a fetch is answered at once, and brings one job fewer than `count` for each that is refused.",
    also=("POST /jobs/fetch",), body=FetchJobs,
    errors=("queue_name_too_long", "not_found", "batch_size_exceeded", "rate_limited"), narrowing="body", by_queue=True,
)
ACK: Final = Operation(
    "ackJob", "POST /workers/ack", "work", "Report that a job is done", {200: AckAnswer},
    also=("POST /jobs/{job_id}/ack",), body=AckJob, errors=(*_REPORTS, "result_too_large"), narrowing="job", by_queue=True,
)
ACK_MANY: Final = Operation(
    "ackJobs", "POST /workers/acks", "work", "Report that jobs are done", {200: AcksAnswer, 207: AcksAnswer},
    "Each by itself: 207 when some were refused, each item says why. 503 when NATS was in the way of all.",
    body=AckJobs, errors=("batch_size_exceeded",), narrowing="job", by_queue=True,
)
NACK: Final = Operation(
    "nackJob", "POST /workers/nack", "work", "Report that a job has failed", {200: NackAnswer},
    "The answer says what becomes of it, and when.",
    also=("POST /workers/fail", "POST /jobs/{job_id}/nack", "POST /jobs/{job_id}/fail"),
    body=NackJob, errors=_REPORTS, narrowing="job", by_queue=True,
)
HEARTBEAT: Final = Operation(
    "workerHeartbeat", "POST /workers/heartbeat", "work", "Send a sign of life", {200: HeartbeatAnswer},
    also=("POST /workers/beat",), body=Heartbeat, narrowing="worker", by_queue=True,
)
REGISTER: Final = Operation(
    "registerWorker", "POST /workers/register", "work", "Announce a worker", {200: RegisteredWorker},
    body=RegisterWorker, narrowing="worker", by_queue=True,
)
HEALTH: Final = Operation(
    "getWorkerHealth", "GET /workers/{worker_id}/health", "read", "Read whether a worker takes jobs",
    {200: WorkerHealth, 503: WorkerHealth}, "503 if it is about to leave, or was not heard of for 30 s.", errors=("not_found",),
)
DEREGISTER: Final = Operation(
    "deregisterWorker", "POST /workers/deregister", "work", "Say that a worker is gone", {200: DeregisteredWorker},
    "What it still holds is requeued without counting the attempt.",
    also=("DELETE /workers/{worker_id}",), body=DeregisterWorker, errors=("not_found",), narrowing="worker", by_queue=True,
)
WORK: Final = Subject(
    "Workers", "The worker's side: fetch, acknowledge, heartbeat",
    (FETCH, ACK, ACK_MANY, NACK, HEARTBEAT, REGISTER, HEALTH, DEREGISTER),
)

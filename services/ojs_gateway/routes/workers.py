"""The worker's side, and the workers as operators see them."""

from __future__ import annotations

from typing import Final, get_args

from ojs_api import words
from ojs_api import workers as contract
from ojs_engine.api.common import (
    COUNT,
    JOB_ID,
    OBJECT,
    QUEUE_NAME,
    SHORT,
    TYPE_NAME,
)
from ojs_engine.api.contract import part_of
from ojs_engine.api.envelope import DURATION_MS
from ojs_engine.api.route import Parameter, Part, Route
from ojs_engine.api.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    body_of,
    either,
    list_of,
    one_of,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.workers.answers import (
    AckAnswer,
    AcksAnswer,
    DeregisteredWorker,
    FetchedJobs,
    HeartbeatAnswer,
    NackAnswer,
    RegisteredWorker,
)
from ojs_engine.wire.workers.requests import (
    STOP_REASONS,
    AckBody,
    AcksBody,
    CompleteBody,
    DeregisterBody,
    ErrorBody,
    FetchBody,
    HandlerBody,
    NackBody,
    WorkerBody,
)
from ojs_gateway.handlers.worker_admin import WorkerAdminHandlers
from ojs_gateway.handlers.workers import WorkerHandlers

_IN_BODY: Final = text("Needed where the path doesn't name the job.")
_WORKER_IN_BODY: Final = text("Needed where the path doesn't name the worker.")
_FENCE: Final[dict[str, Schema]] = {
    "worker_id": SHORT | {"description": "Who held it: the call is refused if it isn't theirs any more."},
    "attempt": whole(1, about="Which attempt this is about."),
}
_ACKED: Final = body_of(AckBody, "job_id", job_id=JOB_ID, result=ANYTHING, **_FENCE)
_FAILURE: Final = body_of(
    ErrorBody,
    "message",
    action=one_of(*get_args(words.FailureAction)),
    details=ANYTHING,
    backtrace=ANYTHING,
    rate_limit_until=TIME | {"description": "Nothing under the job's rate limit key is to start before."},
)
_HANDLERS: Final = list_of(
    body_of(
        HandlerBody,
        "type",
        type=TYPE_NAME,
        versions=text("`*`, a version, or bounds such as `>=1.0 <3.0`.", most=200) | {"default": "*"},
    ),
    most=DEFAULT_LIMITS.max_handlers,
    about="What the worker can run: it gets no other jobs. Left out, as it said before; empty, everything.",
)
_MARK: Final = text("The `mark` of an answer.", most=40)
_COMPLETE: Final = body_of(CompleteBody, "since", "until", since=_MARK, until=_MARK) | {
    "description": "Of a heartbeat: its list names every job that this process holds, of those that it was given between these "
    "marks. What isn't named is requeued without counting the attempt; what was claimed before `since` was held by an earlier "
    "process of this id, which is dead."
}
_WORKER_MEMBERS: Final[dict[str, Schema]] = {
    "worker_id": SHORT,
    "active_jobs": either(list_of(TEXT, most=DEFAULT_LIMITS.max_active_jobs), COUNT, about="Ids of the jobs, or how many."),
    "active_job_ids": list_of(TEXT, most=DEFAULT_LIMITS.max_active_jobs),
    "visibility_timeout_ms": DURATION_MS,
    "state": text("running, quiet, drain or terminate; anything else counts as running."),
    "hostname": SHORT,
    "queues": list_of(SHORT, most=DEFAULT_LIMITS.max_queues),
    "labels": OBJECT,
    "started_at": SHORT,
    "handlers": _HANDLERS,
    "complete": _COMPLETE,
}
_WORKER_BODY: Final = Named("WorkerReport", body_of(WorkerBody, "worker_id", **_WORKER_MEMBERS))
_REPORTS: Final = ("not_found", "conflict")

WORKERS: Final = Part(
    "Workers",
    "The worker's side: fetch, acknowledge, heartbeat",
    (
        Route(
            WorkerHandlers,
            WorkerHandlers.fetch,
            ("POST /workers/fetch fetchJobs", "POST /jobs/fetch"),
            "work",
            "Fetch jobs to work on",
            {200: FetchedJobs},
            "Answered at once if there is work, else as soon as some arrives or `wait_ms` is over. "
            "Jobs in `acks` are acknowledged before, each by itself; such a fetch is answered at once, "
            "and brings one job fewer than `count` for each that is refused.",
            body=body_of(
                FetchBody,
                "queues",
                queues=list_of(QUEUE_NAME, 1, DEFAULT_LIMITS.max_queues, "Served from the first to the last."),
                count=whole(1, DEFAULT_LIMITS.max_fetch_count) | {"default": 1},
                worker_id=SHORT,
                visibility_timeout_ms=DURATION_MS,
                wait_ms=whole(
                    0,
                    DEFAULT_LIMITS.max_wait_ms,
                    f"Left out, as the server is set: {DEFAULT_LIMITS.default_wait_ms} unless it is set.",
                ),
                pool=QUEUE_NAME | {"description": "The worker's: queues of isolated pools give jobs to no other."},
                handlers=_HANDLERS,
                acks=list_of(
                    _ACKED,
                    most=DEFAULT_LIMITS.max_fetch_count,
                    about="Jobs that are done, as `ackJobs` takes them. Those that don't name a worker are of `worker_id`.",
                ),
                handlers_declared=FLAG
                | {"description": "The worker has declared handlers: 404 if they aren't known, and it has to register again."},
            ),
            errors=("queue_name_too_long", "not_found", "batch_size_exceeded", "rate_limited"),
            narrowing="body",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.ack,
            ("POST /workers/ack ackJob", "POST /jobs/{job_id}/ack"),
            "work",
            "Report that a job is done",
            {200: AckAnswer},
            body=body_of(AckBody, job_id=_IN_BODY, result=ANYTHING, **_FENCE),
            errors=(*_REPORTS, "result_too_large"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.ack_many,
            ("POST /workers/acks ackJobs",),
            "work",
            "Report that jobs are done",
            {200: AcksAnswer, 207: AcksAnswer},
            "Each by itself: 207 when some were refused, each item says why. 503 when NATS was in the way of all.",
            body=body_of(
                AcksBody,
                "jobs",
                worker_id=SHORT | {"description": "Of those that don't name one themselves."},
                jobs=list_of(_ACKED, 1, DEFAULT_LIMITS.max_fetch_count),
            ),
            errors=("batch_size_exceeded",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.nack,
            (
                "POST /workers/nack nackJob",
                "POST /workers/fail",
                "POST /jobs/{job_id}/nack",
                "POST /jobs/{job_id}/fail",
            ),
            "work",
            "Report that a job has failed",
            {200: NackAnswer},
            "The answer says what becomes of it, and when.",
            body=body_of(
                NackBody,
                job_id=_IN_BODY,
                error=either(_FAILURE, TEXT, about="What went wrong; needed unless `requeue` is true."),
                requeue=FLAG | {"description": "Give the job back without counting the attempt."},
                retry_after_ms=DURATION_MS | {"description": "When it goes on: in place of its policy's pause, or of at once."},
                **_FENCE,
            ),
            errors=_REPORTS,
            narrowing="job",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.heartbeat,
            ("POST /workers/heartbeat workerHeartbeat", "POST /workers/beat"),
            "work",
            "Send a sign of life",
            {200: HeartbeatAnswer},
            body=_WORKER_BODY,
            narrowing="worker",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.register,
            ("POST /workers/register registerWorker",),
            "work",
            "Announce a worker",
            {200: RegisteredWorker},
            body=_WORKER_BODY,
            narrowing="worker",
            by_queue=True,
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.health,
            ("GET /workers/{worker_id}/health getWorkerHealth",),
            "read",
            "Read whether a worker takes jobs",
            {200: contract.WorkerHealth, 503: contract.WorkerHealth},
            "503 if it is about to leave, or was not heard of for 30 s.",
            errors=("not_found",),
        ),
        Route(
            WorkerHandlers,
            WorkerHandlers.deregister,
            ("POST /workers/deregister deregisterWorker", "DELETE /workers/{worker_id}"),
            "work",
            "Say that a worker is gone",
            {200: DeregisteredWorker},
            "What it still holds is requeued without counting the attempt.",
            body=body_of(
                DeregisterBody,
                worker_id=_WORKER_IN_BODY,
                reason=one_of(*STOP_REASONS),
                started_at=SHORT | {"description": "With `pid`: of the process. 404 if another has the id by now."},
            ),
            errors=("not_found",),
            narrowing="worker",
            by_queue=True,
        ),
    ),
)

_SEARCH: Final = Parameter("search", SHORT, "A part of the id, the host or the name of a queue, in capital or small letters.")
FLEET: Final = part_of(
    contract.FLEET,
    (
        WorkerAdminHandlers,
        {
            contract.ADMIN_LIST: WorkerAdminHandlers.admin_list,
            contract.LIST: WorkerAdminHandlers.list,
            contract.GET: WorkerAdminHandlers.read,
            contract.REMOVE: WorkerAdminHandlers.remove,
            contract.QUIET: WorkerAdminHandlers.quiet,
            contract.DIRECT: WorkerAdminHandlers.direct,
            contract.DIRECT_ALL: WorkerAdminHandlers.direct_all,
        },
    ),
)

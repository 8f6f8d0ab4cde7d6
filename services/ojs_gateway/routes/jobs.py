"""Jobs one by one."""

from __future__ import annotations

from typing import Final, get_args

from ojs_api import words
from ojs_engine.api.common import (
    IDEMPOTENCY_KEY,
    NUMBERED,
    OBJECT,
    PAGED,
    PERIOD,
    PRIORITY,
    PUSH_REFUSALS,
    QUEUE_NAME,
    SHORT,
    STATE,
)
from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.api.route import Other, Parameter, Part, Route
from ojs_engine.api.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    body_of,
    list_of,
    number,
    one_of,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.members import FOUND_BY
from ojs_engine.wire.jobs.checkpoints import CheckpointBody, DeletedCheckpoint, OneCheckpoint, Resume, SavedCheckpoint
from ojs_engine.wire.jobs.filters import MAX_MEMBERS, META
from ojs_engine.wire.jobs.job import AdminChangedJob, EnqueuedJob, OneJob, PushedJob
from ojs_engine.wire.jobs.lists import AdminJobPage, JobDetail, JobPage
from ojs_engine.wire.jobs.priority import ChangedPriority, PriorityBody
from ojs_engine.wire.jobs.progress import MAX_MESSAGE, ProgressAnswer, ProgressBody, ReportedProgress
from ojs_engine.wire.jobs.results import JobResult, JobResults
from ojs_engine.wire.workers.requests import CancelBody, IdsBody
from ojs_gateway.handlers.admin import AdminHandlers
from ojs_gateway.handlers.checkpoints import CheckpointHandlers
from ojs_gateway.handlers.jobs import JobHandlers
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.handlers.progress import ProgressHandlers

_CANCEL_BODY: Final = body_of(CancelBody, reason=SHORT)
_PROGRESS_STREAM: Final = Other(
    "text/event-stream", "`progress` with what is answered to who reads it; the last is `completed`, `failed` or `cancelled`."
)
_PROGRESS_BODY: Final = body_of(
    ProgressBody,
    job_id=text("Needed where the path doesn't name the job."),
    progress=number(about="From 0 to 1; what is beyond counts as the end."),
    percentage=number(about="The same from 0 to 100."),
    message=text(most=MAX_MESSAGE),
    data=OBJECT | {"description": f"Up to {DEFAULT_LIMITS.max_progress_bytes} bytes as JSON."},
    checkpoint=ANYTHING | {"description": "Refused."},
    worker_id=SHORT,
    attempt=whole(1),
)
_CHECKPOINT_BODY: Final = body_of(
    CheckpointBody,
    "state",
    state=ANYTHING | {"description": f"Any JSON; with `metadata` up to {DEFAULT_LIMITS.max_checkpoint_bytes} bytes."},
    step_index=whole(),
    metadata=OBJECT,
    worker_id=SHORT,
    attempt=whole(1),
)
_META: Final = f"Up to {MAX_MEMBERS} parameters `meta.<key>=<value>` ask for members of `meta`."
_FILTERS: Final = (
    Parameter("state", STATE),
    Parameter("queue", QUEUE_NAME),
    Parameter("type", TEXT, "A job type, or the beginning of one with * at its end."),
    *(Parameter(by.name, TEXT, by.about) for by in FOUND_BY),
    Parameter("worker_id", TEXT, "Another name of `worker`.", same_as="worker"),
    *PERIOD,
    Parameter("sort", one_of(*get_args(words.Sort))),
    Parameter("order", one_of(*get_args(words.Order))),
)

JOBS: Final = Part(
    "Jobs",
    "Jobs one by one",
    (
        Route(
            JobHandlers,
            JobHandlers.push,
            ("POST /jobs createJob",),
            "enqueue",
            "Push a job",
            {
                201: EnqueuedJob,
                200: PushedJob,
            },
            body=ENVELOPE,
            query=(IDEMPOTENCY_KEY,),
            errors=PUSH_REFUSALS,
            narrowing="body",
            by_queue=True,
        ),
        Route(
            ListHandlers,
            ListHandlers.jobs,
            ("GET /jobs listJobs",),
            "read",
            "List jobs",
            {200: JobPage},
            f"The newest first by default. It has everything that any gateway has answered before. {_META}",
            query=(*_FILTERS, *PAGED),
            beginnings=(META,),
            narrowing="parameter",
        ),
        Route(
            ListHandlers,
            ListHandlers.admin_jobs,
            ("GET /admin/jobs adminListJobs",),
            "read",
            "List jobs in numbered pages",
            {200: AdminJobPage},
            f"The newest first by default. {_META}",
            query=(*_FILTERS, *NUMBERED),
            beginnings=(META,),
            narrowing="parameter",
        ),
        Route(
            JobHandlers,
            JobHandlers.read,
            ("GET /jobs/{job_id} getJob",),
            "read",
            "Read a job",
            {200: OneJob},
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            ProgressHandlers,
            ProgressHandlers.report,
            ("PUT /jobs/{job_id}/progress reportJobProgress", "POST /workers/progress reportProgress"),
            "work",
            "Report how far a job has come",
            {200: ReportedProgress},
            "A sign of life as well: it renews the lease. A job that isn't active, or that another worker holds, stays as it "
            "is. One report a second is stored for a job, the latest.",
            body=_PROGRESS_BODY,
            errors=("not_found", "metadata_too_large", "unsupported"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            ProgressHandlers,
            ProgressHandlers.read,
            ("GET /jobs/{job_id}/progress getJobProgress",),
            "read",
            "Read how far a job has come",
            {200: ProgressAnswer},
            "1 once a job that has told of its progress is completed.",
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            ProgressHandlers,
            ProgressHandlers.stream,
            ("GET /jobs/{job_id}/progress/stream streamJobProgress",),
            "read",
            "Follow how far a job has come",
            {
                200: Other(
                    "text/event-stream",
                    "`progress` with what the other operation answers, at last `completed`, `failed` or `cancelled`.",
                )
            },
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            CheckpointHandlers,
            CheckpointHandlers.save,
            (
                "PUT /jobs/{job_id}/checkpoint putJobCheckpoint",
                "POST /jobs/{job_id}/checkpoint saveJobCheckpoint",
                "POST /checkpoints/{job_id} saveCheckpoint",
                "PUT /checkpoints/{job_id} putCheckpoint",
            ),
            "work",
            "Save what a later attempt can go on from",
            {200: SavedCheckpoint},
            "In the place of what was saved before. It is given to who fetches the job next.",
            body=_CHECKPOINT_BODY,
            errors=("not_found", "conflict", "envelope_too_large"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            CheckpointHandlers,
            CheckpointHandlers.read,
            ("GET /jobs/{job_id}/checkpoint getJobCheckpoint", "GET /checkpoints/{job_id}"),
            "work",
            "Read what was saved last",
            {200: OneCheckpoint},
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            CheckpointHandlers,
            CheckpointHandlers.resume,
            ("GET /checkpoints/{job_id}/resume resumeCheckpoint",),
            "work",
            "Ask whether there is something to go on from",
            {200: Resume},
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            CheckpointHandlers,
            CheckpointHandlers.delete,
            ("DELETE /jobs/{job_id}/checkpoint deleteJobCheckpoint", "DELETE /checkpoints/{job_id}"),
            "work",
            "Delete what was saved",
            {200: DeletedCheckpoint},
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            ListHandlers,
            ListHandlers.detail,
            ("GET /admin/jobs/{job_id} adminGetJob",),
            "read",
            "Read a job in detail",
            {200: JobDetail},
            "With its timeline (what happened, when, by whom, why) and what will happen to it by itself.",
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            JobHandlers,
            JobHandlers.cancel,
            ("DELETE /jobs/{job_id} cancelJob", "POST /jobs/{job_id}/cancel"),
            "control",
            "Cancel a job",
            {200: OneJob},
            "The worker of an active job hears of it with its next heartbeat.",
            body=_CANCEL_BODY,
            errors=("not_found", "conflict"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            AdminHandlers,
            AdminHandlers.cancel,
            ("POST /admin/jobs/{job_id}/cancel adminCancelJob",),
            "control",
            "Cancel a job, as an operator",
            {200: AdminChangedJob},
            body=_CANCEL_BODY,
            errors=("not_found", "conflict"),
            narrowing="job",
        ),
        Route(
            AdminHandlers,
            AdminHandlers.retry,
            ("POST /admin/jobs/{job_id}/retry adminRetryJob",),
            "control",
            "Retry a job now",
            {200: AdminChangedJob},
            "A discarded or cancelled job gets a new life, one that waits for its next attempt gets it now.",
            errors=("not_found", "conflict", "duplicate"),
            narrowing="job",
        ),
        Route(
            AdminHandlers,
            AdminHandlers.run,
            ("POST /admin/jobs/{job_id}/run adminRunJob",),
            "control",
            "Run a job now",
            {200: AdminChangedJob},
            "One that is scheduled, pending, or waits for its next attempt becomes available at once.",
            errors=("not_found", "conflict"),
            narrowing="job",
        ),
        Route(
            JobHandlers,
            JobHandlers.activate,
            ("POST /jobs/{job_id}/activate activateJob",),
            "control",
            "Activate a pending job",
            {200: OneJob},
            errors=("not_found", "conflict"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            JobHandlers,
            JobHandlers.reprioritise,
            ("PATCH /jobs/{job_id} updateJobPriority", "PATCH /admin/jobs/{job_id}"),
            "control",
            "Change a job's priority",
            {200: ChangedPriority},
            "Until it is fetched.",
            body=body_of(PriorityBody, "priority", priority=PRIORITY),
            errors=("not_found", "conflict"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            JobHandlers,
            JobHandlers.result,
            ("GET /jobs/{job_id}/result getJobResult",),
            "payloads",
            "Read or await a job's result",
            {200: JobResult},
            "408 if it isn't there in time, 410 if it was not kept.",
            query=(
                Parameter("wait", FLAG),
                Parameter(
                    "timeout",
                    number(0, DEFAULT_LIMITS.max_result_wait_s) | {"default": DEFAULT_LIMITS.default_result_wait_s},
                    "Seconds.",
                ),
            ),
            errors=("not_found", "request_timeout", "result_pruned", "rate_limited"),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            JobHandlers,
            JobHandlers.results,
            ("POST /jobs/results getJobResults",),
            "payloads",
            "Read the results of several jobs",
            {200: JobResults},
            body=body_of(IdsBody, "ids", ids=list_of(text(), most=DEFAULT_LIMITS.max_result_ids)),
            narrowing="job",
        ),
    ),
)

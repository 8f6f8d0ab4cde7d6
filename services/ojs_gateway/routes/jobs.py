"""Jobs one by one."""

from __future__ import annotations

from typing import Final

from ojs_api import jobs as contract
from ojs_engine.api.common import (
    IDEMPOTENCY_KEY,
    OBJECT,
    PUSH_REFUSALS,
    SHORT,
)
from ojs_engine.api.contract import part_of
from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.api.route import Other, Part, Route
from ojs_engine.api.schema import (
    ANYTHING,
    body_of,
    number,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.jobs.progress import MAX_MESSAGE, ProgressAnswer, ProgressBody, ReportedProgress
from ojs_gateway.handlers.admin import AdminHandlers
from ojs_gateway.handlers.jobs import JobHandlers
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.handlers.progress import ProgressHandlers

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
_OF_THE_CONTRACT: Final = part_of(
    contract.JOBS,
    (
        JobHandlers,
        {
            contract.GET: JobHandlers.read,
            contract.CANCEL: JobHandlers.cancel,
            contract.ACTIVATE: JobHandlers.activate,
            contract.REPRIORITISE: JobHandlers.reprioritise,
            contract.RESULT: JobHandlers.result,
            contract.RESULTS: JobHandlers.results,
        },
    ),
    (
        AdminHandlers,
        {
            contract.ADMIN_CANCEL: AdminHandlers.cancel,
            contract.RETRY: AdminHandlers.retry,
            contract.RUN: AdminHandlers.run,
        },
    ),
    (
        ListHandlers,
        {
            contract.LIST: ListHandlers.jobs,
            contract.ADMIN_LIST: ListHandlers.admin_jobs,
            contract.DETAIL: ListHandlers.detail,
        },
    ),
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
                201: contract.EnqueuedJob,
                200: contract.PushedJob,
            },
            body=ENVELOPE,
            query=(IDEMPOTENCY_KEY,),
            errors=PUSH_REFUSALS,
            narrowing="body",
            by_queue=True,
        ),
        *_OF_THE_CONTRACT.routes,
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
    ),
)

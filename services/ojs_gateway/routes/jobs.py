"""Jobs one by one."""

from __future__ import annotations

from typing import Final

from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.read.messages import Sort
from ojs_core.wire.filters import MAX_MEMBERS, MAX_TEXT
from ojs_core.wire.priority import PriorityBody
from ojs_core.wire.worker import CancelBody, IdsBody
from ojs_gateway.handlers.admin import AdminHandlers
from ojs_gateway.handlers.jobs import JobHandlers
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.openapi.common import (
    COUNT,
    FAILED_ATTEMPT,
    JOB,
    JOB_DETAIL,
    JOB_ID,
    JOB_OPTIONAL,
    JOB_REQUIRED,
    NUMBERED,
    PAGED,
    PERIOD,
    PRIORITY,
    QUEUE_NAME,
    RETRY_POLICY,
    SHORT,
    STATE,
    page_of,
)
from ojs_gateway.openapi.envelope import ENVELOPE, PUSH_REFUSALS
from ojs_gateway.openapi.route import Parameter, Part, Route
from ojs_gateway.openapi.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    body_of,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    record,
    text,
    whole,
)

_ONE: Final = record({"job": JOB})
_CHANGED: Final = Named("ChangedJob", record({**JOB_REQUIRED, "job": JOB}, JOB_OPTIONAL, free=True))
_RESULT: Final = Named(
    "JobResult",
    record(
        {"job_id": TEXT, "state": {"anyOf": [STATE, {"const": "not_found"}]}, "result": ANYTHING},
        {"completed_at": TIME, "error": FAILED_ATTEMPT},
        about="`result` is null while, or because, there is none.",
    ),
)
_FINGERPRINT: Final = record({"key": TEXT, "job_id": JOB_ID, "type": TEXT, "queue": TEXT, "state": STATE})
_ATTEMPT: Final[dict[str, Schema]] = {
    **dict.fromkeys(("state", "error", "code", "type"), TEXT),
    "attempt": COUNT,
    "failed_at": TIME,
}
_CANCEL_BODY: Final = body_of(CancelBody, reason=SHORT)
_SORTS: Final[tuple[str, ...]] = Sort.__args__  # type: ignore[attr-defined]
_META: Final = f"Up to {MAX_MEMBERS} parameters `meta.<key>=<value>` ask for members of `meta`."
_FILTERS: Final = (
    Parameter("state", STATE),
    Parameter("queue", QUEUE_NAME),
    Parameter("type", TEXT, "A job type, or the beginning of one with * at its end."),
    Parameter("tag", TEXT),
    Parameter("error_type", TEXT, "Of its last failure."),
    Parameter("worker", TEXT, "Who holds it, or held it last."),
    Parameter("worker_id", TEXT, "Another name of `worker`."),
    *PERIOD,
    Parameter("text", text(most=MAX_TEXT), "Words that are all in its arguments; 422 unless the projectors index them."),
    Parameter("sort", one_of(*_SORTS)),
    Parameter("order", one_of("desc", "asc")),
)
_PAGE: Final = Named("JobPage", page_of(JOB, "jobs", "items", total=COUNT))

JOBS: Final = Part(
    "Jobs",
    "Jobs one by one",
    (
        Route(
            JobHandlers,
            JobHandlers.push,
            ("POST /jobs createJob",),
            "Push a job",
            {
                201: _ONE,
                200: record(
                    {"job": nullable(JOB)},
                    {"deduplicated": FLAG, "enqueued": FLAG},
                    about="Nothing new: the job that a `unique` policy found, or null if enqueue middleware dropped it.",
                ),
            },
            body=ENVELOPE,
            errors=PUSH_REFUSALS,
        ),
        Route(
            ListHandlers,
            ListHandlers.jobs,
            ("GET /jobs listJobs",),
            "List jobs",
            {200: _PAGE},
            f"The newest first by default. It has everything that any gateway has answered before. {_META}",
            query=(*_FILTERS, *PAGED),
        ),
        Route(
            ListHandlers,
            ListHandlers.admin_jobs,
            ("GET /admin/jobs adminListJobs",),
            "List jobs in numbered pages",
            {200: _PAGE},
            f"The newest first by default. {_META}",
            query=(*_FILTERS, *NUMBERED),
        ),
        Route(JobHandlers, JobHandlers.read, ("GET /jobs/{job_id} getJob",), "Read a job", {200: _ONE}, errors=("not_found",)),
        Route(
            ListHandlers,
            ListHandlers.detail,
            ("GET /admin/jobs/{job_id} adminGetJob",),
            "Read a job in detail",
            {200: JOB_DETAIL},
            "With its timeline (what happened, when, by whom, why) and what will happen to it by itself.",
            errors=("not_found",),
        ),
        Route(
            AdminHandlers,
            AdminHandlers.trace,
            ("GET /admin/jobs/{job_id}/trace getJobTrace", "GET /events/{job_id}/history"),
            "Read a job's log in short",
            {
                200: record(
                    {
                        "job_id": JOB_ID,
                        "snapshots": list_of(
                            record({"phase": TEXT, "state": nullable(STATE), "at": TIME}, {"duration": TEXT, "error": TEXT})
                        ),
                        "events": list_of(record({"type": TEXT, "state": nullable(STATE), "timestamp": TIME})),
                    }
                )
            },
            errors=("not_found",),
        ),
        Route(
            ListHandlers,
            ListHandlers.unique_jobs,
            ("GET /unique-jobs listUniqueJobs",),
            "List fingerprints of unique jobs",
            {200: page_of(_FINGERPRINT, "items", "unique_jobs")},
            "Those that jobs hold which have not ended.",
            query=NUMBERED,
        ),
        Route(
            JobHandlers,
            JobHandlers.cancel,
            ("DELETE /jobs/{job_id} cancelJob", "POST /jobs/{job_id}/cancel"),
            "Cancel a job",
            {200: _ONE},
            "The worker of an active job hears of it with its next heartbeat.",
            body=_CANCEL_BODY,
            errors=("not_found", "conflict"),
        ),
        Route(
            AdminHandlers,
            AdminHandlers.cancel,
            ("POST /admin/jobs/{job_id}/cancel adminCancelJob",),
            "Cancel a job, as an operator",
            {200: _CHANGED},
            body=_CANCEL_BODY,
            errors=("not_found", "conflict"),
        ),
        Route(
            AdminHandlers,
            AdminHandlers.retry,
            ("POST /admin/jobs/{job_id}/retry adminRetryJob",),
            "Retry a job now",
            {200: _CHANGED},
            "A discarded or cancelled job gets a new life, one that waits for its next attempt gets it now.",
            errors=("not_found", "conflict", "duplicate"),
        ),
        Route(
            JobHandlers,
            JobHandlers.activate,
            ("POST /jobs/{job_id}/activate activateJob",),
            "Activate a pending job",
            {200: _ONE},
            errors=("not_found", "conflict"),
        ),
        Route(
            JobHandlers,
            JobHandlers.reprioritise,
            ("PATCH /jobs/{job_id} updateJobPriority", "PATCH /admin/jobs/{job_id}"),
            "Change a job's priority",
            {200: record({"id": JOB_ID, "priority": whole(-100, 100), "previous_priority": whole(-100, 100), "job": JOB})},
            "Until it is fetched.",
            body=body_of(PriorityBody, "priority", priority=PRIORITY),
            errors=("not_found", "conflict"),
        ),
        Route(
            AdminHandlers,
            AdminHandlers.retries,
            ("GET /jobs/{job_id}/retries listJobRetries",),
            "Read a job's failed attempts",
            {
                200: record(
                    {
                        "job_id": JOB_ID,
                        "retries": list_of(
                            record(
                                _ATTEMPT,
                                {"started_at": TIME, "next_retry_at": TIME},
                            )
                        ),
                        "policy": RETRY_POLICY,
                        "attempt": COUNT,
                        "max_attempts": COUNT,
                    }
                )
            },
            errors=("not_found",),
        ),
        Route(
            JobHandlers,
            JobHandlers.result,
            ("GET /jobs/{job_id}/result getJobResult",),
            "Read or await a job's result",
            {200: _RESULT},
            "408 if it isn't there in time, 410 if it was not kept.",
            query=(
                Parameter("wait", FLAG),
                Parameter(
                    "timeout",
                    number(0, DEFAULT_LIMITS.max_result_wait_s) | {"default": DEFAULT_LIMITS.default_result_wait_s},
                    "Seconds.",
                ),
            ),
            errors=("not_found", "request_timeout", "result_pruned"),
        ),
        Route(
            JobHandlers,
            JobHandlers.results,
            ("POST /jobs/results getJobResults",),
            "Read the results of several jobs",
            {200: record({"results": map_of(_RESULT, "By id as sent; `state` is `not_found` where there is no such job.")})},
            body=body_of(IdsBody, "ids", ids=list_of(text(), most=DEFAULT_LIMITS.max_result_ids)),
        ),
    ),
)

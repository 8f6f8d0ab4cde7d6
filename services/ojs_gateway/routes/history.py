"""What happened to jobs (docs/history.md)."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.common import PAGED, QUEUE_NAME
from ojs_engine.api.route import Parameter, Part, Route
from ojs_engine.wire.jobs.history import FailurePage, JobHistoryPage, JobLineage, JobTraces, OneAttemptTrace
from ojs_engine.wire.system.debugging import DebugStatus
from ojs_gateway.handlers.history import HistoryHandlers

HISTORY: Final = Part(
    "History",
    "What happened to jobs, to find out why",
    (
        Route(
            HistoryHandlers,
            HistoryHandlers.history,
            ("GET /jobs/{job_id}/history listJobHistory",),
            "read",
            "Read a job's history",
            {200: JobHistoryPage},
            "The oldest first: its creation, changes of state, attempts and how they ended, as far as its log goes back.",
            query=PAGED,
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            HistoryHandlers,
            HistoryHandlers.lineage,
            ("GET /jobs/{job_id}/lineage getJobLineage",),
            "read",
            "Read where a job comes from",
            {200: JobLineage},
            "`parent_id` and `root_id` are what its client said. Children are not told.",
            errors=("not_found",),
            narrowing="job",
            by_queue=True,
        ),
        Route(
            HistoryHandlers,
            HistoryHandlers.traces,
            ("GET /debug/jobs/{job_id}/traces debugGetTraces",),
            "read",
            "Read a job's attempts",
            {200: JobTraces},
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            HistoryHandlers,
            HistoryHandlers.trace,
            ("GET /debug/jobs/{job_id}/traces/{attempt} debugGetTraceAttempt",),
            "read",
            "Read one attempt of a job",
            {200: OneAttemptTrace},
            "The latest of that number, if the job was retried by hand.",
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            HistoryHandlers,
            HistoryHandlers.failures,
            ("GET /debug/failures debugListFailures",),
            "read",
            "List recent failures",
            {200: FailurePage},
            "Failed attempts, the latest first, as long as events are kept.",
            query=(*PAGED, Parameter("queue", QUEUE_NAME, "In this queue alone.")),
            errors=("queue_name_too_long",),
            narrowing="parameter",
        ),
        Route(
            HistoryHandlers,
            HistoryHandlers.status,
            ("GET /debug/status debugStatus",),
            "read",
            "Read how this gateway is",
            {200: DebugStatus},
            "With the other services that it sees, and one projector. It says nothing that is secret.",
        ),
    ),
)

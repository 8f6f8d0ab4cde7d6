"""Progress of jobs: what workers report, and what others read or follow (docs/progress.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct

from ojs_api.jobs import State
from ojs_api.members import AttemptNumber, Count, JsonObject, Moment, OpenRequest, Text, Undecoded, Uuid, unsupported, wanted
from ojs_api.operations import Operation, Other, Subject

MAX_DATA_BYTES: Final = 4_096
"""Of `data`, as JSON."""
MAX_MESSAGE: Final = 1_024
_NOT_GIVEN: Final[Any] = Raw()
_Fraction = Annotated[float, Meta(description="From 0 to 1.", extra_json_schema={"minimum": 0, "maximum": 1})]
_Percentage = Annotated[float, Meta(description="The same from 0 to 100.", extra_json_schema={"minimum": 0, "maximum": 100})]


class ReportProgress(OpenRequest, kw_only=True, omit_defaults=True):
    """How far a job has come. One of `progress`, `percentage` and `data` is required."""

    job_id: (
        Annotated[str, Meta(description="Needed where the path doesn't name the job."), wanted("the id of a job")] | None
    ) = None
    progress: (
        Annotated[
            int | float,
            Meta(description="From 0 to 1; what is beyond counts as the end.", extra_json_schema={"type": "number"}),
            wanted("a number from 0 to 1"),
        ]
        | None
    ) = None
    percentage: (
        Annotated[
            int | float,
            Meta(description="The same from 0 to 100.", extra_json_schema={"type": "number"}),
            wanted("a number from 0 to 100"),
        ]
        | None
    ) = None
    message: Annotated[str, Meta(max_length=MAX_MESSAGE), wanted(f"a text of up to {MAX_MESSAGE} characters")] | None = None
    data: Annotated[
        Undecoded,
        Meta(
            description=f"Up to {MAX_DATA_BYTES} bytes as JSON.",
            extra_json_schema={"type": "object", "additionalProperties": {}},
        ),
    ] = _NOT_GIVEN
    checkpoint: Annotated[Any, unsupported("is not taken with progress; leave it out")] = None
    worker_id: Text | None = None
    attempt: AttemptNumber | None = None


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job's progress. Members are null if its attempt hasn't reported any (ojs-progress §7.1).

    Attributes:
        progress: From 0 to 1.
        percentage: From 0 to 100.
    """

    job_id: Uuid
    state: State
    attempt: Annotated[Count, Meta(description="Which attempt this is about.")]
    progress: _Fraction | None
    percentage: _Percentage | None = None
    data: JsonObject | None
    message: str | None = None
    updated_at: Moment | None


class ReportedProgress(Progress, frozen=True, kw_only=True, omit_defaults=True):
    """A job's progress after a report.

    Attributes:
        accepted: Whether the report is about the running attempt. If not, it was passed over.
    """

    accepted: Annotated[bool, Meta(description="Whether the report is about the running attempt; if not, it was passed over.")]


_UNKNOWN: Final = ("not_found",)

# fmt: off
REPORT: Final = Operation(
    "reportJobProgress", "PUT /jobs/{job_id}/progress", "work", "Report how far a job has come",
    {200: ReportedProgress},
    "A sign of life as well: it renews the lease. A job that isn't active, or that another worker holds, stays as it "
    "is. One report a second is stored for a job, the latest.",
    also=("POST /workers/progress reportProgress",), body=ReportProgress,
    errors=("not_found", "metadata_too_large", "unsupported"), narrowing="job", by_queue=True,
)
GET: Final = Operation(
    "getJobProgress", "GET /jobs/{job_id}/progress", "read", "Read how far a job has come",
    {200: Progress}, "1 once a job that has told of its progress is completed.",
    errors=_UNKNOWN, narrowing="job", by_queue=True,
)
STREAM: Final = Operation(
    "streamJobProgress", "GET /jobs/{job_id}/progress/stream", "read", "Follow how far a job has come",
    {
        200: Other(
            "text/event-stream",
            "`progress` with what the other operation answers, at last `completed`, `failed` or `cancelled`.",
        )
    },
    errors=_UNKNOWN, narrowing="job",
)
PROGRESS: Final = Subject("Progress", "How far jobs have come", (REPORT, GET, STREAM))

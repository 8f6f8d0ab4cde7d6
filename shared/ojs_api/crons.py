"""Cron entries: jobs on a schedule (docs/cron.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ojs_api.members import (
    HIDDEN,
    Count,
    Ignored,
    JsonList,
    JsonObject,
    Moment,
    OpenAnswer,
    OpenRequest,
    Undecoded,
    Uuid,
    Warnings,
    one_of,
    refused_as,
    wanted,
    whole,
)
from ojs_api.operations import PUSH_REFUSALS, Operation, Parameter, Subject
from ojs_api.pages import PAGED, Pagination
from ojs_api.words import JobState, Overlap

RunOutcome = Literal["triggered", "skipped"]
SkipReason = Literal["overlap_skip", "disabled", "dst_skip"]
MOST_COMING: Final = 50
"""Runs to come in one answer."""
MAX_DESCRIPTION_CHARS: Final = 1_000
NAME_WORDS: Final = r"a text of at most 255 characters that matches ^[a-z0-9][a-z0-9\-.]*$, such as daily-report"

_Name = Annotated[str, Meta(extra_json_schema={"pattern": r"^[a-z0-9][a-z0-9.\-]*$", "maxLength": 255}), wanted(NAME_WORDS)]
_Schedule = Annotated[
    str,
    Meta(description="Five or six fields, an alias such as @daily, or @every with a duration."),
    wanted("a cron expression as text"),
    refused_as("INVALID_CRON_EXPRESSION"),
]
_Zone = Annotated[str, Meta(description="An IANA zone; UTC if left out."), wanted("the name of an IANA time zone")]
_RunsToCome = Annotated[int | float, whole(1, MOST_COMING)]
_JobToRun = Annotated[
    dict[str, Undecoded],
    Meta(
        description="A job as it is pushed, without an id; `args` may be left out.",
        extra_json_schema={"type": "object", "additionalProperties": True},
    ),
]
_Waiting = Annotated[int, Meta(extra_json_schema={"minimum": 1}, description="Runs that wait for the one before them.")]
_StandsFor = Annotated[int, Meta(extra_json_schema={"minimum": 2}, description="How many occurrences it stands for.")]


class ScheduleRequest(OpenRequest, kw_only=True, omit_defaults=True):
    """One of `cron`, `expression` and `schedule`."""

    cron: _Schedule | None = None
    expression: _Schedule | None = None
    schedule: _Schedule | None = None
    timezone: _Zone | None = None


class PreviewCron(ScheduleRequest, kw_only=True):
    """One of `cron`, `expression` and `schedule`."""

    count: _RunsToCome | None = None


class CronSettings(ScheduleRequest, kw_only=True):
    """Members of requests about an entry."""

    overlap_policy: Overlap | None = None
    enabled: bool | None = None
    description: Annotated[str, Meta(max_length=MAX_DESCRIPTION_CHARS)] | None = None
    job_template: _JobToRun | None = None
    # Set by the server alone, ignored where clients send them (CRON-06)
    id: Ignored = None
    status: Ignored = None
    last_run_at: Ignored = None
    next_run_at: Ignored = None
    run_count: Ignored = None
    waiting_runs: Ignored = None
    created_at: Ignored = None
    updated_at: Ignored = None


class RegisterCron(CronSettings, kw_only=True):
    """One of `cron`, `expression` and `schedule`. The job's members stand in `job_template`, or beside `name`."""

    name: _Name


class UpdateCron(CronSettings, kw_only=True):
    """The members to change."""

    name: Annotated[_Name, HIDDEN] | None = None


class JobTemplate(Struct, frozen=True, kw_only=True):
    """The job that each run pushes. `options` has the other members that were sent with it."""

    type: str
    args: JsonList
    options: JsonObject
    meta: JsonObject


class Cron(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """A cron entry. `last_run_at` and `next_run_at` are null if there is none."""

    name: str
    expression: Annotated[str, Meta(description="As it was sent.")]
    timezone: str
    job_template: JobTemplate
    overlap_policy: Annotated[str, one_of(Overlap)]
    enabled: bool
    last_run_at: Moment | None
    next_run_at: Moment | None
    run_count: Count
    created_at: Moment
    updated_at: Moment
    waiting_runs: _Waiting | None = None
    description: str | None = None


class OneCron(Struct, frozen=True, omit_defaults=True):
    """The answer about one entry."""

    cron: Cron
    warnings: Warnings | None = None


class DeletedCron(Struct, frozen=True):
    """An entry that is gone."""

    cron: Cron
    deleted: bool


class TriggeredCron(Struct, frozen=True, kw_only=True):
    """A run that was triggered by hand. Its job exists, or will in a moment."""

    job_id: Uuid
    cron: Cron


class CronPreview(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When an expression fires next in a zone; fewer times than were asked for where the calendar ends before."""

    timezone: str
    runs: list[Moment]
    warnings: Warnings | None = None


class CronComing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When an entry runs next, or would if it weren't paused."""

    timezone: str
    runs: list[Moment]
    name: str
    warnings: Warnings | None = None


class CronPage(Struct, frozen=True):
    """A page of the list of entries, `count` of them."""

    crons: list[Cron]
    count: Count
    pagination: Pagination


class CronRun(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of a cron entry, or an occurrence that was skipped. `job_state` is there as long as the job is."""

    number: Annotated[int, Meta(extra_json_schema={"minimum": 1})]
    status: Annotated[str, one_of(RunOutcome)]
    scheduled_at: Moment
    manual: Annotated[bool, Meta(description="Whether somebody triggered it.")]
    triggered_at: Moment | None = None
    job_id: Uuid | None = None
    job_state: Annotated[str, one_of(JobState)] | None = None
    started_at: Moment | None = None
    completed_at: Moment | None = None
    skipped_at: Moment | None = None
    reason: Annotated[str, one_of(SkipReason)] | None = None
    occurrences: _StandsFor | None = None
    existing_job_id: Annotated[Uuid, Meta(description="The job that was in the way.")] | None = None


class CronHistory(Struct, frozen=True):
    """The last occurrences of an entry, newest first."""

    name: str
    executions: list[CronRun]
    run_count: Count


_REFUSED: Final = tuple(code for code in PUSH_REFUSALS if code not in {"duplicate", "queue_full"})
_UNKNOWN: Final = ("not_found",)
_CHANGED: Final = ("not_found", "conflict")

# fmt: off
REGISTER: Final = Operation(
    "registerCronJob", "POST /cron", "configure", "Register a cron entry",
    {200: OneCron, 201: OneCron}, "201 for a new one, 200 for one that was there and is replaced.",
    also=("POST /crons",), body=RegisterCron, errors=_REFUSED, narrowing="body", besides=("enqueue",),
)
LIST: Final = Operation(
    "listCronJobs", "GET /cron", "read", "List cron entries",
    {200: CronPage}, "By name.",
    also=("GET /crons",), query=(Parameter("enabled", bool), *PAGED), narrowing="entry",
)
GET: Final = Operation(
    "getCronJob", "GET /cron/{cron}", "read", "Read a cron entry",
    {200: OneCron}, also=("GET /crons/{cron}",), errors=_UNKNOWN, narrowing="entry",
)
UPDATE: Final = Operation(
    "updateCronJob", "PATCH /cron/{cron}", "configure", "Change a cron entry",
    {200: OneCron}, "What is sent is changed, members of `options` one by one.",
    also=("PATCH /crons/{cron}",), body=UpdateCron, errors=(*_CHANGED, *_REFUSED), narrowing="entry", besides=("enqueue",),
)
DELETE: Final = Operation(
    "deleteCronJob", "DELETE /cron/{cron}", "configure", "Delete a cron entry",
    {200: DeletedCron}, "Jobs that it has created stay.",
    also=("DELETE /crons/{cron}",), errors=_CHANGED, narrowing="entry",
)
TRIGGER: Final = Operation(
    "triggerCronJob", "POST /cron/{cron}/trigger", "control", "Run a cron entry now",
    {201: TriggeredCron, 202: TriggeredCron},
    "202 if its job is still to be created: it waits for the job before it, or for room in its queue.",
    also=("POST /crons/{cron}/trigger",), errors=(*_CHANGED, *_REFUSED, "queue_full"), narrowing="entry",
)
PAUSE: Final = Operation(
    "pauseCronJob", "POST /cron/{cron}/pause", "control", "Pause a cron entry",
    {200: OneCron}, also=("POST /crons/{cron}/pause",), errors=_CHANGED, narrowing="entry",
)
RESUME: Final = Operation(
    "resumeCronJob", "POST /cron/{cron}/resume", "control", "Resume a cron entry",
    {200: OneCron}, also=("POST /crons/{cron}/resume",), errors=_CHANGED, narrowing="entry",
)
COMING: Final = Operation(
    "listCronNextRuns", "GET /cron/{cron}/next", "read", "Read when a cron entry runs next",
    {200: CronComing}, "Of a paused entry the runs that it would have.", also=("GET /crons/{cron}/next",),
    query=(Parameter("count", Annotated[int, Meta(ge=1, le=MOST_COMING)]),), errors=_UNKNOWN, narrowing="entry",
)
PREVIEW: Final = Operation(
    "previewCron", "POST /admin/cron/preview", "read", "Read when an expression would fire",
    {200: CronPreview},
    "Ten times unless `count` says otherwise. Nothing is stored; what a registration refuses is refused.", body=PreviewCron,
)
HISTORY: Final = Operation(
    "listCronRuns", "GET /cron/{cron}/history", "read", "Read a cron entry's last runs",
    {200: CronHistory}, "Up to 50, the newest first.", also=("GET /crons/{cron}/history",),
    query=(Parameter("limit", Annotated[int, Meta(ge=1)]),), errors=_UNKNOWN, narrowing="entry",
)
CRONS: Final = Subject(
    "Cron", "Jobs on a schedule",
    (REGISTER, LIST, GET, UPDATE, DELETE, TRIGGER, PAUSE, RESUME, COMING, PREVIEW, HISTORY),
    (Parameter("cron", _Name, "The cron entry's name."),),
)

"""Dead letters: jobs that have failed for good and are kept (docs/admin.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Raw, Struct

from ojs_api.jobs import AdminJobPage, JobPage, OneJob, OneJobDetail, SkippedJob
from ojs_api.members import (
    REQUIRED,
    Count,
    Moment,
    QueueName,
    SentMoment,
    Undecoded,
    Uuid,
    wanted,
)
from ojs_api.operations import Operation, Other, Parameter, Subject
from ojs_api.pages import NUMBERED, PAGED, Indexed

_Age = Annotated[
    int | float | str,
    Meta(
        description="A timestamp, or an age: a duration, or seconds.",
        extra_json_schema={"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]},
    ),
    wanted("a timestamp, or an age such as 7d or 3600"),
]
_Discarded = Annotated[Literal["discarded"], Meta(description="As every dead letter is.")]
_Confirm = Annotated[bool, Meta(description="Must be true: this changes every job that fits.")]
_Policy = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={"type": "object", "allOf": [{"$ref": "#/components/schemas/RetryRequest"}]}),
]
_Meta = Annotated[Undecoded, Meta(extra_json_schema={"type": "object", "additionalProperties": {}}), wanted("an object")]
_Args = Annotated[Undecoded, Meta(extra_json_schema={"type": "array", "items": {}}), wanted("a JSON array")]
_AtLeastOne = Annotated[int, Meta(extra_json_schema={"minimum": 1})]
_NOT_GIVEN: Final[Any] = Raw()
_Period = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]


class WhichDeadLetters(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A dead letter has to fit all of it."""

    queue: QueueName | None = None
    type: str | None = None
    error_type: str | None = None
    since: SentMoment | None = None
    until: SentMoment | None = None
    older_than: _Age | None = None
    state: _Discarded | None = None


class ChangeDeadLetters(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """All that fit, unless there is a filter. A member that no filter has is refused: else more would change than is meant."""

    filter: WhichDeadLetters | None = None
    older_than: _Age | None = None
    confirm: _Confirm | None = None


class RetryDeadLetters(ChangeDeadLetters, frozen=True, kw_only=True):
    """All that fit, unless there is a filter."""

    confirm: Annotated[_Confirm, REQUIRED] | None = None


class Override(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What the new life changes. What is left out stays as it was."""

    queue: QueueName | None = None
    meta: _Meta = _NOT_GIVEN
    retry: _Policy | None = None
    args: _Args = _NOT_GIVEN


class RetryDeadLetter(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A new life, changed by `override` if there is one."""

    override: Override | None = None


class DeadLetterRetention(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long dead letters are kept, and how many; `max_count` is left out where any number is."""

    max_age: _Period
    max_count: _AtLeastOne | None = None
    next_prune_at: Moment | None = None


class DeadLetterStats(Indexed, frozen=True, kw_only=True, omit_defaults=True):
    """How many dead letters there are."""

    total: Count
    by_queue: dict[str, Count]
    by_type: dict[str, Count]
    by_error_type: dict[str, Count]
    retention: DeadLetterRetention
    oldest_at: Moment | None = None
    newest_at: Moment | None = None


class DeletedDeadLetter(Struct, frozen=True, kw_only=True):
    """One that is gone."""

    job_id: Uuid
    deleted: bool


class ChangedDeadLetters(Struct, frozen=True, kw_only=True):
    """The outcome for those that matched; `remaining` are left to the next request."""

    total_matched: Count
    skipped: Count
    remaining: Count
    errors: Annotated[list[SkippedJob], Meta(description="Some of the skipped.")]


class RetriedDeadLetters(ChangedDeadLetters, frozen=True, kw_only=True):
    """The outcome of a retry of many; `remaining` are left to the next request."""

    retried: Count


class DeletedDeadLetters(ChangedDeadLetters, frozen=True, kw_only=True):
    """The outcome of a deletion of many; `remaining` are left to the next request."""

    deleted: Count


_NARROWED: Final = (
    Parameter("queue", QueueName),
    Parameter("type", str, "A job type, or the beginning of one with * at its end."),
    Parameter("error_type", str, "Of its last failure."),
    Parameter("since", Moment, "Not before this moment."),
    Parameter("until", Moment, "Not after this moment."),
    Parameter("older_than", _Age),
    Parameter("state", _Discarded),
)
_NAMED: Final = (*_NARROWED, Parameter("confirm", bool))
_LATEST: Final = "The latest first."
_UNKNOWN: Final = ("not_found",)
_CHANGED: Final = ("not_found", "conflict")

# fmt: off
LIST: Final = Operation(
    "listDeadLetterJobs", "GET /dead-letter", "read", "List dead letters",
    {200: JobPage}, _LATEST, query=(*_NARROWED, *PAGED), narrowing="parameter",
)
ADMIN_LIST: Final = Operation(
    "adminListDeadLetter", "GET /admin/dead-letter", "read", "List dead letters in numbered pages",
    {200: AdminJobPage}, _LATEST, query=(*_NARROWED, *NUMBERED), narrowing="parameter",
)
STATS: Final = Operation(
    "getDeadLetterStats", "GET /dead-letter/stats", "read", "Count dead letters",
    {200: DeadLetterStats}, also=("GET /admin/dead-letter/stats adminDeadLetterStats",),
    query=(Parameter("queue", QueueName),), narrowing="parameter",
)
GET: Final = Operation(
    "getDeadLetterJob", "GET /dead-letter/{job_id}", "read", "Read a dead letter",
    {200: OneJobDetail}, also=("GET /admin/dead-letter/{job_id}",), errors=_UNKNOWN, narrowing="job",
)
RETRY: Final = Operation(
    "retryDeadLetterJob", "POST /dead-letter/{job_id}/retry", "control", "Retry a dead letter",
    {200: OneJob}, "A new life under the same id, changed by `override` if there is one.",
    also=("POST /admin/dead-letter/{job_id}/retry adminRetryDeadLetter",), body=RetryDeadLetter,
    errors=(*_CHANGED, "duplicate", "invalid_retry_policy", "metadata_too_large"), narrowing="job",
)
DELETE: Final = Operation(
    "deleteDeadLetterJob", "DELETE /dead-letter/{job_id}", "destroy", "Delete a dead letter",
    {200: DeletedDeadLetter}, errors=_CHANGED, narrowing="job",
)
ADMIN_DELETE: Final = Operation(
    "adminDeleteDeadLetter", "DELETE /admin/dead-letter/{job_id}", "destroy", "Delete a dead letter, as an operator",
    {204: Other(None, "It is gone.")}, errors=_CHANGED, narrowing="job",
)
RETRY_ALL: Final = Operation(
    "bulkRetryDeadLetter", "POST /dead-letter/retry", "control", "Retry all dead letters that fit a filter",
    {200: RetriedDeadLetters}, also=("POST /admin/dead-letter/retry adminBulkRetryDeadLetter",), body=RetryDeadLetters,
    narrowing="parameter",
)
PURGE: Final = Operation(
    "purgeDeadLetter", "POST /dead-letter/purge", "destroy", "Delete all dead letters that fit a filter",
    {200: DeletedDeadLetters}, "It needs no `confirm`. The filter may stand in the query where there is no body.",
    also=("POST /admin/dead-letter/purge",), body=ChangeDeadLetters, query=_NAMED, narrowing="parameter",
)
CLEAR: Final = Operation(
    "clearDeadLetter", "DELETE /dead-letter", "destroy", "Delete all dead letters that fit a filter, when confirmed",
    {200: DeletedDeadLetters}, "The filter and `confirm` may stand in the query where there is no body.",
    also=("DELETE /admin/dead-letter",), body=ChangeDeadLetters, query=_NAMED, narrowing="parameter",
)
DEAD_LETTERS: Final = Subject(
    "Dead letters", "Jobs that have failed for good",
    (LIST, ADMIN_LIST, STATS, GET, RETRY, DELETE, ADMIN_DELETE, RETRY_ALL, PURGE, CLEAR),
)

"""Dead letters."""

from __future__ import annotations

from typing import Final

from ojs_api.jobs import AdminJobPage, JobPage, OneJob, OneJobDetail
from ojs_engine.api.common import (
    CONFIRM,
    NUMBERED,
    OBJECT,
    PAGED,
    PERIOD,
    QUEUE_NAME,
)
from ojs_engine.api.envelope import OLDER_THAN, RETRY_REQUEST
from ojs_engine.api.route import Other, Parameter, Part, Route
from ojs_engine.api.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    TIME,
    Schema,
    body_of,
    list_of,
    one_of,
)
from ojs_engine.domain.job import State
from ojs_features.dead_letters.answers import DeadLetterStatsAnswer, DeletedDeadLetter, DeletedDeadLetters, RetriedDeadLetters
from ojs_features.dead_letters.dialects import SHAPES
from ojs_features.dead_letters.handlers import DeadLetterHandlers
from ojs_features.dead_letters.requests import DeadBulk, DeadFilter, OverrideBody, OverrideMembers

_FILTERS: Final = (
    Parameter("queue", QUEUE_NAME),
    Parameter("type", TEXT, "A job type, or the beginning of one with * at its end."),
    Parameter("error_type", TEXT, "Of its last failure."),
    *PERIOD,
)
_OLDER: Final = Parameter("older_than", OLDER_THAN)
_STATE: Final = Parameter("state", one_of(State.DISCARDED), "As every dead letter is.")
_NAMED: Final = (*_FILTERS, _OLDER, _STATE, Parameter("confirm", FLAG))
_FILTER: Final = body_of(
    DeadFilter, queue=QUEUE_NAME, since=TIME, until=TIME, older_than=OLDER_THAN, state=one_of(State.DISCARDED)
)
_CONFIRMED: Final[dict[str, Schema]] = {"filter": _FILTER, "older_than": OLDER_THAN, "confirm": CONFIRM}

PART: Final = Part(
    "Dead letters",
    "Jobs that have failed for good",
    (
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.list,
            ("GET /dead-letter listDeadLetterJobs",),
            "read",
            "List dead letters",
            {200: JobPage},
            "The latest first.",
            query=(*_FILTERS, _OLDER, _STATE, *PAGED),
            narrowing="parameter",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.admin_list,
            ("GET /admin/dead-letter adminListDeadLetter",),
            "read",
            "List dead letters in numbered pages",
            {200: AdminJobPage},
            "The latest first.",
            query=(*_FILTERS, _OLDER, _STATE, *NUMBERED),
            narrowing="parameter",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.stats,
            ("GET /dead-letter/stats getDeadLetterStats", "GET /admin/dead-letter/stats adminDeadLetterStats"),
            "read",
            "Count dead letters",
            {200: DeadLetterStatsAnswer},
            query=(Parameter("queue", QUEUE_NAME),),
            narrowing="parameter",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.read,
            ("GET /dead-letter/{job_id} getDeadLetterJob", "GET /admin/dead-letter/{job_id}"),
            "read",
            "Read a dead letter",
            {200: OneJobDetail},
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.retry,
            (
                "POST /dead-letter/{job_id}/retry retryDeadLetterJob",
                "POST /admin/dead-letter/{job_id}/retry adminRetryDeadLetter",
            ),
            "control",
            "Retry a dead letter",
            {200: OneJob},
            "A new life under the same id, changed by `override` if there is one.",
            body=body_of(
                OverrideBody,
                override=body_of(OverrideMembers, queue=QUEUE_NAME, meta=OBJECT, retry=RETRY_REQUEST, args=list_of(ANYTHING)),
            ),
            errors=("not_found", "conflict", "duplicate", "invalid_retry_policy", "metadata_too_large"),
            narrowing="job",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.delete,
            ("DELETE /dead-letter/{job_id} deleteDeadLetterJob",),
            "destroy",
            "Delete a dead letter",
            {200: DeletedDeadLetter},
            errors=("not_found", "conflict"),
            narrowing="job",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.admin_delete,
            ("DELETE /admin/dead-letter/{job_id} adminDeleteDeadLetter",),
            "destroy",
            "Delete a dead letter, as an operator",
            {204: Other(None, "It is gone.")},
            errors=("not_found", "conflict"),
            narrowing="job",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.retry_all,
            ("POST /dead-letter/retry bulkRetryDeadLetter", "POST /admin/dead-letter/retry adminBulkRetryDeadLetter"),
            "control",
            "Retry all dead letters that fit a filter",
            {200: RetriedDeadLetters},
            body=body_of(DeadBulk, "confirm", **_CONFIRMED),
            narrowing="parameter",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.purge,
            ("POST /dead-letter/purge purgeDeadLetter", "POST /admin/dead-letter/purge"),
            "destroy",
            "Delete all dead letters that fit a filter",
            {200: DeletedDeadLetters},
            "It needs no `confirm`. The filter may stand in the query where there is no body.",
            body=body_of(DeadBulk, **_CONFIRMED),
            query=_NAMED,
            narrowing="parameter",
        ),
        Route(
            DeadLetterHandlers,
            DeadLetterHandlers.clear,
            ("DELETE /dead-letter clearDeadLetter", "DELETE /admin/dead-letter"),
            "destroy",
            "Delete all dead letters that fit a filter, when confirmed",
            {200: DeletedDeadLetters},
            "The filter and `confirm` may stand in the query where there is no body.",
            body=body_of(DeadBulk, **_CONFIRMED),
            query=_NAMED,
            narrowing="parameter",
        ),
    ),
    SHAPES,
)

"""Schemas that several parts of the API share: jobs, errors, pages."""

from __future__ import annotations

from typing import Any, Final, get_args

from ojs_core.base.errors import CODES
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.domain.job import Backoff, Exhaustion, State
from ojs_core.read.messages import MAX_OFFSET
from ojs_core.wire.errors import wire_code
from ojs_core.wire.pages import ADMIN_PAGE, DEFAULT_PAGE, MAX_NUMBERED, MAX_PAGE
from ojs_gateway.openapi.route import Parameter
from ojs_gateway.openapi.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    either,
    list_of,
    map_of,
    number,
    one_of,
    record,
    text,
    whole,
)

COUNT: Final = whole(0)
STATE: Final = Named("State", {"type": "string", "enum": [*State]})
JOB_ID: Final = {"type": "string", "format": "uuid"}
SHORT: Final = {"type": "string", "minLength": 1, "maxLength": DEFAULT_LIMITS.max_text_chars}
QUEUE_NAME: Final = text(pattern=r"^[a-z0-9][a-z0-9.\-]*$", most=DEFAULT_LIMITS.max_queue_bytes)
TYPE_NAME: Final = text(pattern=r"^[a-z][a-z0-9_\-]*(\.[a-z][a-z0-9_\-]*)*$", most=DEFAULT_LIMITS.max_type_bytes)
PRIORITY: Final = either(whole(-100, 100), one_of("high", "normal", "low"))
DURATION: Final = text("A duration such as PT30S (ISO 8601).")
OBJECT: Final = map_of(ANYTHING)
CONFIRM: Final = FLAG | {"description": "Must be true: this changes every job that fits."}

# Errors

_ERROR: Final[dict[str, Schema]] = {
    "code": text("What went wrong, for programs.") | {"examples": sorted({wire_code(code) for code in CODES})},
    "message": text("What went wrong, for people: the field, the limit, and what was sent."),
    "retryable": FLAG,
    "details": map_of(ANYTHING, "More, by the code: `field`, `job_id`, `max_bytes` and others."),
    "canonical_code": text("The code's name in the specification's list of errors."),
}
ERROR: Final = Named(
    "Error",
    record(
        {
            "error": record(
                {
                    **_ERROR,
                    "request_id": text("As in the header X-Request-Id."),
                    "hint": text("What to do about it."),
                    "docs_url": TEXT,
                    "doc_url": TEXT,
                    "ojs_code": text(pattern="^OJS-[0-9]{4}$"),
                },
                {
                    "type": TEXT,
                    "max_batch_size": COUNT,
                    # of a full queue
                    "queue": TEXT,
                    "depth": COUNT,
                    "bound": COUNT,
                    "strategy": TEXT,
                },
            )
        }
    ),
)
ERROR_ITEM: Final = Named(
    "ItemError",
    record(
        {name: _ERROR[name] for name in ("code", "message")},
        {name: _ERROR[name] for name in ("retryable", "details", "canonical_code")},
        about="Why one item of a request was refused.",
    ),
)

# Jobs

RETRY_POLICY: Final = Named(
    "RetryPolicy",
    record(
        {
            "max_attempts": whole(0, DEFAULT_LIMITS.max_attempts),
            "initial_interval": DURATION,
            "backoff_coefficient": number(1),
            "max_interval": DURATION,
            "jitter": FLAG,
            "non_retryable_errors": list_of(TEXT, most=DEFAULT_LIMITS.max_error_patterns),
            "on_exhaustion": one_of(*get_args(Exhaustion)),
            "backoff_strategy": one_of(*get_args(Backoff)),
        }
    ),
)
FAILED_ATTEMPT: Final = Named(
    "FailedAttempt",
    record(
        {"code": TEXT, "type": TEXT, "message": TEXT, "attempt": COUNT, "occurred_at": TIME, "timestamp": TIME},
        {
            "retryable": FLAG,
            "details": ANYTHING,
            "backtrace": ANYTHING,
            "retry_generation": whole(1, about="How many manual retries the job had seen by then."),
        },
    ),
)
JOB_REQUIRED: Final[dict[str, Schema]] = {
    "specversion": TEXT,
    "id": JOB_ID,
    "type": TYPE_NAME,
    "state": STATE,
    "queue": QUEUE_NAME,
    "args": list_of(ANYTHING),
    "meta": OBJECT,
    "priority": whole(-100, 100),
    "tags": list_of(TEXT),
    "attempt": COUNT,
    "max_attempts": COUNT,
    "timeout_ms": whole(1),
    "visibility_timeout_ms": whole(1),
    "retry": RETRY_POLICY,
    "created_at": TIME,
}
_TIMES: Final = (
    "enqueued_at",
    "scheduled_at",
    "expires_at",
    "started_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
    "activated_at",
    "re_enqueued_at",
    "next_attempt_at",
    "next_retry_at",
    "result_stored_at",
    "result_expires_at",
)
JOB_OPTIONAL: Final[dict[str, Schema]] = {
    **dict.fromkeys(_TIMES, TIME),
    "retry_delay_ms": COUNT,
    "worker_id": text("Who holds it, or held it last."),
    "result": {"description": "Lists leave out what is large, or has a `result_ttl` that ends before its job does."},
    "result_size_bytes": COUNT,
    "error": FAILED_ATTEMPT,
    "errors": list_of(FAILED_ATTEMPT, about="The failed attempts, oldest first."),
    **dict.fromkeys(
        ("timeout", "total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period"), number(0, about="Seconds.")
    ),
    "result_ttl": whole(-1, about="Seconds; 0 keeps none, -1 keeps it and its job for ever."),
    "result_size_limit": whole(1, about="Bytes."),
    "schema": TEXT,
    "unique": OBJECT,
    "rate_limit": OBJECT,
    "metadata": OBJECT,
    "workflow_id": JOB_ID,
    "workflow_step": whole(0, about="Its position in the workflow."),
    "workflow_step_id": TEXT,
    "previous_state": STATE,
    "rate_limit_until": text("When the limit that holds it back has room again.") | {"format": "date-time"},
}
JOB: Final = Named(
    "Job",
    record(JOB_REQUIRED, JOB_OPTIONAL, free=True, about="Members that a client has added come back as they were sent."),
)
_ENTRY: Final = record(
    {"number": whole(1), "event": TEXT, "at": TIME, "attempt": COUNT},
    {"from": STATE, "to": STATE, "worker_id": TEXT, "reason": TEXT},
)
JOB_DETAIL: Final = Named(
    "JobDetail",
    record(
        {
            **JOB_REQUIRED,
            "timeline": list_of(_ENTRY, about="Its last transitions, oldest first."),
            "retry_policy": RETRY_POLICY,
            "options": OBJECT,
            "timers": list_of(record({"due_at": TIME, "service": TEXT}), about="What will happen by itself."),
            "dead_letter": FLAG,
        },
        {
            **JOB_OPTIONAL,
            "errors": list_of(FAILED_ATTEMPT, about="The failed attempts, oldest first, with their backtraces as lines."),
            "metadata": map_of(ANYTHING, "What the client sent, and the job's times; those that it doesn't have are null."),
            "visible_until": TIME,
            "leaves_at": TIME | {"description": "When the record of a finished job leaves."},
        },
        free=True,
    ),
)

# Numbers

COUNTS: Final = Named("Counts", record(dict.fromkeys(State, COUNT), about="Jobs by state."))
PROGRESS: Final[dict[str, Schema]] = {
    "partial": FLAG | {"description": "The index is being built anew: what is there is right, but not all is there."},
    "index_progress": number(0, 1),
}

# Lists

PAGINATION: Final = Named(
    "Pagination",
    record(
        {"limit": COUNT, "offset": COUNT, "has_more": FLAG},
        {
            "total": whole(0, about="Exact. Left out where more than 10,000 would have to be looked through."),
            "next_cursor": text("Goes into `cursor` for the next page."),
            "page": COUNT,
            "per_page": COUNT,
        },
    ),
)


def _paged(standard: int, most: int) -> tuple[Parameter, ...]:
    return (
        Parameter("limit", whole(1, MAX_PAGE) | {"default": standard}, "More counts as the most."),
        Parameter("cursor", TEXT, "`next_cursor` of the page before."),
        Parameter("offset", whole(0, MAX_OFFSET), "How many to pass over."),
        Parameter("page", whole(1), f"Counts pages in place of `cursor` and `offset`, to {MAX_OFFSET:,} items deep."),
        Parameter("per_page", whole(1, most) | {"default": standard}, "More counts as the most."),
    )


PAGED: Final = _paged(DEFAULT_PAGE, MAX_PAGE)
"""What `parse_page` reads."""
NUMBERED: Final = _paged(ADMIN_PAGE, MAX_NUMBERED)
"""What it reads for lists that count pages."""
NUMBERED_50: Final = _paged(DEFAULT_PAGE, MAX_NUMBERED)


def page_of(item: Schema, *names: str, **more: Schema) -> dict[str, Any]:
    """A page of a list, which stands under each of the names; `more` may be left out."""
    lists: dict[str, Schema] = dict.fromkeys(names, list_of(item))
    return record({**lists, "pagination": PAGINATION}, {**more, **PROGRESS})


PERIOD: Final = (
    Parameter("since", TIME, "Not before this moment."),
    Parameter("until", TIME, "Not after this moment."),
)

"""Every refusal a client can meet, in one table (ojs-http-binding §6, ojs-errors, ojs-error-catalog)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

NUMBERS: Final = {
    "INVALID_PAYLOAD": "OJS-1000",
    "INVALID_JOB_TYPE": "OJS-1001",
    "INVALID_QUEUE": "OJS-1002",
    "INVALID_ARGS": "OJS-1003",
    "INVALID_METADATA": "OJS-1004",
    "INVALID_STATE_TRANSITION": "OJS-1005",
    "INVALID_RETRY_POLICY": "OJS-1006",
    "INVALID_CRON_EXPRESSION": "OJS-1007",
    "SCHEMA_VALIDATION_FAILED": "OJS-1008",
    "PAYLOAD_TOO_LARGE": "OJS-1009",
    "METADATA_TOO_LARGE": "OJS-1010",
    "CONNECTION_ERROR": "OJS-1011",
    "REQUEST_TIMEOUT": "OJS-1012",
    "SERIALIZATION_ERROR": "OJS-1013",
    "QUEUE_NAME_TOO_LONG": "OJS-1014",
    "JOB_TYPE_TOO_LONG": "OJS-1015",
    "CHECKSUM_MISMATCH": "OJS-1016",
    "UNSUPPORTED_COMPRESSION": "OJS-1017",
    "BACKEND_ERROR": "OJS-2000",
    "BACKEND_UNAVAILABLE": "OJS-2001",
    "BACKEND_TIMEOUT": "OJS-2002",
    "REPLICATION_LAG": "OJS-2003",
    "INTERNAL_SERVER_ERROR": "OJS-2004",
    "NOT_FOUND": "OJS-3000",
    "DUPLICATE_JOB": "OJS-3001",
    "JOB_ALREADY_COMPLETED": "OJS-3002",
    "JOB_ALREADY_CANCELLED": "OJS-3003",
    "QUEUE_PAUSED": "OJS-3004",
    "HANDLER_ERROR": "OJS-3005",
    "HANDLER_TIMEOUT": "OJS-3006",
    "HANDLER_PANIC": "OJS-3007",
    "NON_RETRYABLE_ERROR": "OJS-3008",
    "JOB_CANCELLED": "OJS-3009",
    "NO_HANDLER_REGISTERED": "OJS-3010",
    "WORKFLOW_NOT_FOUND": "OJS-4000",
    "CHAIN_STEP_FAILED": "OJS-4001",
    "GROUP_TIMEOUT": "OJS-4002",
    "DEPENDENCY_FAILED": "OJS-4003",
    "CYCLIC_DEPENDENCY": "OJS-4004",
    "BATCH_CALLBACK_FAILED": "OJS-4005",
    "WORKFLOW_CANCELLED": "OJS-4006",
    "UNAUTHENTICATED": "OJS-5000",
    "PERMISSION_DENIED": "OJS-5001",
    "TOKEN_EXPIRED": "OJS-5002",
    "TENANT_ACCESS_DENIED": "OJS-5003",
    "RATE_LIMITED": "OJS-6000",
    "QUEUE_FULL": "OJS-6001",
    "CONCURRENCY_LIMITED": "OJS-6002",
    "BACKPRESSURE_APPLIED": "OJS-6003",
    "UNSUPPORTED_FEATURE": "OJS-7000",
    "CRON_SCHEDULE_CONFLICT": "OJS-7001",
    "UNIQUE_KEY_INVALID": "OJS-7002",
    "MIDDLEWARE_ERROR": "OJS-7003",
    "MIDDLEWARE_TIMEOUT": "OJS-7004",
}
"""The whole ojs-error-catalog. A code without a canonical name there has its name in capitals here."""


class CodeInfo(NamedTuple):
    """What a wire code always means.

    `nearest` is the code of the catalog that is nearest to a canonical code that the catalog doesn't have.
    """

    status: int
    retryable: bool
    canonical: str
    hint: str
    nearest: str = ""


CODES: Final[dict[str, CodeInfo]] = {
    "invalid_payload": CodeInfo(400, False, "INVALID_PAYLOAD", "Send a JSON object as the request body."),
    "invalid_request": CodeInfo(400, False, "INVALID_PAYLOAD", "Correct the named field and send the request again."),
    "invalid_workflow": CodeInfo(
        400, False, "INVALID_WORKFLOW", "Correct the named part of the workflow.", nearest="INVALID_PAYLOAD"
    ),
    "invalid_retry_policy": CodeInfo(422, False, "INVALID_RETRY_POLICY", "Correct the named field of the policy."),
    "schema_validation": CodeInfo(
        400, False, "SCHEMA_VALIDATION_FAILED", "Correct the arguments that validation_errors names."
    ),
    "unsupported": CodeInfo(422, False, "UNSUPPORTED_FEATURE", "See GET /ojs/manifest for what this server supports."),
    "extension_not_supported": CodeInfo(
        422,
        False,
        "EXTENSION_NOT_SUPPORTED",
        "Leave OJS-Requires-Extension out, or name extensions of `extension_details` in GET /ojs/manifest.",
        nearest="UNSUPPORTED_FEATURE",
    ),
    "unsupported_compression": CodeInfo(
        415, False, "UNSUPPORTED_COMPRESSION", "Send the body as it is or with Content-Encoding: gzip or deflate."
    ),
    "queue_name_too_long": CodeInfo(400, False, "QUEUE_NAME_TOO_LONG", "Use a shorter queue name."),
    "job_type_too_long": CodeInfo(400, False, "JOB_TYPE_TOO_LONG", "Use a shorter job type."),
    "envelope_too_large": CodeInfo(413, False, "PAYLOAD_TOO_LARGE", "Store large data elsewhere; send a reference."),
    "uri_too_long": CodeInfo(
        414, False, "URI_TOO_LONG", "Name less in the query, or ask for fewer at a time.", nearest="PAYLOAD_TOO_LARGE"
    ),
    "metadata_too_large": CodeInfo(413, False, "METADATA_TOO_LARGE", "Keep meta small; large data belongs elsewhere."),
    "batch_size_exceeded": CodeInfo(
        413,
        False,
        "BATCH_SIZE_EXCEEDED",
        "Send the jobs in several requests of at most max_batch_size each.",
        nearest="PAYLOAD_TOO_LARGE",
    ),
    "result_too_large": CodeInfo(
        413,
        False,
        "RESULT_TOO_LARGE",
        "Store the result elsewhere and acknowledge with a reference to it.",
        nearest="PAYLOAD_TOO_LARGE",
    ),
    "result_pruned": CodeInfo(410, False, "RESULT_PRUNED", "Raise result_ttl to keep results.", nearest="NOT_FOUND"),
    "unauthenticated": CodeInfo(
        401, False, "UNAUTHENTICATED", "Send a key as `Authorization: Bearer ojs_sk_…`; `ojs-nats keys create` makes one."
    ),
    "permission_denied": CodeInfo(
        403, False, "PERMISSION_DENIED", "Ask from an origin, and by a name, that the server's settings allow."
    ),
    "not_found": CodeInfo(404, False, "NOT_FOUND", "Check the name or the id."),
    "method_not_allowed": CodeInfo(405, False, "INVALID_PAYLOAD", "Use one of the methods in the Allow header."),
    "request_timeout": CodeInfo(408, True, "REQUEST_TIMEOUT", "Ask again, or with a longer timeout."),
    "conflict": CodeInfo(409, False, "INVALID_STATE_TRANSITION", "Read it again, and send what fits how it is now."),
    "duplicate": CodeInfo(409, False, "DUPLICATE_JOB", "A job with this identity exists; read it or use another id."),
    "rate_limited": CodeInfo(429, True, "RATE_LIMITED", "Ask again after Retry-After, or have the named limit raised."),
    "queue_full": CodeInfo(429, True, "QUEUE_FULL", "Push again after Retry-After, when jobs have been fetched."),
    "job_type_not_allowed": CodeInfo(
        400,
        False,
        "JOB_TYPE_NOT_ALLOWED",
        "Push it to a queue whose allowed_job_types has the job's type.",
        nearest="INVALID_JOB_TYPE",
    ),
    "job_type_not_registered": CodeInfo(
        422,
        False,
        "JOB_TYPE_NOT_ALLOWED",
        "Register a schema for the type, or name it in the setting allowed_types of every gateway and scheduler.",
        nearest="INVALID_JOB_TYPE",
    ),
    "unknown_attributes": CodeInfo(
        422,
        False,
        "UNKNOWN_ATTRIBUTES",
        "Leave them out, or put what they say into meta.",
        nearest="INVALID_PAYLOAD",
    ),
    "queue_paused": CodeInfo(422, True, "QUEUE_PAUSED", "Try again when the queue is resumed."),
    "queue_draining": CodeInfo(
        422, False, "QUEUE_DRAINING", "Push to another queue, or resume this one.", nearest="QUEUE_PAUSED"
    ),
    "backend_error": CodeInfo(500, True, "BACKEND_ERROR", "Try again; the server's log has the request id."),
    "unreadable_record": CodeInfo(
        500,
        False,
        "UNREADABLE_RECORD",
        "Nothing else is affected. GET /ojs/v1/admin/unreadable lists such records, and DELETE there removes one.",
        nearest="BACKEND_ERROR",
    ),
    "backend_unavailable": CodeInfo(503, True, "BACKEND_UNAVAILABLE", "Try again after the time in Retry-After."),
    "storage_full": CodeInfo(
        503,
        True,
        "STORAGE_FULL",
        "Push again after Retry-After; finish, cancel or delete jobs to make room.",
        nearest="BACKEND_UNAVAILABLE",
    ),
    "backend_timeout": CodeInfo(504, True, "BACKEND_TIMEOUT", "Read the job first: the write may be stored."),
}


class OjsError(Exception):
    """A refusal as OJS words it.

    `code` is a key of `CODES`, which gives the HTTP status, the canonical code and the default hint. `canonical` is a
    more exact code than that; one that the catalog doesn't have goes under the number of `code`. `retryable` says it where
    that isn't as `code` has it. `retry_after` is in whole seconds.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
        type: str | None = None,
        canonical: str | None = None,
        retryable: bool | None = None,
        retry_after: int | None = None,
        allow: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.info = CODES[code]
        self.hint = hint or self.info.hint
        self.details = details or {}
        self.type = type
        self.canonical = canonical or self.info.canonical
        self.retryable = self.info.retryable if retryable is None else retryable
        self.retry_after = retry_after
        self.allow = allow
        self.headers = headers

    @property
    def number(self) -> str:
        """The number of its canonical code in the catalog, or of the code there that is nearest to it."""
        return NUMBERS.get(self.canonical) or NUMBERS[self.info.nearest or self.info.canonical]


_HINTS: Final = {
    "job": "Check the id; finished jobs leave after their retention.",
    "worker": "A worker is known by its registration and heartbeats: have it register again, with its handlers.",
    "path": "Check the path; GET /ojs/v1/openapi.json describes all of them.",
}
"""What helps where something wasn't found, by what it is."""


def invalid(field: str, message: str, *, hint: str | None = None, canonical: str | None = None) -> OjsError:
    """400 for one field; `message` must name the field, the limit and what was wrong."""
    details = {"field": field, "validation_errors": [{"path": field, "message": message}]}
    return OjsError("invalid_request", message, hint=hint, details=details, canonical=canonical)


@contextmanager
def naming(canonical: str) -> Iterator[None]:
    """Give the refusals of single fields that are raised within a block, or a function, a more exact canonical code."""
    try:
        yield
    except OjsError as error:
        if error.code == "invalid_request":
            error.canonical = canonical
        raise


def too_large(code: str, field: str, actual: int, limit: int) -> OjsError:
    """413 for a size in bytes."""
    return OjsError(
        code,
        f"{field} is {actual} bytes; the limit is {limit} bytes",
        details={"field": field, "actual_bytes": actual, "max_bytes": limit},
    )


def batch_too_large(actual: int, limit: int) -> OjsError:
    """413 for a number of jobs or ids in one request."""
    return OjsError(
        "batch_size_exceeded",
        f"the request has {f'more than {limit:,}' if actual == limit + 1 else f'{actual:,}'} items; the limit is {limit:,}",
        details={"batch_size": actual, "max_batch_size": limit},
    )


def not_found(resource_type: str, resource_id: str) -> OjsError:
    """404 for one thing, by the word for what it is and its name or id."""
    return OjsError(
        "not_found",
        f"{resource_type} {resource_id!r} was not found",
        hint=_HINTS.get(resource_type),
        details={"resource_type": resource_type, "resource_id": resource_id},
        canonical="WORKFLOW_NOT_FOUND" if resource_type == "workflow" else None,
    )


async def unless_moved_on(change: Awaitable[object]) -> bool:
    """Whether a job was changed: not if it has left, or isn't in the state any more in which somebody found it."""
    try:
        await change
    except OjsError as error:
        if error.code not in {"conflict", "not_found"}:
            raise
        return False
    return True


def indexed(error: OjsError, index: int) -> OjsError:
    """The error, saying which member of a batch it concerns."""
    error.details = error.details | {"index": index}
    return error


def placed(error: OjsError, place: str) -> OjsError:
    """The error of one job of many, saying where it stands in the request."""
    return OjsError(
        error.code,
        f"{place}: {error.message}",
        hint=error.hint,
        details=error.details | {"field": place},
        type=error.type,
        canonical=error.canonical,
        retryable=error.retryable,
        retry_after=error.retry_after,
    )


def conflict(message: str, job_id: str, current: str, expected: str, *, canonical: str | None = None) -> OjsError:
    """409 for a transition that the job's state forbids."""
    details = {"job_id": job_id, "current_state": current, "expected_state": expected}
    hint = "Read the job again; its state has moved on."
    return OjsError("conflict", message, hint=hint, details=details, canonical=canonical)


def duplicate(job_id: str, state: str, unique_key: str | None = None) -> OjsError:
    """409 for a job whose id is taken, or, with `unique_key`, for one that is not unique."""
    details = {"existing_job_id": job_id, "existing_job_state": state}
    if unique_key is None:
        return OjsError("duplicate", f"a job with id {job_id} already exists", details=details)
    details["unique_key"] = unique_key
    return OjsError("duplicate", f"job {job_id} ({state}) matches the uniqueness key", details=details)


def duplicate_in_batch(index: int, unique_key: str | None = None) -> OjsError:
    """409 for a job that equals an earlier one of its batch, by its id or by `unique_key`: neither is stored."""
    same = "has the same id as" if unique_key is None else "matches the uniqueness key of"
    details: dict[str, Any] = {"existing_index": index} | ({} if unique_key is None else {"unique_key": unique_key})
    return OjsError("duplicate", f"the job {same} job {index} of this batch, which isn't stored", details=details)


def queue_full(queue: str, depth: int, bound: int, strategy: str, *, wanted: int = 1) -> OjsError:
    """429 for a push to a queue whose bound is reached (ojs-backpressure §7.1), or that is `wanted` jobs and never fits."""
    reached = wanted <= bound
    message = f"queue {queue!r} has reached its bound of {bound} waiting jobs"
    never = f"{wanted:,} jobs at once never fit into queue {queue!r}, which is bounded to {bound:,} waiting jobs"
    return OjsError(
        "queue_full",
        message if reached else never,
        hint=None if reached else f"Send at most {bound:,} of them at a time, or raise the queue's max_size.",
        details={"queue": queue, "depth": depth, "bound": bound, "strategy": strategy},
        retryable=reached,
        retry_after=1,  # a 429 always has it (ojs-errors §5.1)
        headers=(("X-OJS-Queue-Depth", str(depth)), ("X-OJS-Queue-Bound", str(bound))),
    )


def storage_full(reason: str) -> OjsError:
    """503 for what would be new while there is no room; what is there can still be finished (docs/adr/010)."""
    return OjsError("storage_full", f"there is no room for more: {reason}", retry_after=5)


def unavailable(message: str, *, retry_after: int = 1) -> OjsError:
    """503: NATS is away or has no leader."""
    return OjsError("backend_unavailable", message, retry_after=retry_after)


_WANT_OF_BACKEND: Final = frozenset({"backend_unavailable", "backend_timeout", "storage_full"})


def require_backend(errors: Sequence[OjsError | None]) -> None:
    """Raise 503 if each thing that a request is about was refused for want of NATS or of room.

    `errors` has one for each, None for what was done. Clients send the request again after 503. They don't after 422
    or 207, by which an answer would say so of each.
    """
    refused = [error for error in errors if error is not None and error.code in _WANT_OF_BACKEND]
    if not refused or len(refused) < len(errors):
        return
    full = all(error.code == "storage_full" for error in refused)
    raise OjsError(
        "storage_full" if full else "backend_unavailable",
        f"none of {len(refused):,} was done: {refused[0].message}",
        details={"total": len(refused), "succeeded": 0, "failed": len(refused)},
        retry_after=max(error.retry_after or 1 for error in refused),
    )

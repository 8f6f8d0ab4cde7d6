"""The server's refusals as errors."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ojs_nats.errors import (
    ConflictError,
    DuplicateError,
    InvalidRequestError,
    NotFoundError,
    OjsError,
    PermissionDeniedError,
    QueueClosedError,
    QueueFullError,
    RateLimitedError,
    RefusedError,
    ResultGone,
    ServerError,
    TooLargeError,
    UnauthorizedError,
    UnsupportedError,
    WaitTimeoutError,
)

_BY_CODE: Final[dict[str, type[RefusedError]]] = {
    "invalid_payload": InvalidRequestError,
    "invalid_request": InvalidRequestError,
    "invalid_workflow": InvalidRequestError,
    "invalid_retry_policy": InvalidRequestError,
    "schema_validation": InvalidRequestError,
    "queue_name_too_long": InvalidRequestError,
    "job_type_too_long": InvalidRequestError,
    "job_type_not_registered": InvalidRequestError,
    "unknown_attributes": InvalidRequestError,
    "unsupported": UnsupportedError,
    "extension_not_supported": UnsupportedError,
    "unsupported_compression": UnsupportedError,
    "method_not_allowed": UnsupportedError,
    "envelope_too_large": TooLargeError,
    "metadata_too_large": TooLargeError,
    "batch_size_exceeded": TooLargeError,
    "result_too_large": TooLargeError,
    "uri_too_long": TooLargeError,
    "unauthenticated": UnauthorizedError,
    "permission_denied": PermissionDeniedError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "duplicate": DuplicateError,
    "rate_limited": RateLimitedError,
    "queue_full": QueueFullError,
    "queue_paused": QueueClosedError,
    "queue_draining": QueueClosedError,
    "job_type_not_allowed": QueueClosedError,
    "result_pruned": ResultGone,
    "backend_error": ServerError,
    "backend_timeout": ServerError,
    "backend_unavailable": ServerError,
    "storage_full": ServerError,
    "unreadable_record": ServerError,
}


_WAITED: Final = "request_timeout"
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""The exceptions that reading an answer may raise."""


class _Error(msgspec.Struct):
    """The specification's members of every error; what else calls something an error isn't the server's."""

    code: str
    message: str
    retryable: bool
    details: dict[str, Any] | None = None


class _Answer(msgspec.Struct):
    error: _Error


def refused(
    code: str, message: str, *, status: int, details: dict[str, Any] | None = None, retry_after_s: float | None = None
) -> RefusedError:
    """Return the error for a code of the server.

    Args:
        code: The server's word, such as `not_found`.
        message: The server's sentence.
        status: The HTTP status of the answer.
        details: More about the error, by name.
        retry_after_s: After how many seconds the call may be made again. None if the server didn't say.
    """
    kind = _BY_CODE.get(code, RefusedError)
    return kind(message, code=code, status=status, details=details, retry_after_s=retry_after_s)


def is_refusal(body: bytes) -> bool:
    """Return whether the body of an answer is an error of the server, and not a proxy's page."""
    try:
        msgspec.json.decode(body, type=_Answer)
    except _UNREADABLE:
        return False
    return True


def refusal(status: int, body: bytes, retry_after: str | None) -> OjsError:
    """Return the error for an answer.

    Args:
        status: The HTTP status.
        body: The body. One that isn't the server's, such as a proxy's page, gives an error with the code `unknown`.
        retry_after: The header `Retry-After`. None if there is none.
    """
    try:
        error = msgspec.json.decode(body, type=_Answer).error
    except _UNREADABLE:
        error = _Error("unknown", f"the answer was {status}, and no OJS error: is that an OJS server?", retryable=False)
    try:
        wait = None if retry_after is None else float(retry_after)
    except ValueError:  # a date, which this server never sends
        wait = None
    if error.code == _WAITED:
        return WaitTimeoutError(error.message, code=error.code, status=status, details=error.details, retry_after_s=wait)
    return refused(error.code, error.message, status=status, details=error.details, retry_after_s=wait)

"""What can go wrong, as types: what the server refuses, by its code, and how a job may end that isn't completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec


class OjsError(Exception):
    """All that this package raises of its own."""


class Refused(OjsError):
    """The server refused a request; subclasses are the codes that programs tell apart.

    `code` is the server's word (`invalid_request`), `status` the HTTP status, `details` what it says beside the
    message, `retry_after_s` when it may be asked again, in seconds.
    """

    def __init__(
        self, code: str, message: str, *, status: int, details: dict[str, Any] | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = details or {}
        self.retry_after_s = retry_after_s


class InvalidRequest(Refused):
    """Something in it is not as it must be; `details["field"]` says what."""


class Unsupported(Refused):
    """The server can't do that."""


class TooLarge(Refused):
    """A job, its metadata or result, or a batch is larger than the server takes; `details` have the limit."""


class PermissionDenied(Refused):
    """Who asks may not do that: the key lacks a permission, which `details` name, or settings don't allow it."""


class Unauthorized(Refused):
    """The server asks for a key, or the one that was sent isn't right, or has ended."""


class NotFound(Refused):
    """There is no such job, queue or other thing."""


class Conflict(Refused):
    """It isn't in a state for that: a job that has ended can't be cancelled."""


class Duplicate(Refused):
    """A job with this id, or with this identity by its policy of uniqueness, is there already."""

    @property
    def existing_job_id(self) -> str:
        return str(self.details.get("existing_job_id", ""))


class RateLimited(Refused):
    """The key, or its address, has had as much as its limit allows, for as long as the client has patience: this is the
    cause of `Unavailable`.
    """


class QueueFull(Refused):
    """The queue takes no more jobs now."""


class QueueClosed(Refused):
    """The queue takes no jobs, or none of this type: it is paused, drained, or doesn't allow the type."""


class ResultGone(Refused):
    """The job has had a result, which wasn't kept."""


class NotYet(Refused):
    """What was waited for didn't come in time."""


class ServerFailed(Refused):
    """The server couldn't do it; where it may go well later, it has been tried for as long as the client has
    patience, and this is the cause of `Unavailable`.
    """


class Unavailable(OjsError):
    """No server answered, or only that it can't work now, for as long as it was tried. `retry_after_s` is in how
    many seconds it may be asked again, if it said so.
    """

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Missing(OjsError):
    """What was asked for needs a package that isn't installed; the message says how to get it."""


class ResultTimeout(OjsError):
    """The job or workflow hadn't ended when the time to wait for it was over; it goes on."""


class JobFailed(OjsError):
    """The job has been discarded; `error` is that of its last attempt."""

    def __init__(self, message: str, error: Any) -> None:
        super().__init__(message)
        self.error = error


class JobCancelled(OjsError):
    """The job has been cancelled."""


class JobDropped(OjsError):
    """Middleware of the app or the server has dropped the job, or those at these `places` of a batch: they weren't
    pushed.
    """

    def __init__(self, message: str, places: Sequence[int] = (0,)) -> None:
        super().__init__(message)
        self.places = places


class WorkflowFailed(OjsError):
    """The workflow has failed; `errors` are those of its jobs."""

    def __init__(self, message: str, errors: Sequence[Any]) -> None:
        super().__init__(message)
        self.errors = errors


class WorkflowCancelled(OjsError):
    """The workflow has been cancelled."""


_BY_CODE: Final[dict[str, type[Refused]]] = {
    "invalid_payload": InvalidRequest,
    "invalid_request": InvalidRequest,
    "invalid_workflow": InvalidRequest,
    "invalid_retry_policy": InvalidRequest,
    "schema_validation": InvalidRequest,
    "queue_name_too_long": InvalidRequest,
    "job_type_too_long": InvalidRequest,
    "job_type_not_registered": InvalidRequest,
    "unknown_attributes": InvalidRequest,
    "unsupported": Unsupported,
    "extension_not_supported": Unsupported,
    "unsupported_compression": Unsupported,
    "method_not_allowed": Unsupported,
    "envelope_too_large": TooLarge,
    "metadata_too_large": TooLarge,
    "batch_size_exceeded": TooLarge,
    "result_too_large": TooLarge,
    "uri_too_long": TooLarge,
    "unauthenticated": Unauthorized,
    "permission_denied": PermissionDenied,
    "not_found": NotFound,
    "conflict": Conflict,
    "duplicate": Duplicate,
    "rate_limited": RateLimited,
    "queue_full": QueueFull,
    "queue_paused": QueueClosed,
    "queue_draining": QueueClosed,
    "job_type_not_allowed": QueueClosed,
    "result_pruned": ResultGone,
    "request_timeout": NotYet,
    "backend_error": ServerFailed,
    "backend_timeout": ServerFailed,
    "backend_unavailable": ServerFailed,
    "storage_full": ServerFailed,
    "unreadable_record": ServerFailed,
}


_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What reading an answer may raise."""


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
) -> Refused:
    """The error that the server's code stands for."""
    kind = _BY_CODE.get(code, Refused)
    return kind(code, message, status=status, details=details, retry_after_s=retry_after_s)


def is_refusal(body: bytes) -> bool:
    """Return whether an answer has an error of the server."""
    try:
        msgspec.json.decode(body, type=_Answer)
    except _UNREADABLE:
        return False
    return True


def refusal(status: int, body: bytes, retry_after: str | None) -> Refused:
    """The error of an answer; one that is not the server's (a proxy's) is told by its status."""
    try:
        error = msgspec.json.decode(body, type=_Answer).error
    except _UNREADABLE:
        error = _Error("unknown", f"the answer was {status}, and no OJS error: is that an OJS server?", retryable=False)
    try:
        wait = None if retry_after is None else float(retry_after)
    except ValueError:  # a date, which this server never sends
        wait = None
    return refused(error.code, error.message, status=status, details=error.details, retry_after_s=wait)

"""Errors: what a call may raise, by what the server's code means, and how a job may end that isn't completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec


class OjsError(Exception):
    """An error of this package; the base of all that it raises of its own.

    Attributes:
        code: The error's word, as the server says it: `invalid_request`. "" where there is none.
        status: The HTTP status of the answer, None where no answer said it.
        details: What the server says beside the message, as `field` or `limit`.
        retry_after_s: In how many seconds the call may be made again, None where nobody said it.
    """

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "",
        status: int | None = None,
        details: dict[str, Any] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = details or {}
        self.retry_after_s = retry_after_s


class RefusedError(OjsError):
    """A request that the server refused; the subclasses are the codes that programs tell apart."""


class InvalidRequestError(RefusedError):
    """A request with a value that the server doesn't take; `details["field"]` names it."""


class UnsupportedError(RefusedError):
    """A request for what this server can't do."""


class TooLargeError(RefusedError):
    """A job, metadata, result or batch that is larger than the server takes; `details` have the limit."""


class PermissionDeniedError(RefusedError):
    """A request without the permission for it, which `details` name, or one that settings don't allow."""


class UnauthorizedError(RefusedError):
    """A request without a key where the server asks for one, or with a key that is wrong or has ended."""


class NotFoundError(RefusedError):
    """A job, queue or other thing that isn't there."""


class ConflictError(RefusedError):
    """A change that the thing's state forbids: a job that has ended can't be cancelled."""


class DuplicateError(RefusedError):
    """A job whose id, or whose identity by its policy of uniqueness, another job has already."""

    @property
    def existing_job_id(self) -> str:
        """The other job's id."""
        return str(self.details.get("existing_job_id", ""))


class RateLimitedError(RefusedError):
    """A key, or an address, that has used up its limit.

    The call is repeated for `retry_for`, so this is the `__cause__` of an `UnavailableError`.
    """


class QueueFullError(RefusedError):
    """A queue that takes no more jobs now."""


class QueueClosedError(RefusedError):
    """A queue that takes no jobs, or none of this type: it is paused, drained, or doesn't allow the type."""


class ResultGone(RefusedError):
    """A result that the job had, and that isn't kept any more."""


class ServerError(RefusedError):
    """A failure within the server.

    Where it may go well later, the call is repeated for `retry_for`, and this is the `__cause__` of an `UnavailableError`.
    """


class UnavailableError(OjsError):
    """A call that no server answered, or only by saying that it can't work now, for as long as `retry_for`."""


class WaitTimeoutError(OjsError):
    """An end that didn't come within the time to wait for it; the job or workflow goes on."""


class MissingDependencyError(OjsError):
    """A package that isn't installed, and that the call needs; the message names the extra that brings it."""


class JobFailed(OjsError):
    """A job that was discarded; `error` is the `JobError` of its last attempt."""

    def __init__(self, message: str = "", error: Any = None) -> None:
        super().__init__(message, code=getattr(error, "code", None) or "")
        self.error = error


class JobCancelled(OjsError):
    """A job that was cancelled."""


class JobDropped(OjsError):
    """A job that middleware of the app or of the server has dropped: it wasn't pushed.

    `places` are those of the jobs that were dropped, counted from 0, in a call that pushed several.
    """

    def __init__(self, message: str = "", places: Sequence[int] = (0,)) -> None:
        super().__init__(message)
        self.places = places


class WorkflowFailed(OjsError):
    """A workflow that failed; `errors` are those of its jobs."""

    def __init__(self, message: str = "", errors: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.errors = errors


class WorkflowCancelled(OjsError):
    """A workflow that was cancelled."""


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
) -> RefusedError:
    """Return the error that the server's code means."""
    kind = _BY_CODE.get(code, RefusedError)
    return kind(message, code=code, status=status, details=details, retry_after_s=retry_after_s)


def is_refusal(body: bytes) -> bool:
    """Return whether an answer has an error of the server."""
    try:
        msgspec.json.decode(body, type=_Answer)
    except _UNREADABLE:
        return False
    return True


def refusal(status: int, body: bytes, retry_after: str | None) -> OjsError:
    """Return the error of an answer; one that is not the server's (a proxy's) has the code `unknown`."""
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

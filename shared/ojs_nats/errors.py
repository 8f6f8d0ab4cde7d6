"""Errors of this package: refusals by the server, unanswered calls, and jobs and workflows that didn't complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ojs_nats.jobs import JobError
from ojs_nats.models.workflows import WorkflowError

__all__ = [
    "ConflictError",
    "DuplicateError",
    "InvalidRequestError",
    "JobCancelled",
    "JobDropped",
    "JobFailed",
    "MissingDependencyError",
    "NotFoundError",
    "OjsError",
    "PermissionDeniedError",
    "QueueClosedError",
    "QueueFullError",
    "RateLimitedError",
    "RefusedError",
    "ResultGone",
    "ServerError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "UnsupportedError",
    "WaitTimeoutError",
    "WorkflowCancelled",
    "WorkflowFailed",
]


class OjsError(Exception):
    """An error of this package; the base class of all others here.

    Attributes:
        code: The server's word for the error, such as `invalid_request`. "" if the error isn't from a server.
        status: The HTTP status of the answer. None if there was no answer.
        details: More about the error, by name, such as `field` or `limit`.
        retry_after_s: After how many seconds the call may be made again. None if the server didn't say.

    Example:
        >>> from ojs_nats.errors import OjsError
        >>> try:
        ...     raise OjsError("the queue is full", code="queue_full", status=429)
        ... except OjsError as error:
        ...     print(error.code, error.status)
        queue_full 429
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
    """A refusal by the server. Its subclasses are the reasons that a program may want to distinguish."""


class InvalidRequestError(RefusedError):
    """A request with a value that the server doesn't take; `details["field"]` names it."""


class UnsupportedError(RefusedError):
    """A request for what this server can't do."""


class TooLargeError(RefusedError):
    """A job, metadata, result or batch that is too large for the server; `details` has the limit."""


class PermissionDeniedError(RefusedError):
    """A request that the key has no permission for, or that the server's settings don't allow; `details` names the
    permission.
    """


class UnauthorizedError(RefusedError):
    """A request without a key where the server asks for one, or with a key that is wrong or has ended."""


class NotFoundError(RefusedError):
    """A job, queue or other thing that doesn't exist."""


class ConflictError(RefusedError):
    """A change that the thing's state forbids: a job that has ended can't be cancelled."""


class DuplicateError(RefusedError):
    """A job whose id is taken, or whose identity (by its policy of uniqueness) another job has."""

    @property
    def existing_job_id(self) -> str:
        """The id of the other job. "" if the server didn't name it."""
        return str(self.details.get("existing_job_id", ""))


class RateLimitedError(RefusedError):
    """A limit of the key or of the client's address that is used up.

    The call is repeated for `retry_for`, so a program usually meets this error as `__cause__` of an `UnavailableError`.
    """


class QueueFullError(RefusedError):
    """A queue that has as many jobs as it may hold."""


class QueueClosedError(RefusedError):
    """A queue that takes no jobs, since it is paused or drained, or none of this type."""


class ResultGone(RefusedError):
    """A result that the server doesn't keep any more (`result_ttl`)."""


class ServerError(RefusedError):
    """A failure within the server.

    The call is repeated for `retry_for` if that may help; the program then meets this error as `__cause__` of an
    `UnavailableError`.
    """


class UnavailableError(OjsError):
    """A call that no server answered, or that servers answered only with "not now", for as long as `retry_for`."""


class WaitTimeoutError(OjsError):
    """A wait that took longer than its `timeout`. The job or workflow goes on."""


class MissingDependencyError(OjsError):
    """A call that needs a package which isn't installed. The message names the extra that brings it."""


class JobFailed(OjsError):
    """A job that has failed for good.

    Attributes:
        error: The `JobError` of its last attempt. None if it had none: the job expired, for example.
    """

    def __init__(self, message: str = "", error: JobError | None = None) -> None:
        super().__init__(message, code=(error and error.code) or "")
        self.error = error


class JobCancelled(OjsError):
    """A job that was cancelled."""


class JobDropped(OjsError):
    """A job that middleware of the app or of the server dropped, so that it wasn't pushed.

    Attributes:
        places: The positions of the dropped jobs in the call, from 0.
    """

    def __init__(self, message: str = "", places: Sequence[int] = (0,)) -> None:
        super().__init__(message)
        self.places = places


class WorkflowFailed(OjsError):
    """A workflow that has failed.

    Attributes:
        errors: The errors of its jobs.
    """

    def __init__(self, message: str = "", errors: Sequence[WorkflowError] = ()) -> None:
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

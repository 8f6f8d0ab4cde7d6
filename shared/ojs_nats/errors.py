"""Errors of this package: refusals by the server, unanswered calls, and jobs and workflows that didn't complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

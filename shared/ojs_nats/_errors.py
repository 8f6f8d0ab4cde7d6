"""What can go wrong, as types: what the server refuses, by its code, and how a job may end that isn't completed."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class OjsError(Exception):
    """All that this package raises of its own."""


class Refused(OjsError):
    """The server refused a request; subclasses are the codes that programs tell apart.

    `code` is the server's word (`invalid_request`), `status` the HTTP status, `details` what it says beside the message,
    `retry_after_s` when it may be asked again, in seconds.
    """

    def __init__(
        self, code: str, message: str, *, status: int, details: dict[str, Any] | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.details = details or {}
        self.retry_after_s = retry_after_s


class NotFound(Refused):
    """There is no such job, queue or other thing."""


class Conflict(Refused):
    """It isn't in a state for that: a job that has ended can't be cancelled."""


class Duplicate(Refused):
    """A job with this id, or with this identity by its policy of uniqueness, is there already."""

    @property
    def existing_job_id(self) -> str:
        return str(self.details.get("existing_job_id", ""))


class QueueFull(Refused):
    """The queue takes no more jobs now."""


class Unavailable(OjsError):
    """No server answered, or only that it can't work now, for as long as it was tried."""


class NotEnqueued(OjsError):
    """A middleware of the app dropped the job before it was pushed."""


class Missing(OjsError):
    """What was asked for needs a package that isn't installed; the message says how to get it."""


class ResultTimeout(OjsError):
    """The job hadn't ended when the time to wait for it was over; it goes on."""


class JobFailed(OjsError):
    """The job has been discarded; `error` is that of its last attempt."""

    def __init__(self, message: str, error: Any) -> None:
        super().__init__(message)
        self.error = error


class JobCancelled(OjsError):
    """The job has been cancelled."""


_BY_CODE: Final[dict[str, type[Refused]]] = {
    "not_found": NotFound,
    "conflict": Conflict,
    "duplicate": Duplicate,
    "queue_full": QueueFull,
}


class _Error(msgspec.Struct):
    code: str = "unknown"
    message: str = ""
    details: dict[str, Any] | None = None


class _Answer(msgspec.Struct):
    error: _Error


def refusal(status: int, body: bytes, retry_after: str | None) -> Refused:
    """The error of an answer; one that is not the server's (a proxy's) is told by its status."""
    try:
        error = msgspec.json.decode(body, type=_Answer).error
    except msgspec.MsgspecError:
        error = _Error(message=f"the answer was {status}, and no OJS error: is that an OJS server?")
    try:
        wait = None if retry_after is None else float(retry_after)
    except ValueError:  # a date, which this server never sends
        wait = None
    return refused(error.code, error.message, status=status, details=error.details, retry_after_s=wait)


def refused(
    code: str, message: str, *, status: int, details: dict[str, Any] | None = None, retry_after_s: float | None = None
) -> Refused:
    """Of the class that the code has."""
    return _BY_CODE.get(code, Refused)(code, message, status=status, details=details, retry_after_s=retry_after_s)

"""A worker's report of failure, and the error history that it enters."""

from __future__ import annotations

from typing import Final, get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api import words
from ojs_engine.domain.job import NOTHING, Job, JobError
from ojs_engine.domain.transitions.cutting import shortened, shortened_members

Action = words.FailureAction
ACTIONS: Final[frozenset[str]] = frozenset(get_args(Action))

_HANDLER_ERROR: Final = "handler_error"
_ERRORS_KEPT: Final = 25
_MESSAGE_CHARS: Final = 10_000
_BACKTRACE_BYTES: Final = 10_000
_DETAILS_BYTES: Final = 16 * 1_024


class Failure(Struct, frozen=True, kw_only=True):
    """What a worker's NACK says. `requeue` gives the job back unharmed; `action` is the handler's response code
    (ojs-retry §7), which a `code` of that name means as well. `delay_ms` is when the job goes on: in place of the policy's
    pause, or of at once.
    """

    message: str
    code: str | None = None
    type: str | None = None
    retryable: bool = True
    action: Action | None = None
    details: Raw = NOTHING
    backtrace: Raw = NOTHING
    requeue: bool = False
    delay_ms: int | None = None

    @property
    def response(self) -> str | None:
        """The handler's response code, wherever it was sent."""
        return self.action or (self.code if self.code in ACTIONS else None)


class _ErrorClass(Struct):
    error_class: str | None = None


def _error_class(details: Raw) -> str | None:
    if not details:
        return None
    try:
        return msgspec.json.decode(details, type=_ErrorClass).error_class
    except msgspec.DecodeError:
        return None


def reported(job: Job, failure: Failure, now: int) -> JobError:
    """The worker's failure as an entry of the error history, cut to the sizes that a record may carry."""
    code = failure.code if failure.code and failure.code not in ACTIONS else _HANDLER_ERROR
    return JobError(
        code=code,
        type=failure.type or _error_class(failure.details) or code,
        message=failure.message[:_MESSAGE_CHARS],
        attempt=job.attempt,
        at=now,
        retryable=failure.retryable,
        details=shortened_members(failure.details, _DETAILS_BYTES),
        backtrace=shortened(failure.backtrace, _BACKTRACE_BYTES),
        generation=job.generation,
    )


def recorded(job: Job, error: JobError) -> Job:
    """The job with `error` as its latest; the newest 25 stay."""
    return replace(job, error=error, errors=(*job.errors, error)[-_ERRORS_KEPT:])


def non_retryable(patterns: tuple[str, ...], error: JobError, details: Raw) -> bool:
    """Whether the policy's list names the error (ojs-retry §6.2): exactly, or by an entry `prefix.*`.

    `details` are the ones that were sent: those on the record may have been dropped for their size.
    """
    if not patterns:
        return False
    names = {name for name in (error.type, error.code, _error_class(details)) if name is not None}
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith(".*") else name == pattern for pattern in patterns for name in names
    )

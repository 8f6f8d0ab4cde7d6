"""Jobs: one that is to be pushed, and one as the server tells of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Generic, TypeVar, Unpack

import msgspec

from ojs_nats._checks import check_args, misplaced
from ojs_nats._ids import new_id
from ojs_nats._names import job_type
from ojs_nats._plain import plain
from ojs_nats.options import DEFAULT_QUEUE, Options, checked, merged, wire

R = TypeVar("R")

ENDED: Final = frozenset({"completed", "cancelled", "discarded"})


class JobError(msgspec.Struct, frozen=True):
    """An attempt's error. `details` has what its worker adds: `where` is the place in the code that raised it.

    `backtrace` is a text or a list of lines, as the worker sent it; `trace` is the same as one text.
    """

    message: str = ""
    code: str | None = None
    type: str | None = None
    attempt: int | None = None
    details: Any = None
    backtrace: Any = None

    @property
    def where(self) -> str | None:
        """The place in the application that raised it, as `app/jobs.py:12 in send_email`, if its worker named one."""
        place = self.details.get("where") if isinstance(self.details, dict) else None
        return place if isinstance(place, str) else None

    @property
    def trace(self) -> str:
        """The backtrace as one text, "" where there is none."""
        found = self.backtrace if self.backtrace is not None else _traced(self.details)
        lines = found if isinstance(found, list) else [found or ""]
        return "\n".join(str(line).rstrip("\n") for line in lines)


def _traced(details: Any) -> Any:
    """Return the backtrace that some clients put among the details."""
    return details.get("backtrace") or details.get("stack_trace") if isinstance(details, dict) else None


class Checkpoint(msgspec.Struct, frozen=True):
    """What an attempt saved last: the `sequence`-th time that the job did."""

    state: Any = None
    sequence: int = 0
    created_at: datetime | None = None
    metadata: dict[str, Any] = {}


class JobRetry(msgspec.Struct, frozen=True):
    """The part of a job's retry policy that its worker needs: the names of errors that end it."""

    non_retryable_errors: list[str] = []


class Job(msgspec.Struct, frozen=True):
    """A job as the server tells of it. Times are UTC; what it hasn't got is None."""

    id: str
    type: str
    state: str
    queue: str = DEFAULT_QUEUE
    attempt: int = 0
    max_attempts: int | None = None
    uncounted_attempts: int = 0
    args: list[Any] = []
    meta: dict[str, Any] = {}
    tags: list[str] = []
    priority: int = 0
    result: Any = None
    error: JobError | None = None
    created_at: datetime | None = None
    enqueued_at: datetime | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    next_attempt_at: datetime | None = None
    cancelled_at: datetime | None = None
    discarded_at: datetime | None = None
    errors: list[JobError] = []
    timeout_ms: int | None = None
    visibility_timeout_ms: int | None = None
    version: int | str | None = None
    worker_id: str | None = None
    workflow_id: str | None = None
    workflow_step: int | None = None
    workflow_step_id: str | None = None
    parent_results: Any = None
    checkpoint: Checkpoint | None = None
    parent_results_by_index: dict[str, Any] | None = None
    retry: JobRetry = JobRetry()

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class JobRequest(msgspec.Struct, Generic[R], frozen=True):
    """A job that is yet to be pushed. Its id is made here, so that a push that wasn't answered can be sent again: a
    JobRequest that is pushed twice, also with other options, is the same job, which is there once.

    `returns` is the type of its result, if the definition that made it says so.
    """

    type: str
    args: tuple[Any, ...] = ()
    options: Options = {}
    id: str = msgspec.field(default_factory=new_id)
    returns: Any = Any

    def __post_init__(self) -> None:
        """Raise TypeError for a type or arguments of another kind, ValueError for what is no type's name, and as `App.job`
        for options that no job has.
        """
        if not isinstance(self.type, str):
            raise misplaced(self.type, "a new job begins with the name of its type")
        job_type(self.type)
        check_args(self.args)
        if self.options:
            msgspec.structs.force_setattr(self, "options", checked(self.options, f"JobRequest {self.type!r}"))

    @property
    def queue(self) -> str:
        return self.options.get("queue", DEFAULT_QUEUE)

    def with_options(self, **options: Unpack[Options]) -> JobRequest[R]:
        """Return the same job with other options. Raises as `App.job` for an option that no job has."""
        return msgspec.structs.replace(self, options=merged(self.options, options, f"{self.type}.with_options"))

    def envelope(self) -> dict[str, Any]:
        """The job as it is pushed. Raises as `template`."""
        return {"id": self.id, **self.template()}

    def template(self) -> dict[str, Any]:
        """What the server makes jobs of, which get ids from it: those of workflows and of cron entries.

        Raises ValueError and TypeError for arguments that JSON can't hold, ValueError for what no server would take.
        """
        return {"type": self.type, "args": plain(list(self.args), "args"), "options": wire(self.options)}


def a_job(value: Any, what: str = "what is pushed is a job, as send_email.job(…) makes it") -> None:
    """Raise TypeError for what isn't a new job. `what` is the beginning of the message."""
    if not isinstance(value, JobRequest):
        raise misplaced(value, what)

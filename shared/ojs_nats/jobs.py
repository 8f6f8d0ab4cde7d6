"""Jobs: `JobRequest` is one to push, `Job` is one that the server has."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from ojs_api.jobs import JobError
from ojs_nats import _deprecated
from ojs_nats._checks import check_args, misplaced
from ojs_nats._ids import new_id
from ojs_nats._names import ENDED, job_type
from ojs_nats._options import checked, merged
from ojs_nats.options import DEFAULT_QUEUE, Options

if TYPE_CHECKING:
    import typing_extensions

    R_co = typing_extensions.TypeVar("R_co", covariant=True, default=Any)  # of a job that no definition made
else:
    R_co = TypeVar("R_co", covariant=True)

__all__ = ["Checkpoint", "Job", "JobError", "JobRequest", "JobRetry"]


class Checkpoint(msgspec.Struct, frozen=True):
    """A state that a handler saved with `ctx.save`.

    Attributes:
        state: What was saved.
        sequence: How many times the job has saved, this time included.
        created_at: When it was saved, in UTC.
        metadata: Data that clients in other languages may add.
    """

    state: Any = None
    sequence: int = 0
    created_at: datetime | None = None
    metadata: dict[str, Any] = {}


class JobRetry(msgspec.Struct, frozen=True):
    """The part of a job's retry policy that its worker reads.

    Attributes:
        non_retryable_errors: Names of error classes that end the job at once.
    """

    non_retryable_errors: list[str] = []


class Job(msgspec.Struct, frozen=True):
    """A job as the server has it. Times are in UTC; members that the job doesn't have are None.

    Attributes:
        id: The id, a UUIDv7.
        type: The job type.
        state: `scheduled`, `available`, `pending`, `active`, `retryable`, `completed`, `cancelled` or `discarded`.
        queue: The queue.
        attempt: The number of the last attempt; 0 before the first.
        max_attempts: How many attempts the retry policy allows.
        uncounted_attempts: How many attempts didn't count, since the job was handed back or snoozed.
        args: The arguments, as JSON.
        meta: Data that the job carries besides its arguments.
        result: What the handler returned, as JSON, if the job is completed.
        error: The error of the last attempt that failed.
        errors: The errors of all failed attempts, the oldest first.
        next_attempt_at: When a failed job runs again.
        timeout_ms: How long an attempt may run, in milliseconds.
        visibility_timeout_ms: After how many milliseconds without a heartbeat another worker gets the job.
        version: The version of the job's type.
        worker_id: The worker that runs the job.
        workflow_id: The workflow that the job is a step of.
        workflow_step: The position of the step in its workflow, from 0.
        workflow_step_id: The id of the step.
        parent_results: What the earlier steps of the workflow returned.
        parent_results_by_index: The same, by the position of each step.
        checkpoint: What an earlier attempt saved last.
        retry: The part of the retry policy that a worker reads.
    """

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
        """Whether the job is completed, cancelled or discarded."""
        return self.state in ENDED


class JobRequest(msgspec.Struct, Generic[R_co], frozen=True):
    """A job to push. A definition makes one: `send_email.job("ada@example.org")`.

    The id is made here, so that an unanswered push can be repeated. Pushing the same `JobRequest` twice, also
    with other options, makes one job.

    Args:
        type: The job type. `"report.build@2"` asks for version 2.
        args: The arguments, in order. JSON has to be able to hold them.
        options: The options of the job.
        id: A UUIDv7. By default a new one.
        returns: The type that `handle.result()` converts the result to.

    Raises:
        TypeError: The type isn't a text, the arguments aren't a sequence, or an option doesn't exist or is of another
            kind.
        ValueError: The type isn't a valid name, or the server would refuse an option.

    Example:
        >>> JobRequest("email.send", ("ada@example.org",), {"queue": "email"}).queue
        'email'
    """

    type: str
    args: tuple[Any, ...] = ()
    options: Options = {}
    id: str = msgspec.field(default_factory=new_id)
    returns: Any = Any

    def __post_init__(self) -> None:
        """Check the type, the arguments and the options."""
        if not isinstance(self.type, str):
            raise misplaced(self.type, "a new job begins with the name of its type")
        job_type(self.type)
        check_args(self.args)
        if self.options:
            msgspec.structs.force_setattr(self, "options", checked(self.options, f"JobRequest {self.type!r}"))

    @property
    def queue(self) -> str:
        """The queue that the job goes to."""
        return self.options.get("queue", DEFAULT_QUEUE)

    def with_options(self, **options: Unpack[Options]) -> JobRequest[R_co]:
        """Return the same job, under the same id, with other options.

        Args:
            **options: Any of `ojs_nats.options.Options`. Each replaces the one that the job had.

        Raises:
            TypeError: There is no such option, or the value is of another kind.
            ValueError: The server would refuse the value.
        """
        return msgspec.structs.replace(self, options=merged(self.options, options, f"{self.type}.with_options"))


_deprecated.methods(JobRequest, using="with_options")

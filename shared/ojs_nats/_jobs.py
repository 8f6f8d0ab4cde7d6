"""Jobs: one that is to be pushed, and one as the server tells of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Generic, TypeVar, Unpack

import msgspec
import uuid6

from ojs_nats._options import DEFAULT_QUEUE, Options, wire
from ojs_nats._plain import plain

R = TypeVar("R")

ENDED: Final = frozenset({"completed", "cancelled", "discarded"})


class JobError(msgspec.Struct, frozen=True):
    """Why an attempt failed."""

    message: str = ""
    code: str | None = None
    type: str | None = None
    attempt: int | None = None


class Checkpoint(msgspec.Struct, frozen=True):
    """What an attempt saved last: the `sequence`-th time that the job did."""

    state: Any = None
    sequence: int = 0
    created_at: datetime | None = None
    metadata: dict[str, Any] = {}


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

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class NewJob(msgspec.Struct, Generic[R], frozen=True):
    """A job that is yet to be pushed. Its id is made here, so that a push that wasn't answered can be sent again: a NewJob that
    is pushed twice, also with other options, is the same job, which is there once.

    `returns` is the type of its result, if the definition that made it says so.
    """

    type: str
    args: tuple[Any, ...] = ()
    options: Options = {}
    id: str = msgspec.field(default_factory=lambda: str(uuid6.uuid7()))
    returns: Any = Any

    @property
    def queue(self) -> str:
        return self.options.get("queue", DEFAULT_QUEUE)

    def using(self, **options: Unpack[Options]) -> NewJob[R]:
        """The same job with other options."""
        return msgspec.structs.replace(self, options=Options(**{**self.options, **options}))

    def envelope(self) -> dict[str, Any]:
        """The job as it is pushed. Raises as `template`."""
        return {"id": self.id, **self.template()}

    def template(self) -> dict[str, Any]:
        """What the server makes jobs of, which get ids from it: those of workflows and of cron entries.

        Raises ValueError and TypeError for arguments that JSON can't hold, ValueError for what no server would take.
        """
        return {"type": self.type, "args": plain(list(self.args), "args"), "options": wire(self.options)}

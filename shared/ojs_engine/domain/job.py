"""The job document: what is stored under `job.<id>`, and nothing else about it.

Times are Unix milliseconds (`*_at`), durations milliseconds (`*_ms`) unless a name says seconds. What a client sent and
nobody here needs to understand (`args`, `meta`, unknown members) stays raw JSON, so it comes back as it was sent.
The HTTP form of a job is made from this document by `ojs_engine.wire`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from msgspec import Raw, Struct

from ojs_api import words
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Ms, Priority, Whole

EMPTY_OBJECT: Final = Raw(b"{}")
NOTHING: Final = Raw(b"")
"""An absent raw member: false, and left out of the record. msgspec can't decode `Raw | None`; a JSON null is `Raw(b"null")`."""

Backoff = words.Backoff
Exhaustion = words.Exhaustion
Service = Literal["scheduler", "reaper"]


class State(StrEnum):
    """The eight states (ojs-core §6.1)."""

    SCHEDULED = "scheduled"
    AVAILABLE = "available"
    PENDING = "pending"
    ACTIVE = "active"
    RETRYABLE = "retryable"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


TERMINAL: Final = frozenset({State.COMPLETED, State.CANCELLED, State.DISCARDED})


class Retry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A retry policy merged over the defaults (ojs-retry §3)."""

    max_attempts: Whole = 3
    initial_interval_ms: Ms = 1_000
    backoff_coefficient: float = 2.0
    max_interval_ms: Ms = 300_000
    jitter: bool = True
    non_retryable_errors: tuple[str, ...] = ()
    on_exhaustion: Exhaustion = "discard"
    backoff_strategy: Backoff = "exponential"


SYSTEM_RETRY: Final = Retry()
"""The policy of a job that was pushed without one. Known by identity: a client may ask for an equal one."""


class Retention(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Seconds for which a finished job's record stays, by how it ended; what is None is the server's default."""

    completed_s: Whole | None = None
    cancelled_s: Whole | None = None
    discarded_s: Whole | None = None
    dead_letter_s: Whole | None = None


class JobError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failed attempt, as kept in `Job.errors` (what ojs-errors §6.1 and ojs-retry §10.1 ask for together)."""

    code: str
    type: str
    message: str
    attempt: Whole
    at: At
    retryable: bool | None = None
    details: Raw = NOTHING
    backtrace: Raw = NOTHING
    generation: Whole = 0
    """How many manual retries the job had seen by then; attempts start again at 1 after each."""


class Timer(Struct, frozen=True, omit_defaults=True):
    """The one live timer of a job, due at `at`, for `service`: a message `ojs.timer.job.<id>.<op>`, or the record itself.

    With `every_s` the record's own message is the timer, which rings every so many seconds until the record is written again
    (docs/adr/041).
    """

    op: str
    at: At
    service: Service
    every_s: Whole | None = None


class Blob(Struct, frozen=True):
    """A result that is a record of its own, `blob.<job id>.<op>.result` (docs/adr/020). `size` is in bytes."""

    op: str
    size: Whole


class Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One transition in the job's log. `n` counts from 1 and never repeats for a job id."""

    n: Whole
    op: str
    event: str
    at: At
    before: State | None = None
    after: State | None = None
    attempt: Whole = 0
    worker: str | None = None
    reason: str | None = None
    late_ms: Whole = 0
    """How long after `at` it was decided, where that is more than a moment: a deadline that nobody was there to act on."""
    queue: str | None = None
    """Where it happened, and what came before, if the job has gone on in another queue since."""


CALLED_OFF: Final = "its workflow was cancelled"
"""The reason on a job that was cancelled with its workflow, which is no failure of a step."""


class Membership(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job's place in a workflow (`ojs_features.workflows`). `node` is its number in the workflow's graph, `run` how often
    the workflow had been retried when it was created; together with the workflow's id they determine the job's own.
    """

    id: str
    node: Whole
    run: Whole = 0
    name: str = ""
    """The workflow's."""
    kind: str
    """Of the (nested) workflow that it is directly part of: `chain`, `group`, `batch` or `dag`."""
    step: str
    """Its id there."""
    index: Whole
    """Its position there, from 0."""
    size: Whole
    """The number of steps there, callbacks not counted."""
    callback: str | None = None
    """`on_complete`, `on_success` or `on_failure` if it is one."""
    opens: Whole = 0
    """The number of the workflow's direct steps if this is its first job, whose claim starts the workflow."""
    inputs: bool = False
    """It is given results of earlier steps."""
    definition: str = ""
    """Which definition of the workflow it is part of (`Workflow.definition`)."""


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The truth about one job; replaced as a whole by compare-and-swap."""

    id: str
    type: str
    args: Raw
    state: State
    queue: str = "default"
    priority: Priority = 0
    meta: Raw = EMPTY_OBJECT
    tags: tuple[str, ...] = ()
    schema: str | None = None
    version: int | str | None = None
    """Of its type, as it was sent; `ojs_engine.domain.versions` reads it."""

    # What the client asked for
    retry: Retry = SYSTEM_RETRY
    timeout_ms: Ms | None = None
    visibility_timeout_ms: Ms | None = None
    total_timeout_ms: Ms | None = None
    enqueue_ttl_ms: Ms | None = None
    heartbeat_timeout_ms: Ms | None = None
    grace_period_ms: Ms | None = None
    result_ttl_s: Whole | None = None
    """Seconds; 0 keeps no result, -1 keeps it for ever, None is the server's default."""
    result_size_limit: Whole | None = None
    retention: Retention | None = None
    """Set by the configuration of the queue that it was pushed to."""
    unique: Raw = NOTHING
    unique_key: str | None = None
    """The fingerprint that `unique` makes of this job (`ojs_engine.domain.unique.keyed`); None without a policy."""
    rate_limit: Raw = NOTHING
    metadata: Raw = NOTHING
    """`options.metadata`, echoed; test mode reads its `test_directive`."""
    verbatim: dict[str, str] = {}
    """Client-sent timestamps by attribute name, echoed as written (ojs-json-format §5.3)."""
    timeout_in_seconds: bool = False
    """The client used the flat `timeout` in seconds, so the answer may echo it."""
    extra: dict[str, Raw] = {}
    """Unknown members of the envelope, returned at the top level of the job."""
    retry_extensions: Extensions = {}
    """Members of extensions that were sent in `retry`."""
    workflow: Membership | None = None

    # Where it stands
    attempt: Whole = 0
    uncharged: Whole = 0
    """Attempts that do not count against `retry.max_attempts` (requeued by their worker)."""
    generation: Whole = 0
    """Manual retries so far."""
    worker: str | None = None
    result: Raw = NOTHING
    result_blob: Blob | None = None
    """Where the result is if it is not here."""
    error: JobError | None = None
    errors: tuple[JobError, ...] = ()
    retry_delay_ms: Ms | None = None
    dead_letter: bool = False
    checkpoint: bool = False
    """Whether there may be a checkpoint of it: a record of its own, which goes when the job has ended."""
    deleted: bool = False
    """A tombstone: the job is gone for every reader, the record only guards its id until its TTL."""

    # When
    created_at: At = 0
    scheduled_at: At | None = None
    expires_at: At | None = None
    enqueued_at: At | None = None
    activated_at: At | None = None
    started_at: At | None = None
    completed_at: At | None = None
    cancelled_at: At | None = None
    discarded_at: At | None = None
    re_enqueued_at: At | None = None
    next_attempt_at: At | None = None
    result_stored_at: At | None = None

    # Leases and hints
    lease_ms: Ms | None = None
    """The visibility timeout in force for the running attempt."""
    visible_until: At | None = None
    beat_at: At | None = None
    """When the holder of the running attempt was last heard of, as far as this record needed to know."""
    timer: Timer | None = None
    lock: str | None = None
    """The op under which a unique job took the lock of its fingerprint, for its present life."""
    permits: tuple[str, ...] = ()
    """Limits whose permits the running attempt holds; its end is hinted to each of them."""
    token: str | None = None
    """The op that made the job available; its token carries the same word."""
    transitions: tuple[Entry, ...] = ()
    """The last 64 transitions, oldest first."""
    amended: str | None = None
    """The op of the last change that was no transition."""

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    def times_from(self, start_ms: int) -> dict[str, int]:
        """Return the times of a template, counted from `start_ms`, but those that were sent as times of day."""
        return {
            name: start_ms + at
            for name in ("scheduled_at", "expires_at")
            if (at := getattr(self, name)) is not None and name not in self.verbatim
        }

    @property
    def result_bytes(self) -> int | None:
        """The size of its result, wherever that is; None without one."""
        if self.result:
            return len(self.result)
        return None if self.result_blob is None else self.result_blob.size

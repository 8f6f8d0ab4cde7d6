"""Queues: their numbers, settings, pause and removal (docs/queues.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ojs_api.jobs import RetryPolicy
from ojs_api.limits import MAX_CONCURRENCY
from ojs_api.members import (
    REQUIRED,
    Count,
    Duration,
    Measure,
    Moment,
    OpenAnswer,
    Part,
    QueueName,
    Text,
    one_of,
    wanted,
)
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import NUMBERED, PAGED, Indexed, Pagination
from ojs_api.schemas import Mode
from ojs_api.statistics import Counts, Lately, Milliseconds, Windows
from ojs_api.words import JobState, Overflow, RemovalStrategy

_Status = Annotated[str, one_of(Literal["active", "paused", "draining"])]
_Length = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]
_Seconds = Annotated[Measure, Meta(description="Seconds.")]
_Places = Annotated[
    Count, Meta(description="How many at once; 0 for any number.", extra_json_schema={"maximum": MAX_CONCURRENCY})
]
_BACKLOG: Final = "How many jobs had not ended: over the last 60 minutes, every 3, now at last."


# Requests


class PreventionRequest(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What a queue, or each queue of a pool, is to be guaranteed while it has jobs."""

    enabled: bool | None = None
    rotation_interval: Duration | None = None
    min_dispatch_ratio: Annotated[float, Meta(ge=0, le=1)] | None = None


class DeleteQueue(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What becomes of jobs that wait in a deleted queue."""

    strategy: Annotated[RemovalStrategy, Meta(description="What becomes of jobs that wait in it.")] | None = None
    target_queue: QueueName | None = None


class PurgeQueue(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Which jobs of a queue are removed: without `states`, those that wait."""

    states: Annotated[list[JobState], Meta(min_length=1)] | None = None
    older_than: (
        Annotated[
            str | int | float,
            Meta(
                description="A timestamp, or an age: a duration, or seconds.",
                extra_json_schema={"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]},
            ),
            wanted("a timestamp, or an age such as 7d"),
        ]
        | None
    ) = None
    confirm: Annotated[bool, Meta(description="Must be true: this changes every job that fits.")] | None = None


class PurgeStates(PurgeQueue, kw_only=True):
    """Which jobs of a queue are removed."""

    states: Annotated[list[JobState], Meta(min_length=1), REQUIRED] | None = None
    confirm: Annotated[bool, Meta(description="Must be true: this changes every job that fits."), REQUIRED] | None = None


# State and numbers


class QueueStatus(Struct, frozen=True, kw_only=True):
    """Whether a queue hands out jobs, and takes any."""

    name: str
    status: _Status
    paused: bool


class SwitchedQueue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A queue that was paused or resumed. `paused` stands beside it, too (ojs-admin-api §6.3)."""

    queue: QueueStatus
    paused: bool
    paused_at: Moment | None = None
    resumed_at: Moment | None = None


class Queue(Lately, frozen=True, kw_only=True, omit_defaults=True):
    """A queue in a list."""

    name: str
    status: _Status
    paused: bool
    counts: Counts
    pending: Annotated[Count, Meta(description="Jobs that are available, for OJS' Kubernetes operator.")]
    active: Annotated[Count, Meta(description="Jobs that are active, likewise.")]
    created_at: Moment | None = None


class QueuePage(Indexed, frozen=True, kw_only=True):
    """A page of the list of queues."""

    queues: list[Queue]
    pagination: Pagination


class AdminQueue(Queue, frozen=True, kw_only=True):
    """A queue in a list of the admin API, which calls its status `state` (ojs-admin-api §6.1)."""

    state: _Status
    backlog: Annotated[list[Count], Meta(description=_BACKLOG)]


class AdminQueuePage(Indexed, frozen=True, kw_only=True):
    """A page of the list of queues, as the admin API calls it."""

    items: list[AdminQueue]
    pagination: Pagination


class CountedQueue(Counts, frozen=True, kw_only=True):
    """A queue, and how many of its jobs are in each state."""

    name: str
    status: _Status
    paused: bool
    total: Annotated[Count, Meta(description="Jobs in all states.")]


class QueueNumbers(Lately, frozen=True, kw_only=True, omit_defaults=True):
    """What is measured of a queue; `avg_duration_ms` and `avg_wait_ms` over the last hour."""

    queue: str
    depth: Annotated[Count, Meta(description="Jobs that are available.")]
    load: Annotated[Count, Meta(description="Jobs that are available or active: what workers are needed for.")]
    dead: Annotated[Count, Meta(description="Dead letters.")]
    completed_last_hour: Count
    failed_last_hour: Count
    avg_duration_ms: Milliseconds
    avg_wait_ms: Milliseconds
    throughput_per_second: Annotated[Measure, Meta(description="Completed jobs, over the last five minutes.")]
    windows: Windows
    max_depth: Annotated[int, Meta(description="Where the queue is bounded.", extra_json_schema={"minimum": 1})] | None = None
    pressure: Annotated[Measure, Meta(description="`depth` as a share of `max_depth`.")] | None = None


class QueueStats(Indexed, frozen=True, kw_only=True):
    """A queue's numbers, now and lately."""

    queue: CountedQueue
    stats: QueueNumbers
    computed_at: Moment


class PriorityStats(Indexed, frozen=True, kw_only=True):
    """How many jobs wait to be fetched, by priority, the highest first (ojs-priority)."""

    queue: str
    counts_by_priority: dict[str, Count]
    total: Count


# Settings


class QueueRate(OpenAnswer, frozen=True, kw_only=True):
    """At most `limit` jobs start within any `period`."""

    limit: Annotated[int, Meta(extra_json_schema={"minimum": 1})]
    period: _Length


class JobRetention(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """How long a finished job's record stays, by how it ended."""

    completed: _Length | None = None
    cancelled: _Length | None = None
    discarded: _Length | None = None
    dead_letter: _Length | None = None


class DeadLetterLimits(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """How long dead letters stay, and how many."""

    max_age: _Length | None = None
    max_count: Annotated[Count, Meta(description="0 keeps any number.")] | None = None


class DeadLetterSettings(OpenAnswer, frozen=True, kw_only=True):
    """What is set for dead letters (ojs-dead-letter §5.1)."""

    retention: DeadLetterLimits


class StarvationPrevention(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """What a queue, or each queue of a pool, is guaranteed while it has jobs."""

    enabled: bool
    rotation_interval: (
        Annotated[str, Meta(description="After how long it gets a turn: a duration such as PT30S (ISO 8601).")] | None
    ) = None
    min_dispatch_ratio: Annotated[Part, Meta(description="Its part of all jobs.")] | None = None


class QueueSettings(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """Settings under the names that ojs-queue-config gives them. What is set nowhere is left out."""

    max_size: Count | None = None
    overflow_policy: Annotated[str, one_of(Overflow)] | None = None
    warning_threshold: Part | None = None
    concurrency: _Places | None = None
    rate_limit: QueueRate | None = None
    starvation_prevention: StarvationPrevention | None = None
    visibility_timeout: _Seconds | None = None
    default_timeout: _Seconds | None = None
    default_retry: RetryPolicy | None = None
    retention: JobRetention | None = None
    dead_letter: DeadLetterSettings | None = None
    allowed_job_types: list[str] | None = None
    strict_pause: bool | None = None
    schema_validation: Annotated[str, one_of(Mode)] | None = None


_Effective = Annotated[QueueSettings, Meta(description="As the settings of all queues and its own work together.")]
_Own = Annotated[QueueSettings, Meta(description="What is set for this queue alone.")]


class ConfiguredQueue(QueueStatus, frozen=True, kw_only=True, omit_defaults=True):
    """A queue with its settings."""

    config: _Effective
    own_config: _Own
    created_at: Moment | None = None
    updated_at: Moment | None = None
    paused_at: Moment | None = None


class QueueDetail(Queue, frozen=True, kw_only=True, omit_defaults=True):
    """A queue with its settings and numbers. `queue` is as in the answers to pause, resume and statistics."""

    queue: QueueStatus
    depth: Annotated[Count, Meta(description="Jobs that are available.")]
    config: _Effective
    own_config: _Own
    updated_at: Moment | None = None
    paused_at: Moment | None = None
    partial: (
        Annotated[bool, Meta(description="The index is being built anew: what is there is right, but not all is there.")] | None
    ) = None
    index_progress: Part | None = None


# Removal


class PurgedQueue(Struct, frozen=True, kw_only=True):
    """How many jobs were removed."""

    queue: str
    purged_count: Count
    remaining: Annotated[Count, Meta(description="How many more a repeated request would find.")]
    states: list[Annotated[str, one_of(JobState)]]


class DeletedQueue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has become of a queue and its jobs."""

    queue: str
    strategy: Annotated[str, one_of(RemovalStrategy)]
    jobs_affected: Count
    jobs_remaining: Count
    state: Annotated[str, one_of(Literal["draining", "deleted"])]
    target_queue: str | None = None


_NAMED: Final = ("queue_name_too_long",)
_SET: Final = (*_NAMED, "invalid_retry_policy", "conflict")
_SEARCH: Final = Parameter("search", Text, "A part of the name, in capital or small letters.")
_OF_ALL: Final = "`_default` stands for the settings of all queues."

# fmt: off
LIST: Final = Operation(
    "listQueues", "GET /queues", "read", "List queues", {200: QueuePage}, "By name.",
    query=(_SEARCH, *PAGED), narrowing="entry",
)
ADMIN_LIST: Final = Operation(
    "adminListQueues", "GET /admin/queues", "read", "List queues in numbered pages", {200: AdminQueuePage}, "By name.",
    query=(_SEARCH, *NUMBERED), narrowing="entry",
)
CREATE: Final = Operation(
    "createQueue", "POST /queues", "configure", "Create a queue", {201: ConfiguredQueue},
    "Not needed to push to it. The settings may also stand beside `name`.", errors=_SET, narrowing="body", by_queue=True,
)
GET: Final = Operation(
    "getQueue", "GET /queues/{queue}", "read", "Read a queue's settings and numbers", {200: QueueDetail},
    also=("GET /admin/queues/{queue} adminGetQueue",), errors=(*_NAMED, "not_found"), narrowing="queue",
)
DELETE: Final = Operation(
    "deleteQueue", "DELETE /queues/{queue}", "destroy", "Delete a queue", {200: DeletedQueue, 202: DeletedQueue},
    "202 while jobs of it are left: repeat the request. The queue takes no jobs meanwhile.",
    body=DeleteQueue,
    query=(
        Parameter("strategy", Annotated[RemovalStrategy, Meta(description="What becomes of jobs that wait in it.")]),
        Parameter("target_queue", QueueName),
    ),
    errors=(*_NAMED, "not_found", "conflict"), narrowing="queue",
)
STATS: Final = Operation(
    "getQueueStats", "GET /queues/{queue}/stats", "read", "Read a queue's numbers", {200: QueueStats},
    errors=_NAMED, narrowing="queue",
)
PRIORITIES: Final = Operation(
    "getQueuePriorityStats", "GET /queues/{queue}/priority-stats", "read", "Count what waits, by priority",
    {200: PriorityStats}, errors=_NAMED, narrowing="queue",
)
PAUSE: Final = Operation(
    "pauseQueue", "POST /queues/{queue}/pause", "control", "Pause a queue", {200: SwitchedQueue},
    "Once this is answered, nothing is fetched from it.",
    also=("POST /admin/queues/{queue}/pause adminPauseQueue",), errors=_NAMED, narrowing="queue",
)
RESUME: Final = Operation(
    "resumeQueue", "POST /queues/{queue}/resume", "control", "Resume a queue", {200: SwitchedQueue},
    "Ends a pause, and a drain.",
    also=("POST /admin/queues/{queue}/resume adminResumeQueue",), errors=_NAMED, narrowing="queue",
)
CONFIG: Final = Operation(
    "getQueueConfig", "GET /queues/{queue}/config", "read", "Read a queue's settings", {200: ConfiguredQueue},
    _OF_ALL, also=("GET /admin/queues/{queue}/config",), errors=_NAMED, narrowing="queue",
)
CONFIGURE: Final = Operation(
    "setQueueConfig", "PUT /queues/{queue}/config", "configure", "Set a queue's settings", {200: ConfiguredQueue},
    f"{_OF_ALL} Jobs that are queued keep what they have.",
    also=("PUT /admin/queues/{queue}/config",), errors=_SET, narrowing="queue",
)
LIMIT: Final = Operation(
    "setQueueRateLimit", "PUT /admin/queues/{queue}/rate-limit", "configure", "Limit a queue", {200: ConfiguredQueue},
    "What is left out is taken back.", errors=_SET, narrowing="queue",
)
PURGE: Final = Operation(
    "purgeQueue", "POST /queues/{queue}/purge", "destroy", "Remove a queue's waiting jobs", {200: PurgedQueue},
    "Or those in the states that the body names.", body=PurgeQueue, errors=_NAMED, narrowing="queue",
)
PURGE_STATES: Final = Operation(
    "adminPurgeQueue", "DELETE /admin/queues/{queue}/jobs", "destroy", "Remove a queue's jobs by state", {200: PurgedQueue},
    body=PurgeStates, errors=_NAMED, narrowing="queue",
)
QUEUES: Final = Subject(
    "Queues", "Queues: numbers, settings, pause, removal",
    (
        LIST, ADMIN_LIST, CREATE, GET, DELETE, STATS, PRIORITIES, PAUSE, RESUME, CONFIG, CONFIGURE, LIMIT, PURGE,
        PURGE_STATES,
    ),
)

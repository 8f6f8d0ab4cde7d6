"""Queues (docs/queues.md)."""

from __future__ import annotations

from typing import Final

from ojs_core.domain.job import State
from ojs_core.wire.queues import DeletionBody, PurgeBody
from ojs_core.wire.retry import RetryPolicy
from ojs_core.wire.starvation import StarvationPrevention
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.handlers.queues import QueueHandlers
from ojs_gateway.openapi.common import (
    CONFIRM,
    COUNT,
    COUNTS,
    DURATION,
    NUMBERED,
    PAGED,
    PROGRESS,
    QUEUE_NAME,
    STATE,
    page_of,
)
from ojs_gateway.openapi.envelope import (
    CONCURRENCY,
    OLDER_THAN,
    PREVENTION_REQUEST,
    RATE,
    RATE_LIMIT,
    RETRY_REQUEST,
    SECONDS,
)
from ojs_gateway.openapi.numbers import LATELY, OLDEST, WINDOWS
from ojs_gateway.openapi.route import Parameter, Part, Route
from ojs_gateway.openapi.schema import (
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    body_of,
    either,
    list_of,
    map_of,
    nullable,
    number,
    one_of,
    record,
    whole,
)

_STATES: Final = one_of("active", "paused", "draining", "deleted")
_STATUS: Final[dict[str, Schema]] = {"name": TEXT, "status": _STATES, "state": _STATES, "paused": FLAG}
_COUNTS: Final[dict[str, Schema]] = dict.fromkeys(State, COUNT)
_SETTINGS: Final = Named(
    "QueueSettings",
    record(
        {},
        {
            "max_size": COUNT,
            "overflow_policy": one_of("reject", "drop_oldest"),
            "warning_threshold": number(0, 1),
            "concurrency": CONCURRENCY,
            "strict_pause": FLAG,
            "starvation_prevention": StarvationPrevention,
            "rate_limit": record({"limit": whole(1), "period": DURATION}),
            "visibility_timeout": number(0),
            "default_timeout": number(0),
            "default_retry": RetryPolicy,
            "retention": record({}, dict.fromkeys(("completed", "cancelled", "discarded", "dead_letter"), DURATION)),
            "dead_letter": record({"retention": record({}, {"max_age": DURATION, "max_count": COUNT})}),
            "allowed_job_types": list_of(TEXT),
        },
        about="What is set nowhere is left out.",
    ),
)
_DEAD_LETTERS: Final = record({}, {"max_age": nullable(SECONDS), "max_count": nullable(COUNT)})
_WANTED: Final = Named(
    "QueueSettingsRequest",
    record(
        {},
        {
            "max_size": nullable(COUNT),
            "overflow_policy": nullable(one_of("reject", "drop_oldest")),
            "warning_threshold": nullable(number(0, 1)),
            "backpressure": nullable(
                record({}, {"max_depth": COUNT, "strategy": one_of("reject", "drop_oldest"), "warning_threshold": number(0, 1)})
            ),
            "concurrency": nullable(CONCURRENCY),
            "rate_limit": nullable(either(RATE, record({"max_per_second": whole(1)}), record({"rate": RATE}))),
            "visibility_timeout": nullable(SECONDS),
            "default_timeout": nullable(SECONDS),
            "default_retry": nullable(RETRY_REQUEST),
            "retention": nullable(
                either(record({}, dict.fromkeys(("completed", "cancelled", "discarded", "dead_letter"), SECONDS)), DURATION)
            ),
            "dead_letter": nullable(record({}, {"retention": nullable(_DEAD_LETTERS)})),
            "dead_letter_max_size": nullable(COUNT),
            "dead_letter_ttl": nullable(SECONDS),
            "allowed_job_types": nullable(list_of(TEXT, most=100)),
            "starvation_prevention": nullable(PREVENTION_REQUEST),
            "strict_pause": nullable(FLAG),
        },
        about="What is sent is set, null takes one back, others stay as they are.",
    ),
)
_CONFIGURED: Final[dict[str, Schema]] = {**_STATUS, "config": _SETTINGS, "configuration": _SETTINGS, "own_config": _SETTINGS}
_MOMENTS: Final[dict[str, Schema]] = dict.fromkeys(("created_at", "updated_at", "paused_at"), TIME)
_QUEUE: Final = Named("Queue", record(_CONFIGURED, _MOMENTS))
_STATS: Final = Named(
    "QueueStats",
    record(
        {
            "queue": TEXT,
            **_COUNTS,
            **dict.fromkeys(("dead", "depth", "completed_last_hour", "failed_last_hour"), COUNT),
            **dict.fromkeys(("avg_duration_ms", "avg_wait_ms", "throughput_per_second"), number(0)),
            **LATELY,
            "windows": WINDOWS,
        },
        {"max_depth": COUNT, "max_size": COUNT, "pressure": number(0), **OLDEST},
    ),
)
_PAGE: Final = Named(
    "QueuePage",
    page_of(record({**_STATUS, "counts": COUNTS, **LATELY}, {"created_at": TIME, **OLDEST}), "queues", "items"),
)
_AS_TEXT: Final = "`queue` is the queue's name in answers to requests with `OJS-Version`."
_SWITCHED: Final = Named(
    "SwitchedQueue",
    record({"queue": either(record(_STATUS), TEXT), **_STATUS}, dict.fromkeys(("paused_at", "resumed_at"), TIME)),
)
_PURGED: Final[dict[str, Schema]] = {
    "queue": TEXT,
    **dict.fromkeys(("purged_count", "purged", "deleted"), COUNT),
    "remaining": whole(0, about="How many more a repeated request would find."),
    "has_more": FLAG,
    "states": list_of(STATE),
}
_DELETED: Final = Named(
    "DeletedQueue",
    record(
        {
            "queue": TEXT,
            "name": TEXT,
            "strategy": one_of("reject", "discard", "move"),
            "jobs_affected": COUNT,
            "jobs_remaining": COUNT,
            "state": one_of("draining", "deleted"),
        },
        {"target_queue": TEXT},
    ),
)
_READ: Final = record(
    {**_CONFIGURED, "stats": _STATS, "counts": COUNTS, **LATELY, "depth": COUNT, "running": COUNT},
    {**_MOMENTS, **OLDEST, **PROGRESS},
)
_STRATEGY: Final = one_of("reject", "discard", "move", about="What becomes of jobs that wait in it.")
_NAMED: Final = ("queue_name_too_long",)
_SET: Final = (*_NAMED, "invalid_retry_policy", "conflict")

QUEUES: Final = Part(
    "Queues",
    "Queues: numbers, settings, pause, removal",
    (
        Route(
            ListHandlers, ListHandlers.queues, ("GET /queues listQueues",), "List queues", {200: _PAGE}, "By name.", query=PAGED
        ),
        Route(
            ListHandlers,
            ListHandlers.admin_queues,
            ("GET /admin/queues adminListQueues",),
            "List queues in numbered pages",
            {200: _PAGE},
            "By name.",
            query=NUMBERED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.create,
            ("POST /queues createQueue",),
            "Create a queue",
            {201: _QUEUE},
            "Not needed to push to it. The settings may also stand beside `name`.",
            body=record({"name": QUEUE_NAME}, {"config": _WANTED}, free=True),
            errors=_SET,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.read,
            ("GET /queues/{queue} getQueue", "GET /admin/queues/{queue} adminGetQueue"),
            "Read a queue's settings and numbers",
            {200: _READ},
            errors=(*_NAMED, "not_found"),
        ),
        Route(
            QueueHandlers,
            QueueHandlers.delete,
            ("DELETE /queues/{queue} deleteQueue",),
            "Delete a queue",
            {200: _DELETED, 202: _DELETED},
            "202 while jobs of it are left: repeat the request. The queue takes no jobs meanwhile.",
            body=body_of(DeletionBody, strategy=_STRATEGY, target_queue=QUEUE_NAME),
            query=(Parameter("strategy", _STRATEGY), Parameter("target_queue", QUEUE_NAME)),
            errors=(*_NAMED, "not_found", "conflict"),
        ),
        Route(
            ListHandlers,
            ListHandlers.queue_stats,
            ("GET /queues/{queue}/stats getQueueStats",),
            "Read a queue's numbers",
            {
                200: record(
                    {
                        "queue": either(record({**_STATUS, **_COUNTS}), TEXT),
                        **_STATUS,
                        **_COUNTS,
                        "stats": _STATS,
                        "computed_at": TIME,
                    },
                    PROGRESS,
                )
            },
            _AS_TEXT,
            errors=_NAMED,
        ),
        Route(
            ListHandlers,
            ListHandlers.priority_stats,
            ("GET /queues/{queue}/priority-stats getQueuePriorityStats",),
            "Count what waits, by priority",
            {
                200: record(
                    {
                        "queue": TEXT,
                        "counts_by_priority": map_of(COUNT),
                        "distribution": list_of(record({"priority": whole(-100, 100), "count": COUNT})),
                        "total": COUNT,
                    },
                    PROGRESS,
                )
            },
            errors=_NAMED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.pause,
            ("POST /queues/{queue}/pause pauseQueue", "POST /admin/queues/{queue}/pause adminPauseQueue"),
            "Pause a queue",
            {200: _SWITCHED},
            f"Once this is answered, nothing is fetched from it. {_AS_TEXT}",
            errors=_NAMED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.resume,
            ("POST /queues/{queue}/resume resumeQueue", "POST /admin/queues/{queue}/resume adminResumeQueue"),
            "Resume a queue",
            {200: _SWITCHED},
            f"Ends a pause, and a drain. {_AS_TEXT}",
            errors=_NAMED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.read_config,
            ("GET /queues/{queue}/config getQueueConfig", "GET /admin/queues/{queue}/config"),
            "Read a queue's settings",
            {200: _QUEUE},
            "`_default` stands for the settings of all queues.",
            errors=_NAMED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.configure,
            ("PUT /queues/{queue}/config setQueueConfig", "PUT /admin/queues/{queue}/config"),
            "Set a queue's settings",
            {200: _QUEUE},
            "`_default` stands for the settings of all queues. Jobs that are queued keep what they have.",
            body=_WANTED,
            errors=_SET,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.limit,
            ("PUT /admin/queues/{queue}/rate-limit setQueueRateLimit",),
            "Limit a queue",
            {200: _QUEUE},
            "What is left out is taken back.",
            body=RATE_LIMIT,
            errors=_SET,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.purge,
            ("POST /queues/{queue}/purge purgeQueue",),
            "Remove a queue's waiting jobs",
            {200: record(_PURGED)},
            "Or those in the states that the body names.",
            body=body_of(PurgeBody, states=list_of(STATE), older_than=OLDER_THAN),
            errors=_NAMED,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.purge_states,
            ("DELETE /admin/queues/{queue}/jobs adminPurgeQueue",),
            "Remove a queue's jobs by state",
            {200: record(_PURGED)},
            body=body_of(PurgeBody, "states", "confirm", states=list_of(STATE), older_than=OLDER_THAN, confirm=CONFIRM),
            errors=_NAMED,
        ),
    ),
)

"""Queues (docs/queues.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_api import words
from ojs_api.schemas import MODES
from ojs_engine.api.common import (
    CONCURRENCY,
    CONFIRM,
    COUNT,
    DURATION,
    NUMBERED,
    PAGED,
    QUEUE_NAME,
    RATE,
    SEARCH,
    STATE,
)
from ojs_engine.api.envelope import (
    OLDER_THAN,
    PREVENTION_REQUEST,
    RATE_LIMIT,
    RETRY_REQUEST,
    SECONDS,
)
from ojs_engine.api.route import Parameter, Part, Route
from ojs_engine.api.schema import (
    FLAG,
    TEXT,
    Named,
    body_of,
    either,
    list_of,
    nullable,
    number,
    one_of,
    record,
    whole,
)
from ojs_engine.wire.queues.answers import (
    AdminQueuePage,
    ConfiguredQueue,
    DeletedQueue,
    PriorityStats,
    PurgedQueue,
    QueueDetail,
    QueuePageAnswer,
    QueueStatsAnswer,
    SwitchedQueue,
)
from ojs_engine.wire.queues.requests import DeletionBody, PurgeBody
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.handlers.queues import QueueHandlers

_DEAD_LETTERS: Final = record({}, {"max_age": nullable(SECONDS), "max_count": nullable(COUNT)})
_OVERFLOW: Final = one_of(*get_args(words.Overflow))
_WANTED: Final = Named(
    "QueueSettingsRequest",
    record(
        {},
        {
            "max_size": nullable(COUNT),
            "max_depth": nullable(COUNT),
            "overflow_policy": nullable(_OVERFLOW),
            "warning_threshold": nullable(number(0, 1)),
            "backpressure": nullable(
                record({}, {"max_depth": COUNT, "strategy": _OVERFLOW, "warning_threshold": number(0, 1)})
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
            "schema_validation": nullable(one_of(*MODES)),
        },
        about="What is sent is set, null takes one back, others stay as they are.",
    ),
)
_STRATEGY: Final = one_of(*get_args(words.RemovalStrategy), about="What becomes of jobs that wait in it.")
_NAMED: Final = ("queue_name_too_long",)
_SET: Final = (*_NAMED, "invalid_retry_policy", "conflict")

QUEUES: Final = Part(
    "Queues",
    "Queues: numbers, settings, pause, removal",
    (
        Route(
            ListHandlers,
            ListHandlers.queues,
            ("GET /queues listQueues",),
            "read",
            "List queues",
            {200: QueuePageAnswer},
            "By name.",
            query=(SEARCH, *PAGED),
            narrowing="entry",
        ),
        Route(
            ListHandlers,
            ListHandlers.admin_queues,
            ("GET /admin/queues adminListQueues",),
            "read",
            "List queues in numbered pages",
            {200: AdminQueuePage},
            "By name.",
            query=(SEARCH, *NUMBERED),
            narrowing="entry",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.create,
            ("POST /queues createQueue",),
            "configure",
            "Create a queue",
            {201: ConfiguredQueue},
            "Not needed to push to it. The settings may also stand beside `name`.",
            body=record({"name": QUEUE_NAME}, {"config": _WANTED}, free=True),
            errors=_SET,
            narrowing="body",
            by_queue=True,
        ),
        Route(
            QueueHandlers,
            QueueHandlers.read,
            ("GET /queues/{queue} getQueue", "GET /admin/queues/{queue} adminGetQueue"),
            "read",
            "Read a queue's settings and numbers",
            {200: QueueDetail},
            errors=(*_NAMED, "not_found"),
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.delete,
            ("DELETE /queues/{queue} deleteQueue",),
            "destroy",
            "Delete a queue",
            {200: DeletedQueue, 202: DeletedQueue},
            "202 while jobs of it are left: repeat the request. The queue takes no jobs meanwhile.",
            body=body_of(DeletionBody, strategy=_STRATEGY, target_queue=QUEUE_NAME),
            query=(Parameter("strategy", _STRATEGY), Parameter("target_queue", QUEUE_NAME)),
            errors=(*_NAMED, "not_found", "conflict"),
            narrowing="queue",
        ),
        Route(
            ListHandlers,
            ListHandlers.queue_stats,
            ("GET /queues/{queue}/stats getQueueStats",),
            "read",
            "Read a queue's numbers",
            {200: QueueStatsAnswer},
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            ListHandlers,
            ListHandlers.priority_stats,
            ("GET /queues/{queue}/priority-stats getQueuePriorityStats",),
            "read",
            "Count what waits, by priority",
            {200: PriorityStats},
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.pause,
            ("POST /queues/{queue}/pause pauseQueue", "POST /admin/queues/{queue}/pause adminPauseQueue"),
            "control",
            "Pause a queue",
            {200: SwitchedQueue},
            "Once this is answered, nothing is fetched from it.",
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.resume,
            ("POST /queues/{queue}/resume resumeQueue", "POST /admin/queues/{queue}/resume adminResumeQueue"),
            "control",
            "Resume a queue",
            {200: SwitchedQueue},
            "Ends a pause, and a drain.",
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.read_config,
            ("GET /queues/{queue}/config getQueueConfig", "GET /admin/queues/{queue}/config"),
            "read",
            "Read a queue's settings",
            {200: ConfiguredQueue},
            "`_default` stands for the settings of all queues.",
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.configure,
            ("PUT /queues/{queue}/config setQueueConfig", "PUT /admin/queues/{queue}/config"),
            "configure",
            "Set a queue's settings",
            {200: ConfiguredQueue},
            "`_default` stands for the settings of all queues. Jobs that are queued keep what they have.",
            body=_WANTED,
            errors=_SET,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.limit,
            ("PUT /admin/queues/{queue}/rate-limit setQueueRateLimit",),
            "configure",
            "Limit a queue",
            {200: ConfiguredQueue},
            "What is left out is taken back.",
            body=RATE_LIMIT,
            errors=_SET,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.purge,
            ("POST /queues/{queue}/purge purgeQueue",),
            "destroy",
            "Remove a queue's waiting jobs",
            {200: PurgedQueue},
            "Or those in the states that the body names.",
            body=body_of(PurgeBody, states=list_of(STATE), older_than=OLDER_THAN),
            errors=_NAMED,
            narrowing="queue",
        ),
        Route(
            QueueHandlers,
            QueueHandlers.purge_states,
            ("DELETE /admin/queues/{queue}/jobs adminPurgeQueue",),
            "destroy",
            "Remove a queue's jobs by state",
            {200: PurgedQueue},
            body=body_of(PurgeBody, "states", "confirm", states=list_of(STATE), older_than=OLDER_THAN, confirm=CONFIRM),
            errors=_NAMED,
            narrowing="queue",
        ),
    ),
)

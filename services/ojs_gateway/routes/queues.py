"""Queues (docs/queues.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from ojs_api import queues as contract
from ojs_api import words
from ojs_api.schemas import MODES
from ojs_engine.api.common import CONCURRENCY, COUNT, DURATION, QUEUE_NAME, RATE
from ojs_engine.api.contract import part_of
from ojs_engine.api.envelope import PREVENTION_REQUEST, RATE_LIMIT, RETRY_REQUEST, SECONDS
from ojs_engine.api.schema import FLAG, TEXT, Named, Schema, either, list_of, nullable, number, one_of, record, whole
from ojs_gateway.handlers.lists import ListHandlers
from ojs_gateway.handlers.queues import QueueHandlers
from ojs_gateway.openapi.document import places

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
_BODIES: Final[Mapping[str, Schema]] = {
    contract.CREATE.name: record({"name": QUEUE_NAME}, {"config": _WANTED}, free=True),
    contract.CONFIGURE.name: _WANTED,
    contract.LIMIT.name: RATE_LIMIT,
}
"""Bodies that are read by hand (`ojs_engine.wire.queues.requests`), by their operations."""
_READ: Final = part_of(
    contract.QUEUES,
    (
        ListHandlers,
        {
            contract.LIST: ListHandlers.queues,
            contract.ADMIN_LIST: ListHandlers.admin_queues,
            contract.STATS: ListHandlers.queue_stats,
            contract.PRIORITIES: ListHandlers.priority_stats,
        },
    ),
    (
        QueueHandlers,
        {
            contract.CREATE: QueueHandlers.create,
            contract.GET: QueueHandlers.read,
            contract.DELETE: QueueHandlers.delete,
            contract.PAUSE: QueueHandlers.pause,
            contract.RESUME: QueueHandlers.resume,
            contract.CONFIG: QueueHandlers.read_config,
            contract.CONFIGURE: QueueHandlers.configure,
            contract.LIMIT: QueueHandlers.limit,
            contract.PURGE: QueueHandlers.purge,
            contract.PURGE_STATES: QueueHandlers.purge_states,
        },
    ),
)
QUEUES: Final = _READ._replace(
    routes=tuple(
        route if route.body is not None else route._replace(body=_BODIES.get(next(places(route)).operation_id))
        for route in _READ.routes
    )
)

"""Events (docs/events.md)."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.route import Other, Parameter, Part, Route
from ojs_engine.api.schema import TEXT, text, whole
from ojs_engine.wire.events import EventPage
from ojs_engine.wire.pages import ADMIN_PAGE, MAX_NUMBERED
from ojs_gateway.handlers.events import EventHandlers

_FILTERS: Final = (
    Parameter("types", TEXT, "Types with commas between them; one may end in .*", several=True),
    Parameter("type", TEXT, "Another name of `types`.", several=True),
    Parameter("event_types", TEXT, "Another name of `types`.", several=True),
    Parameter("queues", TEXT, "Queues with commas between them.", several=True),
    Parameter("queue", TEXT, "Another name of `queues`.", several=True),
    Parameter("job_types", TEXT, "Job types with commas between them.", several=True),
    Parameter("job_type", TEXT, "Another name of `job_types`.", several=True),
)
_FROM: Final = (
    Parameter("Last-Event-ID", TEXT, "Goes on after this event.", "header"),
    Parameter("last_event_id", TEXT, "The same, for clients that can't set headers."),
)
_STREAM: Final = Other("text/event-stream", "Server-sent events; docs/events.md says what each has as its data.")
_CURSOR: Final = text(pattern="^[0-9]+$", most=18)

EVENTS: Final = Part(
    "Events",
    "What happens, by polling or as it happens",
    (
        Route(
            EventHandlers,
            EventHandlers.poll,
            ("GET /events listEvents",),
            "read",
            "Poll events",
            {200: EventPage},
            "The oldest first. With `page` or `per_page` the newest first, and `pagination` says how many there are.",
            query=(
                Parameter("after", _CURSOR, "`cursor` of an earlier answer."),
                Parameter("cursor", _CURSOR, "Another name of `after`.", same_as="after"),
                Parameter("limit", whole(1, 1_000) | {"default": 100}),
                Parameter("page", whole(1), "Counts pages from the newest, of one type and one queue at most."),
                Parameter("per_page", whole(1, MAX_NUMBERED) | {"default": ADMIN_PAGE}, "More counts as the most."),
                *_FILTERS,
            ),
            narrowing="entry",
        ),
        Route(
            EventHandlers,
            EventHandlers.stream,
            ("GET /events/stream streamEvents",),
            "read",
            "Follow events",
            {200: _STREAM},
            query=(
                Parameter("channel", text(pattern="^(job:.+|queue:.+|all|events)$"), "Together with the filters."),
                *_FILTERS,
                *_FROM,
            ),
            narrowing="entry",
        ),
        Route(
            EventHandlers,
            EventHandlers.of_job,
            ("GET /jobs/{job_id}/events subscribeJobEvents",),
            "read",
            "Follow a job's events",
            {200: _STREAM},
            "It ends with the job: that of a finished one tells how it ended, and ends.",
            query=(*_FILTERS, *_FROM),
            errors=("not_found",),
            narrowing="job",
        ),
        Route(
            EventHandlers,
            EventHandlers.of_queue,
            ("GET /queues/{queue}/events subscribeQueueEvents",),
            "read",
            "Follow a queue's events",
            {200: _STREAM},
            query=(*_FILTERS, *_FROM),
            errors=("not_found", "queue_name_too_long"),
            narrowing="queue",
        ),
        Route(
            EventHandlers,
            EventHandlers.socket,
            ("GET /ws websocketConnect",),
            "read",
            "Follow events over a WebSocket",
            {101: Other(None, "The connection is a WebSocket from here on.")},
            'Clients send `{"action": "subscribe", "channel": …, "filter": {…}}`, `{"action": "unsubscribe", …}` and '
            '`{"action": "resume", "last_event_id": …}`; the subprotocol is `ojs.v1` (docs/events.md).',
            errors=("invalid_request",),
            narrowing="entry",
        ),
    ),
)

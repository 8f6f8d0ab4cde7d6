"""Events: what happens, by polling or as it happens (docs/events.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ojs_api.members import HIDDEN, Moment
from ojs_api.operations import Operation, Other, Parameter, Subject
from ojs_api.pages import ADMIN_PAGE, MAX_NUMBERED, Pagination

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000
"""Events of one page, unless its pages are counted."""


class Event(Struct, frozen=True, kw_only=True):
    """An event (docs/events.md).

    Attributes:
        id: The id. An event that comes twice has the same.
        subject: The id of the job, or of what else it is about.
        cursor: Where to go on after it: `client.events(after=event.cursor)`. "" in a page, which has `cursors`.
    """

    id: str
    type: Annotated[str, Meta(examples=["job.completed"])]
    time: Moment
    subject: str = ""
    source: str = ""
    data: dict[str, Any] = {}
    cursor: Annotated[str, HIDDEN] = ""
    specversion: str = "1.0"
    datacontenttype: str = "application/json"


class EventPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of events, the oldest first; by `page` the newest first. `pagination` is there for those who count pages.

    Attributes:
        cursor: The cursor behind the page.
        cursors: The cursor behind each event.
    """

    events: list[Event]
    cursor: Annotated[str, Meta(description="Goes into `after` for what follows.")]
    cursors: Annotated[list[str], Meta(description="For each event the cursor behind it.")] = []
    has_more: bool
    pagination: Pagination | None = None


_Cursor = Annotated[str, Meta(pattern="^[0-9]+$", max_length=18)]
_Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT, extra_json_schema={"default": DEFAULT_LIMIT})]
_Size = Annotated[int, Meta(ge=1, le=MAX_NUMBERED, extra_json_schema={"default": ADMIN_PAGE})]
_Channel = Annotated[str, Meta(pattern="^(job:.+|queue:.+|all|events)$")]
_FILTERS: Final = (
    Parameter("types", str, "Types with commas between them; one may end in .*", several=True),
    Parameter("type", str, "Another name of `types`.", several=True),
    Parameter("event_types", str, "Another name of `types`.", several=True),
    Parameter("queues", str, "Queues with commas between them.", several=True),
    Parameter("queue", str, "Another name of `queues`.", several=True),
    Parameter("job_types", str, "Job types with commas between them.", several=True),
    Parameter("job_type", str, "Another name of `job_types`.", several=True),
)
_FROM: Final = (
    Parameter("Last-Event-ID", str, "Goes on after this event.", place="header"),
    Parameter("last_event_id", str, "The same, for clients that can't set headers."),
)
_STREAM: Final = Other("text/event-stream", "Server-sent events; docs/events.md says what each has as its data.")

# fmt: off
POLL: Final = Operation(
    "listEvents", "GET /events", "read", "Poll events", {200: EventPage},
    "The oldest first. With `page` or `per_page` the newest first, and `pagination` says how many there are.",
    query=(
        Parameter("after", _Cursor, "`cursor` of an earlier answer."),
        Parameter("cursor", _Cursor, "Another name of `after`.", same_as="after"),
        Parameter("limit", _Limit),
        Parameter("page", Annotated[int, Meta(ge=1)], "Counts pages from the newest, of one type and one queue at most."),
        Parameter("per_page", _Size, "More counts as the most."),
        *_FILTERS,
    ),
    narrowing="entry",
)
STREAM: Final = Operation(
    "streamEvents", "GET /events/stream", "read", "Follow events", {200: _STREAM},
    query=(Parameter("channel", _Channel, "Together with the filters."), *_FILTERS, *_FROM), narrowing="entry",
)
OF_JOB: Final = Operation(
    "subscribeJobEvents", "GET /jobs/{job_id}/events", "read", "Follow a job's events", {200: _STREAM},
    "It ends with the job: that of a finished one tells how it ended, and ends.",
    query=(*_FILTERS, *_FROM), errors=("not_found",), narrowing="job",
)
OF_QUEUE: Final = Operation(
    "subscribeQueueEvents", "GET /queues/{queue}/events", "read", "Follow a queue's events", {200: _STREAM},
    query=(*_FILTERS, *_FROM), errors=("not_found", "queue_name_too_long"), narrowing="queue",
)
SOCKET: Final = Operation(
    "websocketConnect", "GET /ws", "read", "Follow events over a WebSocket",
    {101: Other(None, "The connection is a WebSocket from here on.")},
    'Clients send `{"action": "subscribe", "channel": …, "filter": {…}}`, `{"action": "unsubscribe", …}` and '
    '`{"action": "resume", "last_event_id": …}`; the subprotocol is `ojs.v1` (docs/events.md).',
    errors=("invalid_request",), narrowing="entry",
)
EVENTS: Final = Subject(
    "Events", "What happens, by polling or as it happens", (POLL, STREAM, OF_JOB, OF_QUEUE, SOCKET),
)

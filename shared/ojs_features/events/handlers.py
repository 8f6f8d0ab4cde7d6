"""Events for clients: polling and server-sent events, and the way to the WebSocket."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_api.events import DEFAULT_LIMIT, MAX_LIMIT, EventPage
from ojs_engine.api.call import Call, Response
from ojs_engine.api.streams import Conversation, EventStream
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.jetstream.event_reader import EventFilter, EventReader
from ojs_engine.wire.members import written
from ojs_engine.wire.pages import pagination, parse_page
from ojs_features.context import HandlerContext
from ojs_features.events.answers import LIVE_TYPES, STATE_CHANGED
from ojs_features.events.channels import EVENTS, Sees, channel_of, cursor_of, filter_of, resumed
from ojs_features.events.following import Following
from ojs_features.events.sockets import MAX_MESSAGE_BYTES, SUBPROTOCOL, hold_socket
from ojs_features.events.stream import ChannelStream
from ojs_features.events.timings import SubscriptionTimings

_BEYOND: Final = 10**18


class EventHandlers:
    """Handlers of events. Polling sees the events of everything that any gateway has answered before."""

    def __init__(self, context: HandlerContext) -> None:
        self._queries = context.queries
        self._reader = EventReader(context.store.bulk, context.store.config)
        self._following = Following(context, self._reader, context.store.bucket.timings(SubscriptionTimings))

    # Polling

    async def poll(self, call: Call) -> Response:
        """GET /events?after&types&queues&job_types&limit: oldest first; `cursor` goes into the next `after`.

        With `page` or `per_page` it is a page of the newest, as the admin UI asks for.
        """
        wanted = replace(filter_of(call.queries), sees=_sees(call))
        for event_type in (STATE_CHANGED, *LIVE_TYPES):
            if event_type in wanted.types:
                raise invalid("types", f"types has {event_type}, which is kept nowhere: follow a stream or a WebSocket")
        name = "after" if call.query("after") else "cursor"
        sent = call.query(name)
        after = cursor_of(sent, name) if sent else 0
        if call.query("page") or call.query("per_page"):
            return await self._newest(call, wanted)
        limit = _limit(call.query("limit"))
        await self._queries.until_relayed()
        page = await self._reader.read(after, wanted, limit)
        if not page.events and after and after > (last := await self._reader.last_sequence()):
            message = f"{name} is beyond the last event, {last}: what it counted is no more; begin again with after=0"
            raise invalid(name, message)
        events = written([Raw(event.body) for event in page.events])
        cursors = written(tuple(str(event.sequence) for event in page.events))  # as a list it would be left out if it is empty
        return Response(200, EventPage(events=events, cursor=str(page.cursor), has_more=page.has_more, cursors=cursors))

    async def _newest(self, call: Call, wanted: EventFilter) -> Response:
        for name in ("after", "cursor"):
            if call.query(name):
                raise invalid(name, f"{name} goes on in the order of events, page counts from the newest; use one of both")
        if not wanted.exact:
            raise invalid("page", "pages are counted for at most one type in full and one queue; for more filters, use after")
        asked = parse_page(call.queries, numbered=True)
        await self._queries.until_relayed()
        page = await self._reader.newest(wanted, asked.offset, asked.limit)
        more = asked.offset + len(page.events) < page.total
        events = written([Raw(event.body) for event in page.events])
        place = pagination(asked, page.total, None, more=more)
        return Response(200, EventPage(events=events, cursor=str(page.cursor), has_more=more, pagination=place))

    # Following

    async def stream(self, call: Call) -> EventStream:
        """GET /events/stream?channel=job:<id>|queue:<name>|all, or with the filters of polling."""
        return await self._sse(call, call.query("channel") or EVENTS)

    async def of_job(self, call: Call) -> EventStream:
        """GET /jobs/{id}/events: ends with the job."""
        return await self._sse(call, f"job:{call.parameters[0]}")

    async def of_queue(self, call: Call) -> EventStream:
        """GET /queues/{name}/events."""
        return await self._sse(call, f"queue:{call.parameters[0]}")

    async def socket(self, call: Call) -> Conversation:
        """GET /ws: `{"action": "subscribe", "channel": …, "filter": {…}}` and `{"action": "unsubscribe", …}`."""
        call.held = True
        return Conversation(partial(hold_socket, self._following, call), SUBPROTOCOL, MAX_MESSAGE_BYTES)

    async def _sse(self, call: Call, name: str) -> EventStream:
        channel = channel_of(name, call.queries, _sees(call))
        last = call.header("Last-Event-ID") or call.query("last_event_id")
        after = _after(last) if last else None
        if last:
            channel = resumed(channel, last)
        followed = await self._following.open(channel, after)
        begins_behind = followed.subscription.cursor if after is None else None
        frames = ChannelStream(self._following, followed, call, replays=after is not None).frames()
        return EventStream(frames, followed.subscription.close, begins_behind)


def _sees(call: Call) -> Sees | None:
    """What events have to be about."""
    call.held = True
    return call.sees if call.bounded else None


def _after(last_event_id: str) -> int:
    """The cursor that an id stands for. Another server's is beyond all: an `EventSource` that is refused is so for ever."""
    try:
        return cursor_of(last_event_id, "Last-Event-ID")
    except OjsError:
        return _BEYOND


def _limit(text: str | None) -> int:
    if not text:
        return DEFAULT_LIMIT
    number = whole_number(text, 18)
    if number is None:
        raise invalid("limit", f"limit must be a whole number, not {shown(text)}")
    return min(max(number, 1), MAX_LIMIT)

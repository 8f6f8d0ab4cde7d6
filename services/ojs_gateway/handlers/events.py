"""Events for clients: polling and server-sent events, and the way to the WebSocket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.api.call import Call, Response
from ojs_engine.api.streams import KEEP_ALIVE, Conversation, EventStream, frame
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_engine.wire.dialects.events import told_body
from ojs_engine.wire.errors import error_body
from ojs_engine.wire.events import LIVE_TYPES, STATE_CHANGED, EventPage, Told
from ojs_engine.wire.pages import pagination, parse_page
from ojs_gateway.channels import EVENTS, Sees, channel_of, cursor_of, ends, filter_of, resumed
from ojs_gateway.context import Context
from ojs_gateway.handlers.event_socket import MAX_MESSAGE_BYTES, SUBPROTOCOL, hold_socket
from ojs_gateway.handlers.following import Followed, Following, final
from ojs_gateway.hub import Found, HubReset, Missed

_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1_000
_BEYOND: Final = 10**18


class EventHandlers:
    """Handlers of events. Polling sees the events of everything that any gateway has answered before."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reader = EventReader(context.store.bulk, context.store.config)
        self._following = Following(context, self._reader)

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
        await self._context.queries.until_relayed()
        page = await self._reader.read(after, wanted, limit)
        if not page.events and after and after > (last := await self._reader.last_sequence()):
            message = f"{name} is beyond the last event, {last}: what it counted is no more; begin again with after=0"
            raise invalid(name, message)
        events = [Raw(event.body) for event in page.events]
        cursors = [str(event.sequence) for event in page.events]
        return Response(200, EventPage(events=events, cursor=str(page.cursor), has_more=page.has_more, cursors=cursors))

    async def _newest(self, call: Call, wanted: EventFilter) -> Response:
        for name in ("after", "cursor"):
            if call.query(name):
                raise invalid(name, f"{name} goes on in the order of events, page counts from the newest; use one of both")
        if not wanted.exact:
            raise invalid("page", "pages are counted for at most one type in full and one queue; for more filters, use after")
        asked = parse_page(call.queries, numbered=True)
        await self._context.queries.until_relayed()
        page = await self._reader.newest(wanted, asked.offset, asked.limit)
        more = asked.offset + len(page.events) < page.total
        answer = EventPage(events=[Raw(event.body) for event in page.events], cursor=str(page.cursor), has_more=more)
        answer.pagination = pagination(asked, page.total, None, more=more)
        return Response(200, answer)

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
        hold = partial(hold_socket, self._context, self._following, self._reader, call)
        return Conversation(hold, SUBPROTOCOL, MAX_MESSAGE_BYTES)

    async def _sse(self, call: Call, name: str) -> EventStream:
        channel = channel_of(name, call.queries, _sees(call))
        last = call.header("Last-Event-ID") or call.query("last_event_id")
        after = _after(last) if last else None
        if last:
            channel = resumed(channel, last)
        followed = await self._following.open(channel, after)
        writer = _Writer(self._context, self._following, followed, call, replays=after is not None)
        begins_behind = followed.subscription.cursor if after is None else None
        return EventStream(writer.frames(), followed.subscription.close, begins_behind)


def _sees(call: Call) -> Sees | None:
    """What events have to be about."""
    call.held = True
    return call.sees if call.bounded else None


class _Writer:
    """One stream of server-sent events. One of a job ends with it: when all is told that its end has brought."""

    def __init__(self, context: Context, following: Following, followed: Followed, call: Call, *, replays: bool) -> None:
        self._context = context
        self._following = following
        self._channel, self._subscription, self._job = followed
        self._reader = call.dialect.reader
        self._hides = call.hides
        self._replays = replays
        self._ended = False
        """Whether the last change of state that was read is the job's end."""

    async def frames(self) -> AsyncGenerator[bytes]:
        """Yield what the client is sent."""
        if self._job is not None:
            if not self._replays:
                yield self._frames(final(self._channel, self._job, self._subscription.cursor))
                return
            with contextlib.suppress(OjsError):  # its end is told in any case
                await self._context.queries.until_relayed()
        surely_last = False
        while True:
            finished = self._ended or self._job is not None
            try:
                found = await self._subscription.next(0 if finished else self._context.keep_alive_s)
            except OjsError as error:
                yield frame("error", error_body(error, ""))
                return  # the client connects again with its Last-Event-ID
            if found is not None:
                surely_last = False
                if told := self._told(found):
                    yield told
            elif not finished:
                if await self._gone():
                    return
                yield KEEP_ALIVE
            elif not surely_last:  # an entry's events are stored at once, and may have been read in two parts
                surely_last = True
                self._subscription.resume()
            else:
                if self._job is not None and not self._ended:
                    yield self._frames(final(self._channel, self._job, self._subscription.cursor))
                return

    def _told(self, found: Found) -> bytes:
        number = str(self._subscription.cursor)
        if not isinstance(found, StoredEvent):
            notice = frame(*self._following.notice(found, self._channel), number)
            if isinstance(found, Missed):
                notice = b'event: missed\ndata: {"missed":%d}\n\n' % found.number + notice
            elif isinstance(found, HubReset):
                notice = b'event: reset\ndata: {"last":"%d"}\n\n' % found.kept.last + notice
            else:
                notice = b":events-dropped %d\n\n" % found.number + notice
            return notice
        if self._channel.job_id is not None and (end := ends(found.type)) is not None:
            self._ended = end
        return self._frames(self._channel.told(found, self._subscription.cursor))

    def _frames(self, told: list[Told]) -> bytes:
        return b"".join(frame(one.type, told_body(one, self._reader, hides=self._hides), one.id) for one in told)

    async def _gone(self) -> bool:
        """Look whether the job is there, while nothing comes: it may have been removed, or its end be told by no event."""
        try:
            self._job = await self._following.finished(self._channel)
        except OjsError as error:
            return error.code == "not_found"
        return False


def _after(last_event_id: str) -> int:
    """The cursor that an id stands for. Another server's is beyond all: an `EventSource` that is refused is so for ever."""
    try:
        return cursor_of(last_event_id, "Last-Event-ID")
    except OjsError:
        return _BEYOND


def _limit(text: str | None) -> int:
    if not text:
        return _DEFAULT_LIMIT
    number = whole_number(text, 18)
    if number is None:
        raise invalid("limit", f"limit must be a whole number, not {shown(text)}")
    return min(max(number, 1), _MAX_LIMIT)

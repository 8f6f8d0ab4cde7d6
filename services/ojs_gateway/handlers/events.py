"""Events for clients: polling, server-sent events and WebSocket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from aiohttp import WSMsgType, hdrs, web
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_core.base.errors import OjsError, invalid
from ojs_core.base.fields import queue_name
from ojs_core.base.ids import job_id_of
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_core.wire.dialects.events import event_body
from ojs_core.wire.dialects.readers import Reader
from ojs_core.wire.errors import error_body
from ojs_core.wire.events import EventPage
from ojs_core.wire.members import encode
from ojs_core.wire.pages import pagination, parse_page
from ojs_gateway.context import Context
from ojs_gateway.http.call import Call, Response, StreamedResponse
from ojs_gateway.http.sse import KEEP_ALIVE_S, sse
from ojs_gateway.hub import EventHub, HubReset, Missed, Subscription

log = structlog.get_logger(__name__)

_DEFAULT_LIMIT: Final = 100
_MAX_LIMIT: Final = 1_000
_MAX_READS: Final = 10
"""Reads that a numbered page may take to come to its beginning."""
_MAX_FILTERS: Final = 100
_FILTERS: Final = ("event_types", "types", "type", "queues", "queue", "job_types", "job_type")
_MAX_SUBSCRIPTIONS: Final = 50
"""Subscriptions on one WebSocket."""
_MAX_MESSAGE_BYTES: Final = 65_536
_TYPE: Final = re.compile(r"[a-z_]{1,40}(\.[a-z_]{1,40}){0,3}(\.\*)?|\*", re.ASCII)
_CHANNELS: Final = "job:<id>, queue:<name> or events"


class EventHandlers:
    """Handlers of events. Polling sees the events of everything that any gateway has answered before."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reader = EventReader(context.store.bulk, context.store.config)
        self._hub = EventHub(self._reader, context.max_subscriptions)

    async def poll(self, call: Call) -> Response:
        """GET /events?after&types&queues&job_types&limit: oldest first; `cursor` goes into the next `after`."""
        wanted = _filter(call.queries)
        limit = min(max(_number(call.query("limit"), "limit", _DEFAULT_LIMIT), 1), _MAX_LIMIT)
        after = _number(call.query("after") or call.query("cursor"), "after", 0)
        numbered = parse_page(call.queries, numbered=True) if call.query("page") or call.query("per_page") else None
        await self._context.queries.until_relayed()
        if numbered is not None:
            limit = numbered.limit
            after = await self._passed_over(after, wanted, numbered.offset)
        page = await self._reader.read(after, wanted, limit)
        if not page.events and after and after > (last := await self._reader.last_sequence()):
            raise invalid(
                "after", f"after is beyond the last event, {last}: what it counted is no more; begin again with after=0"
            )
        cursor = str(page.cursor)
        answer = EventPage(events=[Raw(event.body) for event in page.events], cursor=cursor, has_more=page.has_more)
        if numbered is not None:
            answer.pagination = pagination(numbered, None, cursor if page.has_more else None)
        return Response(200, answer)

    async def _passed_over(self, after: int, wanted: EventFilter, number: int) -> int:
        """The cursor after so many events, or after the last where there are fewer, or few of them among many others."""
        for _ in range(_MAX_READS):
            if not number:
                break
            page = await self._reader.read(after, wanted, min(number, _MAX_LIMIT))
            after, number = page.cursor, number - len(page.events)
            if not page.has_more:
                break
        return after

    async def stream(self, call: Call) -> StreamedResponse:
        """GET /events/stream?channel=job:<id>|queue:<name>, or with the filters of polling."""
        channel = call.query("channel")
        return await self._sse(call, _wanted(channel or "events", call.queries))

    async def of_job(self, call: Call) -> StreamedResponse:
        """GET /jobs/{id}/events."""
        return await self._sse(call, EventFilter(subject_id=job_id_of(call.parameters[0])))

    async def of_queue(self, call: Call) -> StreamedResponse:
        """GET /queues/{name}/events."""
        return await self._sse(call, EventFilter(queues=(_queue_of(call.parameters[0]),)))

    async def socket(self, call: Call) -> StreamedResponse:
        """GET /ws: `{"action": "subscribe", "channel": …, "filter": {…}}` and `{"action": "unsubscribe", …}`."""
        return StreamedResponse(partial(self._serve_socket, call.dialect.reader))

    async def _sse(self, call: Call, wanted: EventFilter) -> StreamedResponse:
        last = call.header("Last-Event-ID") or call.query("last_event_id")
        after = _number(last, "Last-Event-ID", 0) if last else None
        subscription = await self._hub.subscribe(wanted, after)

        reader = call.dialect.reader
        return sse(lambda response: self._write_events(response, subscription, reader), subscription.close)

    async def _write_events(self, response: web.StreamResponse, subscription: Subscription, reader: Reader) -> None:
        while not self._context.stopping:
            try:
                found = await self._context.unless_stopping(subscription.next(KEEP_ALIVE_S))
            except OjsError as error:
                await response.write(b"event: error\ndata: " + error_body(error, "") + b"\n\n")
                return  # the client connects again with its Last-Event-ID
            if isinstance(found, Missed):
                await response.write(b'event: missed\ndata: {"missed":%d}\n\n' % found.number)
            elif isinstance(found, HubReset):
                await response.write(b'event: reset\ndata: {"last":"%d"}\n\n' % found.last)
            elif found is not None:
                await response.write(_sse_frame(found, reader))
            else:
                await response.write(b": keep-alive\n\n")

    async def _serve_socket(self, reader: Reader, request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        if request.method != hdrs.METH_GET:
            raise OjsError("method_not_allowed", f"{request.method} opens no WebSocket; only GET does", allow=hdrs.METH_GET)
        socket = web.WebSocketResponse(heartbeat=KEEP_ALIVE_S, max_msg_size=_MAX_MESSAGE_BYTES)
        if not socket.can_prepare(request).ok:
            raise invalid("Upgrade", "this path speaks WebSocket; connect with a WebSocket client")
        socket.headers.update({name: value for name, value in headers.items() if name not in _BODY_HEADERS})
        await socket.prepare(request)
        await _Socket(self._context, self._hub, socket, reader).serve()
        return socket


class _Request(Struct):
    """A client's message on a WebSocket."""

    action: str
    channel: str = "events"
    subscription_id: str | None = None
    filter: dict[str, list[str]] = {}


class _Socket:
    """One WebSocket and its subscriptions."""

    def __init__(self, context: Context, hub: EventHub, socket: web.WebSocketResponse, reader: Reader) -> None:
        self._context = context
        self._hub = hub
        self._socket = socket
        self._reader = reader
        self._count = 0
        self._senders: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        try:
            while not self._context.stopping:
                message = await self._context.unless_stopping(self._socket.receive())
                if message is None or message.type in _CLOSING:
                    return
                await self._answer(message.data if message.type is WSMsgType.TEXT else "")
        finally:
            for task in self._senders.values():
                task.cancel()
            await asyncio.gather(*self._senders.values(), return_exceptions=True)
            await self._socket.close()

    async def _answer(self, text: str) -> None:
        try:
            request = msgspec.json.decode(text, type=_Request)
            if request.action == "subscribe":
                answer = await self._subscribe(request)
            elif request.action == "unsubscribe":
                answer = self._unsubscribe(request)
            else:
                raise invalid("action", f"action must be subscribe or unsubscribe, not {request.action[:40]!r}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            words = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            await self._send(error_body(OjsError("invalid_payload", f"not a request: {words}"), ""))
        except OjsError as error:
            await self._send(error_body(error, ""))
        else:
            await self._send(encode(answer))

    async def _subscribe(self, request: _Request) -> dict[str, Any]:
        if len(self._senders) >= _MAX_SUBSCRIPTIONS:
            raise invalid("action", f"a connection has at most {_MAX_SUBSCRIPTIONS} subscriptions; unsubscribe from one first")
        for name in request.filter:
            if name not in _FILTERS:
                raise invalid("filter", f"filter has no member {name[:40]!r}, only {', '.join(_FILTERS)}")
        wanted = _wanted(request.channel, {name: ",".join(values) for name, values in request.filter.items()})
        subscription = await self._hub.subscribe(wanted)
        self._count += 1
        name = f"sub_{self._count}"
        self._senders[name] = asyncio.create_task(self._forward(name, subscription), name=name)
        return {"action": "subscribed", "channel": request.channel, "subscription_id": name}

    def _unsubscribe(self, request: _Request) -> dict[str, Any]:
        sender = self._senders.pop(request.subscription_id or "", None)
        if sender is None:
            raise invalid("subscription_id", "subscription_id must be one that this connection was given by subscribe")
        sender.cancel()
        return {"action": "unsubscribed", "subscription_id": request.subscription_id}

    async def _forward(self, name: str, subscription: Subscription) -> None:
        try:
            while True:
                try:
                    found = await subscription.next(KEEP_ALIVE_S)
                except OjsError as error:
                    await self._send(error_body(error, ""))
                    await asyncio.sleep(1)
                    continue
                if isinstance(found, Missed):
                    await self._send(encode({"action": "missed", "subscription_id": name, "missed": found.number}))
                elif isinstance(found, HubReset):
                    await self._send(encode({"action": "reset", "subscription_id": name, "last": str(found.last)}))
                elif found is not None:
                    head = {"action": "event", "subscription_id": name, "cursor": str(found.sequence)}
                    await self._send(encode({**head, "event": Raw(event_body(found.body, self._reader))}))
        except ConnectionError:
            log.debug("websocket left", subscription=name)
        finally:
            subscription.close()

    async def _send(self, body: bytes) -> None:
        await self._socket.send_str(body.decode())


_CLOSING: Final = {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}
_BODY_HEADERS: Final = frozenset({hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH})


def _sse_frame(event: StoredEvent, reader: Reader) -> bytes:
    """The id is the cursor, so a client that connects again with it misses nothing."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.sequence, event.type.encode(), event_body(event.body, reader))


def _wanted(channel: str, query: Mapping[str, str]) -> EventFilter:
    """The events of a channel that fit the filters, too. Raises invalid_request."""
    wanted = _filter(query)
    kind, _, name = channel.partition(":")
    if kind == "job" and name:
        return replace(wanted, subject_id=job_id_of(name))
    if kind == "queue" and name:
        if wanted.queues:
            raise invalid("queues", f"queues can't be asked for with the channel {channel[:80]!r}; use one of both")
        return replace(wanted, queues=(_queue_of(name),))
    if channel == "events":
        return wanted
    raise invalid("channel", f"channel must be {_CHANNELS}, not {channel[:80]!r}")


def _filter(query: Mapping[str, str]) -> EventFilter:
    """The filters of the query string; lists are separated by commas, types may end in `.*`."""
    types = _names(query, "types", "type", "event_types")
    for event_type in types:
        if not _TYPE.fullmatch(event_type):
            raise invalid("types", f"types must be event types like job.completed or job.*, not {event_type[:80]!r}")
    return EventFilter(
        types=types,
        queues=tuple(_queue_of(name) for name in _names(query, "queues", "queue")),
        job_types=_names(query, "job_types", "job_type"),
    )


def _queue_of(name: str) -> str:
    return queue_name(name, "queue", DEFAULT_LIMITS)


def _names(query: Mapping[str, str], *keys: str) -> tuple[str, ...]:
    names = tuple(name.strip() for key in keys for name in query.get(key, "").split(",") if name.strip())
    if len(names) > _MAX_FILTERS:
        raise invalid(keys[0], f"{keys[0]} has {len(names)} entries; the limit is {_MAX_FILTERS}")
    return names


def _number(text: str | None, name: str, default: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise invalid(name, f"{name} must be a cursor or a whole number, not {text[:40]!r}")
    return int(text)

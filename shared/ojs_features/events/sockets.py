"""Events over a WebSocket: the messages of ojs-realtime §3 and of ojs-events §6.2.

Both ask by `action`. What answers has both names of itself, `type` and `action`. In the channel `events` an event stands under
`event`; in the others that is its type, and it stands under `data` (docs/adr/007).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from msgspec import Raw, Struct

from ojs_engine.api.call import Call
from ojs_engine.api.streams import SHUTDOWN, SHUTDOWN_DATA, Socket
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.times import format_ms
from ojs_engine.jetstream.event_reader import StoredEvent
from ojs_engine.wire.errors import error_body
from ojs_engine.wire.members import encode
from ojs_features.events.answers import Message, time_of
from ojs_features.events.channels import EVENTS, FILTERS, Channel, Sees, channel_of, cursor_of, resumed
from ojs_features.events.dialects import message_body
from ojs_features.events.following import Followed, Following, final
from ojs_features.events.hub import Dropped, HubReset, Missed

log = structlog.get_logger(__name__)

SUBPROTOCOL: Final = "ojs.v1"
_MAX_SUBSCRIPTIONS: Final = 50
"""Subscriptions on one WebSocket."""
MAX_MESSAGE_BYTES: Final = 65_536
_ACTIONS: Final = "subscribe, unsubscribe or resume"


async def hold_socket(following: Following, call: Call, socket: Socket) -> None:
    """Talk to a client over a WebSocket, until one of both leaves. Raises ConnectionError."""
    await _Talk(following, socket, call).serve()


class _Request(Struct, forbid_unknown_fields=True):
    """A client's message. `type` is another name of `action`; `event_types` of that filter."""

    action: str | None = None
    type: str | None = None
    channel: str | None = None
    subscription_id: str | None = None
    filter: dict[str, list[str]] = {}
    event_types: list[str] | None = None
    last_event_id: str | int | None = None


class _Sender(NamedTuple):
    followed: Followed
    task: asyncio.Task[None]

    def end(self) -> None:
        self.task.cancel()
        self.followed.subscription.close()  # by itself, too: a task that never began closes nothing


class _Talk:
    """One WebSocket and its subscriptions, by their ids."""

    def __init__(self, following: Following, socket: Socket, call: Call) -> None:
        self._following = following
        self._socket = socket
        self._call = call
        self._count = 0
        self._senders: dict[str, _Sender] = {}
        self._after: int | None = None
        """Where subscriptions begin, after a `resume` that came ahead of them."""

    async def serve(self) -> None:
        """Answer the client's messages."""
        try:
            while (text := await self._socket.receive()) is not None:
                await self._answer(text)
        finally:
            for sender in self._senders.values():
                sender.end()
            await asyncio.gather(*(sender.task for sender in self._senders.values()), return_exceptions=True)
            await self._say_goodbye()

    async def _say_goodbye(self) -> None:
        if not self._socket.ends:
            return
        last = {"type": "event", "event": SHUTDOWN, "data": Raw(SHUTDOWN_DATA), "timestamp": self._now()}
        try:
            await self._send(encode(last))
        except ConnectionError:
            log.debug("websocket left")

    async def _answer(self, text: str) -> None:
        try:
            request = msgspec.json.decode(text, type=_Request)
            action = request.action if request.action is not None else request.type
            if action == "subscribe":
                answer = await self._subscribe(request)
            elif action == "unsubscribe":
                answer = self._unsubscribe(request)
            elif action == "resume":
                answer = await self._resume(request)
            else:
                raise invalid("action", f"action must be {_ACTIONS}, not {shown(action or '')}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            await self._refuse(OjsError("invalid_payload", f"not a request: {error}"))
        except OjsError as error:
            await self._refuse(error)
        else:
            await self._send(encode(answer))

    async def _subscribe(self, request: _Request) -> dict[str, Any]:
        channel = _channel(request, self._call.sees if self._call.bounded else None)
        name = self._named(channel.name) if channel.name != EVENTS else None
        if name is None and len(self._senders) >= _MAX_SUBSCRIPTIONS:
            raise invalid("action", f"a connection has at most {_MAX_SUBSCRIPTIONS} subscriptions; unsubscribe from one first")
        after = self._after if request.last_event_id is None else await self._known(request.last_event_id)
        if request.last_event_id is not None:
            channel = resumed(channel, str(request.last_event_id))
        if name is None:
            self._count += 1
            name = f"sub_{self._count}"
        elif request.last_event_id is None:  # another filter: it goes on where it is
            after = self._senders[name].followed.subscription.cursor
        await self._follow(name, channel, after)
        answer = {**_acknowledged("subscribed"), "channel": channel.name, "subscription_id": name}
        return answer | {"event_types": channel.wanted.types} if channel.wanted.types else answer

    async def _follow(self, name: str, channel: Channel, after: int | None) -> None:
        """Begin a subscription, in the place of one that has its id."""
        followed = await self._following.open(channel, after)
        if name in self._senders:
            self._senders[name].end()
        task = asyncio.create_task(self._forward(name, followed, told_before=after is not None), name=name)
        self._senders[name] = _Sender(followed, task)

    def _unsubscribe(self, request: _Request) -> dict[str, Any]:
        name = request.subscription_id
        if name is None and request.channel is not None:
            name = self._named(request.channel)
        if name is None or name not in self._senders:
            field = "channel" if request.subscription_id is None and request.channel is not None else "subscription_id"
            raise invalid(field, f"{field} must be one of a subscription of this connection")
        sender = self._senders.pop(name)
        sender.end()
        return {**_acknowledged("unsubscribed"), "channel": sender.followed.channel.name, "subscription_id": name}

    async def _resume(self, request: _Request) -> dict[str, Any]:
        """Have all subscriptions go on after an event; without any, those that follow begin there.

        One to what has gone meanwhile ends, and isn't named in the answer.
        """
        if request.last_event_id is None:
            raise invalid("last_event_id", "last_event_id is required: the id of the last event that was received")
        after = await self._known(request.last_event_id)
        if not self._senders:
            self._after = after
        for name, sender in list(self._senders.items()):
            try:
                await self._follow(name, resumed(sender.followed.channel, str(request.last_event_id)), after)
            except OjsError as error:
                if error.code != "not_found":
                    raise
                self._senders.pop(name).end()
        channels = [sender.followed.channel.name for sender in self._senders.values()]
        return {**_acknowledged("resumed"), "last_event_id": str(request.last_event_id), "channels": channels}

    async def _known(self, last_event_id: str | int) -> int:
        """The cursor that an id stands for. Raises OjsError with unknown_event_id (ojs-realtime §5.5.2)."""
        try:
            after = cursor_of(str(last_event_id), "last_event_id")
        except OjsError as error:
            raise _unknown(error.message) from None
        if after > (last := await self._following.reader.last_sequence()):
            raise _unknown(f"last_event_id is beyond the last event, {last}: what it counted is no more; read the state anew")
        return after

    def _named(self, channel: str) -> str | None:
        """The id of the newest subscription to a channel."""
        return next((name for name, one in reversed(self._senders.items()) if one.followed.channel.name == channel), None)

    async def _forward(self, name: str, followed: Followed, *, told_before: bool) -> None:
        channel, subscription, finished = followed
        try:
            if finished is not None and not told_before:
                for message in final(channel, finished, subscription.cursor):
                    await self._send_event(name, channel, message)
            while True:
                try:
                    found = await subscription.next(self._following.keep_alive_s)
                except OjsError as error:
                    await self._refuse(error)
                    await asyncio.sleep(self._following.again_s)
                    continue
                if isinstance(found, StoredEvent):
                    for message in channel.messages(found, subscription.cursor):
                        await self._send_event(name, channel, message)
                elif found is not None:
                    await self._send_notice(name, followed, found)
        except ConnectionError:
            log.debug("websocket left", subscription=name)
            subscription.close()

    async def _send_event(self, name: str, channel: Channel, message: Message) -> None:
        body = Raw(message_body(message, self._call.dialect.reader, hides=self._call.hides))
        if channel.name == EVENTS:
            head: dict[str, Any] = {"action": "event", "subscription_id": name, "cursor": message.id, "event": body}
        else:
            head = self._event(name, channel, message.type, body, message.id, time_of(message))
        await self._send(encode(head))

    async def _send_notice(self, name: str, followed: Followed, found: Missed | HubReset | Dropped) -> None:
        channel = followed.channel
        if isinstance(found, Missed):
            await self._send(encode({"action": "missed", "subscription_id": name, "missed": found.number}))
        elif isinstance(found, HubReset):
            await self._send(encode({"action": "reset", "subscription_id": name, "last": str(found.kept.last)}))
        else:
            warning = {"type": "warning", "code": "events_dropped", "count": found.number, "channel": channel.name}
            await self._send(encode(warning))
        event_type, data = self._following.notice(found, channel)
        await self._send(
            encode(self._event(name, channel, event_type, Raw(data), str(followed.subscription.cursor), self._now()))
        )

    def _event(self, name: str, channel: Channel, event_type: str, data: Raw, number: str, at: str) -> dict[str, Any]:
        return {
            "type": "event",
            "channel": channel.name,
            "subscription_id": name,
            "event": event_type,
            "data": data,
            "id": number,
            "timestamp": at,
        }

    async def _refuse(self, error: OjsError) -> None:
        body = msgspec.json.decode(error_body(error, ""))
        code = "unknown_event_id" if isinstance(error, _UnknownEventError) else body["error"]["code"]
        await self._send(encode({"type": "error", "code": code, "message": error.message, **body}))

    async def _send(self, body: bytes) -> None:
        await self._socket.send(body)

    def _now(self) -> str:
        return format_ms(self._following.now())


def _channel(request: _Request, sees: Sees | None) -> Channel:
    """The channel of a subscription with its filters. Raises invalid_request, not_found."""
    for name in request.filter:
        if name not in FILTERS:
            raise invalid("filter", f"filter has no member {shown(name)}, only {', '.join(FILTERS)}")
    query = {name: ",".join(values) for name, values in request.filter.items()}
    if request.event_types is not None:
        if "event_types" in query:
            raise invalid("event_types", "event_types stands beside filter and in it; use one of both")
        query["event_types"] = ",".join(request.event_types)
    return channel_of(request.channel or EVENTS, query, sees)


def _acknowledged(what: str) -> dict[str, Any]:
    return {"type": what, "action": what}


class _UnknownEventError(OjsError):
    """Has a code of its own on a WebSocket (ojs-realtime §5.5.2)."""


def _unknown(message: str) -> OjsError:
    return _UnknownEventError("invalid_request", message, details={"field": "last_event_id"})

"""One NATS connection with a lean request path; the only module that uses private names of nats-py.

nats-py's own `request` costs a validation, a queue, a task hop and a timer for each message, which is most of a job's
budget (docs/adr/035). Here replies are handed over inside the read loop, requests of one loop turn leave in one
socket write, and one timer serves all timeouts. Nothing is sent, or kept for later, while the
connection is down: the caller hears so at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Awaitable, Callable, Iterable
from math import inf
from typing import ClassVar, Final, NamedTuple

import structlog
from nats.aio.client import Srv
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import ProtocolError
from nats.protocol.parser import AWAITING_CONTROL_LINE, AWAITING_MSG_PAYLOAD, MAX_CONTROL_LINE_SIZE, Parser

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.jetstream.taken_away import TakenAway, TakenAwayTimings
from ojs_engine.jetstream.turns import Turns, TurnTimings
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_link.address import read_address
from ojs_link.client import LinkClient, is_refused
from ojs_link.lasting import Lasting
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_PATIENCE: Final = 16
"""How many times as long where all servers were tried, again and again."""
_LED: Final = "$JS.API.INFO"
_NOT_LED: Final = b'"err_code":10008'
_HEADER_FRAME: Final = len("NATS/1.0\r\n\r\n")
_MEASURED: Final = 17
"""One request of so many is measured; a prime, since requests come in pairs and fours."""

_MESSAGES: Final = (b"MSG ", b"HMSG ")
_KEPT: Final = 256 * 1024
"""The largest message that is put together again with each read until it is whole, of 32 KiB each."""

_MEND: Final = "correct the credentials or the user; the file is read again at each try"
_DENIED: Final = re.compile(r'permissions violation for publish to "([^"]*)"', re.IGNORECASE)
_BATCH_COMPLETED: Final = b"NATS/1.0 409 Batch Completed"
"""Follows the last message of a pull that names `max_bytes`, which its count has closed already: it may meet the next pull
of the inbox. On a cluster it comes ahead of that message.
"""


class _Pong(asyncio.Future[bool]):
    """The answer to a PING. It may come when nobody waits any more; in nats-py's own `flush` that ends the connection."""

    def set_result(self, result: bool) -> None:
        if not self.done():
            super().set_result(result)


class ConnectionTimings(Timings, frozen=True, kw_only=True):
    """How long NATS is waited for, and when a server that has been cut off from its cluster is left."""

    give_up_s: float = 8.0
    """A first connection is given up after this long for each server, with all tries."""
    connect_s: int = 2
    """How long one try may take."""
    reconnect_s: float = 0.25
    """Between two tries."""
    ping_s: int = 3
    """Between two pings; the third in a row without an answer ends the connection."""
    request_s: float = 2.0
    """How long an answer is waited for unless a request names another time."""
    sweep_s: float = 0.25
    """Between two looks for what has waited too long, at least; there is none before something may have."""
    along_s: float = 0.02
    """How long a message that nobody waits for is kept until another is sent that it can go along with."""
    heard_s: float = 2.0
    """How long NATS may take to say that a subject has no listener."""
    flush_s: float = 1.0
    """How long NATS may take to read all that was sent."""
    close_s: float = 1.0
    """How long a connection may take to end."""
    led_every_s: float = 1.5
    """Between two looks whether the server at the other end knows a leader of its cluster."""
    unled_s: float = 5.0
    """How long it may know none before another server is tried: longer than most elections."""
    log_s: float = 30.0
    """The least time between two lines of the log that NATS refuses this process."""
    turns: TurnTimings = TurnTimings()
    """Requests of the JetStream API."""
    taken_away: TakenAwayTimings = TakenAwayTimings()
    """Subscriptions that nats-server refuses."""
    order: ClassVar[Order] = (
        ("led_every_s", "unled_s", "one look would decide"),
        ("connect_s", "give_up_s", "the first try would never end by itself"),
        ("flush_s", "heard_s", "a subject without a listener would seem to have one"),
        ("request_s", "turns.wait_s", "a request would give up while those ahead of it may still be answered"),
    )


OnMessage = Callable[[bytes, bytes, bytes, bytes | None], None]


class Reply(NamedTuple):
    """One message: the subject it was published to, its reply subject, body and raw header block."""

    subject: bytes
    reply: bytes
    data: bytes
    headers: bytes | None


class Failed(NamedTuple):
    """Why there is no answer. `sent` False means that the server can't have acted on the request."""

    reason: str
    sent: bool
    denied: bool = False
    """Whether NATS doesn't let this user ask that."""


ReplyOrFailure = Reply | Failed


class CannotConnect(Exception):
    """No server lets this process in; the text says why. `refused` says that its credentials are the reason."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.refused = is_refused(reason)


class Collected(NamedTuple):
    """The messages of a request with many answers, and the status line that closed it (None: it timed out)."""

    messages: list[Reply]
    closing: Reply | None


def status(reply: Reply) -> int:
    """The inline status of a message (404, 503 …), 0 if it has none."""
    head = reply.headers
    if head is None or not head.startswith(b"NATS/1.0 "):
        return 0
    return int(head[9:12])


def header(head: bytes | None, name: bytes) -> bytes | None:
    """One header's value in a block of them; `name` without the colon."""
    if head is None:
        return None
    start = head.find(b"\r\n" + name + b":")
    if start < 0:
        return None
    start += len(name) + 3
    return head[start : head.index(b"\r\n", start)].strip()


class _DirectParser(Parser):
    """nats-py's parser with a shortcut: whole messages for a subscription in `direct` are cut out of what was read.

    nats-py tries expressions on a buffer whose head it then deletes. It still has the rest: whatever is no message, and a
    large message of which a part has not come yet. A small one waits in `buf` for its end.
    """

    nc: _DirectClient

    async def parse(self, data: bytes = b"") -> None:
        if self.state == AWAITING_MSG_PAYLOAD:
            missing = self.needed + len(b"\r\n") - len(self.buf)
            await super().parse(data[:missing])
            data = data[missing:]
        if self.state != AWAITING_CONTROL_LINE:
            return
        if self.buf:
            data = bytes(self.buf) + data
            self.buf.clear()
        try:
            place, ended = self._taken(data)
        except (IndexError, ValueError):
            raise ProtocolError("nats: malformed MSG") from None
        if place == len(data):
            return
        if ended:
            await super().parse(data[place:])
        else:
            self.buf.extend(data[place:])

    def _taken(self, data: bytes) -> tuple[int, bool]:
        """Hand over the messages that `data` begins with. Up to where that went, and false if a small message follows whose end
        has not come yet.
        """
        place = 0
        while data.startswith(_MESSAGES, place):
            line = data.find(b"\r\n", place)
            if line < 0:
                return place, len(data) - place >= MAX_CONTROL_LINE_SIZE
            words = data[place:line].split()
            body = line + 2
            end = body + int(words[-1])
            if (handler := self.nc.direct.get(int(words[2]))) is None:
                return place, True
            if end + 2 > len(data):
                return place, end - place > _KEPT
            headed = len(words[0]) == len(b"HMSG")
            start = body + int(words[-2]) if headed else body
            reply = words[3] if len(words) == (6 if headed else 5) else b""
            self.nc.hand_over(handler, words[1], reply, data[start:end], data[body:start] if headed else None)
            place = end + 2
        return place, not any(word.startswith(data[place:]) for word in _MESSAGES)


class _DirectClient(LinkClient):
    """nats-py with a shortcut: messages of a subscription in `direct` go to their handler, unparsed.

    It also stays alive where nats-py would give up: after a handler's bug.
    """

    def __init__(self) -> None:
        super().__init__()
        self.direct: dict[int, OnMessage] = {}
        self.left: list[str] = []
        """Servers that were left since they had no leader, the one that was left last at the end."""
        self._ps = _DirectParser(self)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        handler = self.direct.get(sid)
        if handler is None:
            await super()._process_msg(sid, subject, reply, data, headers)
        else:
            self.hand_over(handler, subject, reply, data, headers)

    @staticmethod
    def hand_over(handler: OnMessage, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        """Call a handler. Its failure would end the read loop, and with it the connection."""
        try:
            handler(subject, reply, data, headers)
        except Exception:
            log.exception("a message could not be handled", subject=subject.decode(errors="replace"))

    async def _attempt_reconnect(self) -> None:
        # nats-py waits until what was written has left, which a server that hangs never lets happen.
        self._abort()
        await super()._attempt_reconnect()

    async def _select_next_server(self) -> None:
        # nats-py has shuffled them: those that were left come last.
        self._server_pool.sort(key=lambda server: self.left.index(_place(server)) if _place(server) in self.left else -1)
        await super()._select_next_server()

    @property
    def place(self) -> str:
        """Host and port of the server that it is connected to."""
        return _place(self._current_server)

    async def move_on(self) -> None:
        """Connect to another server of those that are known, as after a loss."""
        here = self.place
        self.left = [*(place for place in self.left if place != here), here]
        await self._process_op_err(NatsError("nats: the server has no leader"))

    async def _connect_to_server(self, s: Srv) -> None:
        self._abort()  # an attempt that timed out would leave its socket open
        await super()._connect_to_server(s)

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except OSError:  # a certificate that isn't trusted is a ValueError, too
            raise
        except (LookupError, ValueError, TypeError, AttributeError) as error:  # nats-py would try no more
            raise NatsError("nats: what answers there is no NATS server") from error

    async def end(self, close_s: float) -> None:
        """Close it, and whatever nobody takes what is written to, or tries to connect."""
        try:
            with contextlib.suppress(TimeoutError, NatsError, OSError):
                async with asyncio.timeout(close_s):
                    await self.close()
            await stop_loop(self._reconnection_task)  # which may have connected meanwhile
        finally:
            self._abort()

    def _abort(self) -> None:
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


def _place(server: Srv | None) -> str:
    return "" if server is None else server.uri.netloc.rpartition("@")[2]


class _Slot:
    """An inbox of its own, for answers that keep their original subject (pulls) or come in numbers (multi-gets)."""

    def __init__(self, inbox: str) -> None:
        self.inbox = inbox
        self.sid = 0
        self.future: asyncio.Future[Collected | Failed] | None = None
        self.messages: list[Reply] = []
        self.wanted = 0
        self.deadline = 0.0
        self.subject = ""

    @property
    def waits(self) -> bool:
        """Whether its request isn't answered yet."""
        return self.future is not None and not self.future.done()

    def feed(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        future = self.future
        if future is None or future.done():
            return
        message = Reply(subject, reply, data, headers)
        if headers is not None and headers.startswith(b"NATS/1.0 "):
            if status(message) != 100 and not headers.startswith(_BATCH_COMPLETED):
                future.set_result(Collected(self.messages, message))
            return
        self.messages.append(message)
        if len(self.messages) == self.wanted:
            future.set_result(Collected(self.messages, message))


class _Watched(NamedTuple):
    """A message that somebody has to get: `lost` is called once it is known that nobody did."""

    subject: str
    lost: Callable[[], None]
    deadline: float


class Connection:
    """A connection that reconnects for ever; requests fail fast while it is down."""

    def __init__(self, name: str, timings: ConnectionTimings = ConnectionTimings()) -> None:
        self.name = name
        self.timings = timings
        self._nc = _DirectClient()
        self._pending: dict[int, tuple[asyncio.Future[ReplyOrFailure], float, str]] = {}
        self._watched: dict[int, _Watched] = {}
        self._tokens = itertools.count(1)
        self._out: list[bytes] = []
        self._along: list[bytes] = []
        """What goes along with the next message that is sent."""
        self._along_timer: asyncio.TimerHandle | None = None
        self._inbox = ""
        self._inbox_sid = 0
        self._free: list[_Slot] = []
        self._busy: set[_Slot] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweep_at = inf
        """When the next look is, by the loop's clock."""
        self._looking: asyncio.Task[None] | None = None
        self._servers_changed = asyncio.Event()
        """Set when other servers may have become known."""
        self._unled_since: float | None = None
        """When the server at the other end may have lost its leader (loop time), None while it has one."""
        self._may_look = True
        self._moves = 0
        """How many servers without a leader were left, one after the other."""
        self._round_trip = metrics.NATS_ROUND_TRIP.labels(name)
        self._timeouts = metrics.NATS_TIMEOUTS.labels(name)
        self._reconnects = metrics.NATS_RECONNECTS.labels(name)
        self.connections = 0
        """How often it was connected."""
        self.timed_out = 0
        """Requests that were not answered in time."""
        self._refusals = SeldomLog(timings.log_s)
        self._away = Lasting()
        """The time without a connection, after the first one."""
        self._taken_away = TakenAway(name, self._ids_of, self._subscribe_again, self.flush, timings.taken_away)
        self.turns = Turns(timings.turns)
        """The bound on requests of the JetStream API (`ojs_engine.jetstream.api`)."""
        self.explanation: str | None = None
        """Why requests may stay unanswered, if somebody knows."""

    async def connect(self, url: str) -> None:
        """Connect once, to one of the servers that `url` lists (`ojs_link.address`). Raises CannotConnect when none answers."""
        address = read_address(url)
        failure: Exception | None = None
        """Why there is no first connection: a refusal, else what went wrong last. Later failures aren't kept."""

        async def on_error(error: Exception) -> None:
            nonlocal failure
            if not self.connections and not (failure is not None and is_refused(failure)):
                failure = error
            refused = "permissions violation" in str(error).lower()
            if refused and f'"{_LED.lower()}"' in str(error).lower():
                self._may_look = refused = False
            (log.warning if refused else log.debug)("nats connection", nats=self.name, error=str(error) or type(error).__name__)
            if denied := _DENIED.search(str(error)):
                self._denied(denied[1])
            self._taken_away.heard(str(error))
            if self.connections and not self._nc.is_connected and (seconds := self._away.noted()):
                log.warning("NATS can't be reached", nats=self.name, seconds=round(seconds), reason=str(error))
            if self.connections and is_refused(error) and self._refusals.due():
                log.error("NATS refuses this process", nats=self.name, reason=str(error), remedy=_MEND)

        async def on_disconnect() -> None:
            if not self._nc.is_closed:
                self._away.noted()
                log.warning("nats connection lost", nats=self.name)
            self._fail_all("the connection to NATS was lost")

        async def on_reconnect() -> None:
            log.info("nats connection is back", nats=self.name, after_seconds=round(self._away.over() or 0.0, 1))
            self._reconnects.inc()
            self.connections += 1
            self._servers_changed.set()

        async def on_discovered() -> None:
            self._servers_changed.set()

        try:
            # After a handshake that failed nats-py may wait without end.
            async with asyncio.timeout(self.timings.give_up_s * len(address.servers)):
                await self._nc.open(
                    address,
                    name=self.name,
                    error_cb=on_error,
                    disconnected_cb=on_disconnect,
                    reconnected_cb=on_reconnect,
                    discovered_server_cb=on_discovered,
                    connect_timeout=self.timings.connect_s,
                    reconnect_time_wait=self.timings.reconnect_s,  # nats-py sleeps for it: fractions work
                    max_reconnect_attempts=2,
                    ping_interval=self.timings.ping_s,
                    max_outstanding_pings=2,
                    pending_size=-1,
                )
        except (NatsError, OSError, ValueError) as error:
            await self._nc.end(self.timings.close_s)
            # A server that refuses closes at once, which may be noticed ahead of its words.
            raise CannotConnect(failure or error) from None
        except asyncio.CancelledError:
            await self._nc.end(self.timings.close_s)
            raise
        self._nc.options["max_reconnect_attempts"] = -1
        self.connections = 1
        self._inbox = self._nc.new_inbox() + "."
        self._inbox_sid = self._subscribe(self._inbox + "*", self._answered)
        self._looking = start_loop(f"{self.name}-led", self._look_if_there_are_others, every_s=self.timings.led_every_s)

    @property
    def closed(self) -> bool:
        return self._nc.is_closed

    @property
    def deaf_to(self) -> str | None:
        """A subject that this process should hear, and that its NATS user may not subscribe to now; None if it hears all."""
        return self._taken_away.subject

    async def close(self) -> None:
        await self._taken_away.stop()
        if self._looking is not None:
            self._looking.cancel()
        self._flush()
        self._fail_all("the connection to NATS was closed")
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._nc.options:  # nats-py can't close what was never asked to connect
            await self._nc.end(self.timings.close_s)

    @property
    def connected(self) -> bool:
        return self._nc.is_connected

    @property
    def server_version(self) -> str:
        return str(self._nc._server_info.get("version", ""))

    @property
    def has_jetstream(self) -> bool:
        """Whether the server at the other end runs JetStream itself; another of its cluster may."""
        return bool(self._nc._server_info.get("jetstream"))

    @property
    def max_payload(self) -> int:
        return self._nc.max_payload

    @property
    def nobody(self) -> str:
        """A reply subject that is not listened to; the JetStream API acts only on requests that have one."""
        return f"{self._inbox}0"

    # Sending

    def publish(self, subject: str, payload: bytes, headers: str = "", reply: str = "", *, along: bool = False) -> None:
        """Queue one message for this loop turn's write; dropped while the connection is down, or if it is too large.

        `along`: for the next write that there is, or one after a moment. It is for what nobody waits for, since a write of its
        own costs both ends a wake-up.
        """
        if len(payload) + len(headers) + _HEADER_FRAME > self._nc.max_payload:
            log.error("message too large for nats-server", subject=subject, size=len(payload), limit=self._nc.max_payload)
            return
        if headers:
            head = f"NATS/1.0\r\n{headers}\r\n".encode()
            line = f"HPUB {subject} {reply} {len(head)} {len(head) + len(payload)}\r\n".encode()
            frame = line + head + payload + b"\r\n"
        else:
            frame = f"PUB {subject} {reply} {len(payload)}\r\n".encode() + payload + b"\r\n"
        if not along:
            self._write(frame)
            return
        if self._along_timer is None:
            self._along_timer = asyncio.get_running_loop().call_later(self.timings.along_s, self._flush)
        self._along.append(frame)

    def publish_to_listener(self, subject: str, payload: bytes, headers: str, lost: Callable[[], None]) -> None:
        """Publish, and call `lost` if nobody can get it.

        NATS says that nobody listens there, or that this user may not publish there; or there is no connection.
        """
        if not self._nc.is_connected:
            lost()
            return
        token = next(self._tokens)
        deadline = asyncio.get_running_loop().time() + self.timings.heard_s
        self._watched[token] = _Watched(subject, lost, deadline)
        self._sweep_by(deadline)
        self.publish(subject, payload, headers, f"{self._inbox}{token}")

    async def has_listener(self, subject: str, headers: str) -> bool:
        """Whether anybody listens to a subject, as far as NATS knows: whoever does gets an empty message with these headers."""
        nobody: list[bool] = []
        self.publish_to_listener(subject, b"", headers, lambda: nobody.append(True))
        await self.flush()  # NATS answers in order
        return not nobody

    def request(
        self, subject: str, payload: bytes = b"", headers: str = "", timeout_s: float | None = None
    ) -> asyncio.Future[ReplyOrFailure]:
        """Send a request; the future resolves to a `Reply` or a `Failed`, it never raises.

        `headers` is a block of `Name: value` lines, each ended by CRLF.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ReplyOrFailure] = loop.create_future()
        if not self._nc.is_connected:
            future.set_result(Failed("there is no connection to NATS", sent=False))
            return future
        if len(payload) + len(headers) + _HEADER_FRAME > self._nc.max_payload:
            # The server would end the connection, and with it everybody's requests.
            reason = f"a message of {len(payload)} bytes is more than nats-server's max_payload of {self._nc.max_payload}"
            future.set_result(Failed(reason, sent=False))
            return future
        token = next(self._tokens)
        now = loop.time()
        deadline = now + (self.timings.request_s if timeout_s is None else timeout_s)
        self._pending[token] = (future, deadline, subject)
        if deadline < self._sweep_at:
            self._sweep_by(deadline)
        if not token % _MEASURED:
            future.add_done_callback(lambda done: self._measured(done, loop.time() - now))
        self.publish(subject, payload, headers, f"{self._inbox}{token}")
        return future

    async def collect(self, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        """Send a request with up to `wanted` answers (0: until its closing status)."""
        if not self._nc.is_connected:
            return Failed("there is no connection to NATS", sent=False)
        loop = asyncio.get_running_loop()
        slot = self._free.pop() if self._free else self._new_slot()
        slot.future, slot.messages, slot.wanted = loop.create_future(), [], wanted
        slot.deadline, slot.subject = loop.time() + timeout_s, subject
        self._busy.add(slot)
        self._sweep_by(slot.deadline)
        self.publish(subject, payload, reply=slot.inbox)
        clean = False
        try:
            outcome = await slot.future
            clean = isinstance(outcome, Collected) and outcome.closing is not None
        finally:
            slot.future = None
            self._busy.discard(slot)
            if clean:
                self._free.append(slot)
            else:  # late answers must not meet the next request
                self._unsubscribe(slot.sid)
        return outcome

    async def listen(self, subject: str, handler: Callable[[Reply], None], *, group: str = "") -> Callable[[], Awaitable[None]]:
        """Subscribe, and return once NATS knows of it, so that whoever then looks by another connection misses nothing between.

        The handler runs inside the read loop. Returns the way to stop it. Of the subscribers that name the same `group` each
        message reaches one.
        """

        def direct(subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
            handler(Reply(subject, reply, data, headers))

        sid = self._subscribe(subject, direct, group)
        try:
            await self.flush()
        except BaseException:
            self._unsubscribe(sid)
            raise

        async def stop() -> None:
            self._unsubscribe(sid)

        return stop

    async def drain(self) -> None:
        """Listen to nothing more, and return once what was on its way here has been handed over."""
        leaving = [sid for sid in self._nc._subs if sid != self._inbox_sid]
        for sid in leaving:
            del self._nc._subs[sid]
            self._write(f"UNSUB {sid}\r\n".encode())
        await self.flush()
        for sid in leaving:
            self._nc.direct.pop(sid, None)

    async def flush(self) -> bool:
        """Wait until NATS has got what was published, for up to `flush_s`; returns whether it has."""
        if not self._nc.is_connected:
            return False
        pong = _Pong()
        self._nc._pongs.append(pong)
        self._write(b"PING\r\n")
        self._flush()
        await asyncio.wait([pong], timeout=self.timings.flush_s)
        return pong.done() and not pong.cancelled()

    # Inside

    def _write(self, frame: bytes) -> None:
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(frame)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._along_timer is not None:
            self._along_timer.cancel()
            out, self._along, self._along_timer = [*self._along, *out], [], None
        if not out:
            return
        try:
            self._send(out)
        except RuntimeError as error:
            # uvloop's socket is closed, of which nats-py has not heard yet; when it does, those who wait hear it, too.
            log.debug("nats connection", error=str(error), nats=self.name)

    def _send(self, frames: list[bytes]) -> None:
        transport = self._nc._transport
        if self._nc.is_connected and transport is not None:
            transport.writelines(frames)

    def _answered(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        number = subject[len(self._inbox) :]
        if not number.isdigit():  # somebody else's word: answers go by numbers
            return
        token = int(number)
        nobody = headers is not None and not data and headers.startswith(b"NATS/1.0 503")
        if nobody and (watched := self._watched.pop(token, None)) is not None:
            watched.lost()
            return
        entry = self._pending.pop(token, None)
        if entry is None or entry[0].done():
            return
        if nobody:
            if self._unled_since is None:  # of this request's stream, or of them all: the next look tells
                self._unled_since = asyncio.get_running_loop().time()
            entry[0].set_result(Failed("NATS has no leader for this yet, or JetStream is off", sent=False))
        else:
            entry[0].set_result(Reply(subject, reply, data, headers))

    def _denied(self, subject: str) -> None:
        """Take what was published there for lost: NATS names the subject, in small letters, and not the message."""
        lost = [token for token, watched in self._watched.items() if watched.subject.lower() == subject.lower()]
        for token in lost:
            self._watched.pop(token).lost()
        for token in [token for token, (_, _, asked) in self._pending.items() if asked.lower() == subject.lower()]:
            future, _, asked = self._pending.pop(token)
            if not future.done():
                future.set_result(Failed(f"its user may not publish on {asked}", sent=True, denied=True))
        for slot in self._busy:
            if slot.future is not None and not slot.future.done() and slot.subject.lower() == subject.lower():
                slot.future.set_result(Failed(f"its user may not publish on {slot.subject}", sent=True, denied=True))

    def _measured(self, done: asyncio.Future[ReplyOrFailure], seconds: float) -> None:
        if not done.cancelled() and isinstance(done.result(), Reply):
            self._round_trip.observe(seconds)

    def _subscribe(self, subject: str, handler: OnMessage, group: str = "") -> int:
        """Listen to a subject. The SUB leaves ahead of whatever is sent next, so it needs no round trip of its own; while
        the connection is down it is only noted, since nats-py subscribes to all of `_subs` when it is back.
        """
        self._nc._sid += 1
        sid = self._nc._sid
        self._nc._subs[sid] = Subscription(self._nc, sid, subject, queue=group)
        self._nc.direct[sid] = handler
        self._write(f"SUB {subject} {group} {sid}\r\n".encode())
        return sid

    def _unsubscribe(self, sid: int) -> None:
        self._nc.direct.pop(sid, None)
        if self._nc._subs.pop(sid, None) is not None:
            self._write(f"UNSUB {sid}\r\n".encode())

    def _ids_of(self, subject: str) -> list[int]:
        wanted = subject.lower()
        return [sid for sid, one in self._nc._subs.items() if one.subject.lower() == wanted]

    def _subscribe_again(self, ids: Iterable[int]) -> set[int]:
        """Send SUB for those of the subscriptions that are still wanted, and return these; the same id makes no second one."""
        wanted = {sid: found for sid in ids if (found := self._nc._subs.get(sid)) is not None}
        for sid, one in wanted.items():
            self._write(f"SUB {one.subject} {one.queue} {sid}\r\n".encode())
        return set(wanted)

    def _new_slot(self) -> _Slot:
        slot = _Slot(self._nc.new_inbox())
        slot.sid = self._subscribe(slot.inbox, slot.feed)
        return slot

    def _fail_all(self, reason: str) -> None:
        failed = Failed(reason, sent=True)
        pending, self._pending = self._pending, {}
        for future, _, _ in pending.values():
            if not future.done():
                future.set_result(failed)
        for slot in self._busy:
            if slot.future is not None and not slot.future.done():
                slot.future.set_result(failed)

    async def _look_if_there_are_others(self) -> None:
        """Look for a leader; where there is one server only, return once others may be known."""
        if len(self._nc._server_pool) > 1:
            await self._look_for_leader()
        else:
            self._servers_changed.clear()
            await self._servers_changed.wait()

    async def _look_for_leader(self) -> None:
        """Leave a server that has been cut off from its cluster: it says so itself, by having no leader for a while, or leaves
        the question unanswered while nobody takes what is written.

        Where none of the servers has one they are tried in turn, each round after twice the time.
        """
        others = len(self._nc._server_pool) - 1
        if others < 1 or not self._nc.is_connected or not self._may_look:
            return
        answer = await self.request(_LED)
        now = asyncio.get_running_loop().time()
        if isinstance(answer, Reply) and _NOT_LED not in answer.data:
            self._unled_since, self._moves = None, 0
            self._nc.left = []
            return
        if self._unled_since is None:
            if isinstance(answer, Failed):
                return  # a server that hangs is noticed by nats-py's pings
            self._unled_since = now
        if now - self._unled_since >= self.timings.unled_s * min(2 ** (self._moves // others), _PATIENCE):
            self._unled_since = now
            self._moves += 1
            log.warning("this nats-server has no leader: another one is tried", nats=self.name, server=self._nc.place)
            await self._nc.move_on()

    def _sweep_by(self, deadline: float) -> None:
        """Have `_sweep` called once a deadline is over."""
        loop = asyncio.get_running_loop()
        moment = max(deadline, loop.time() + self.timings.sweep_s)
        if moment >= self._sweep_at:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweep_at, self._sweeper = moment, loop.call_at(moment, self._sweep)

    def _sweep(self) -> None:
        self._sweeper, self._sweep_at = None, inf
        try:
            self._fail_late(asyncio.get_running_loop().time())
        finally:
            deadlines = [deadline for _, deadline, _ in self._pending.values()]
            deadlines += [watched.deadline for watched in self._watched.values()]
            deadlines += [slot.deadline for slot in self._busy if slot.waits]
            if deadlines:
                self._sweep_by(min(deadlines))

    def _fail_late(self, now: float) -> None:
        """Fail what has waited too long. A pull that times out keeps what it has got."""
        late = [token for token, (_, deadline, _) in self._pending.items() if deadline <= now]
        for token in late:
            future, _, _ = self._pending.pop(token)
            if not future.done():
                future.set_result(Failed(self.explanation or "NATS did not answer in time", sent=True))
            self.timed_out += 1
            self._timeouts.inc()
        for token in [token for token, watched in self._watched.items() if watched.deadline <= now]:
            del self._watched[token]
        for slot in self._busy:
            if slot.future is not None and not slot.future.done() and slot.deadline <= now:
                slot.future.set_result(Collected(slot.messages, None))

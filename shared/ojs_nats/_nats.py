"""Requests over NATS (docs/nats-binding.md): by request and reply, on one connection that comes back by itself."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import urlencode

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from ojs_api import jobs as contract
from ojs_api.events import POLL
from ojs_link.address import Address, files_of
from ojs_link.client import LinkClient, is_refused
from ojs_nats._json import decoded
from ojs_nats._logging import get_logger
from ojs_nats._names import is_queue_name
from ojs_nats._nats_address import nats_address
from ojs_nats._operations import Request
from ojs_nats._refusals import refused
from ojs_nats._timings import NatsTimings
from ojs_nats._transport import Answer, EventFilter, NotNow, Transport, in_time
from ojs_nats.errors import RefusedError
from ojs_nats.jobs import Job
from ojs_nats.models.events import Event, EventPage

log = get_logger(__name__)

_NAMESPACE: Final = "ojs"
"""The namespace of a system that names none."""
_OF_A_WORKER: Final = frozenset({"registerWorker", "workerHeartbeat", "deregisterWorker"})
"""Operations that earlier users of NATS may ask for in the name of no queue alone."""
_ANY_QUEUE: Final = "_"
_INTERIM: Final = "102"
"""The status of a message that only finds out whether this client is there."""
_HEAD_BYTES: Final = 4_096
"""The part of NATS's max_payload that a request's headers may take."""
_NO_STATUS: Final = 502
"""The status of an answer without one of its own, which isn't an OJS server's."""
_LAST: Final = frozenset({"job.completed", "job.discarded", "job.cancelled"})
_PAGE: Final = "1000"
_DENIED: Final = re.compile(r'permissions violation for publish to "([^"]*)"', re.IGNORECASE)


class NatsTransport(Transport):
    """To `nats://…` and `tls://…`, or a comma list of the servers of one cluster, with options behind it (`ojs_link.address`).

    OJS_NATS_CREDS and the like name the files that the address doesn't. Raises ValueError for what can't be used.
    """

    def __init__(
        self,
        url: str,
        *,
        retry_for_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        timings: NatsTimings = NatsTimings(),
    ) -> None:
        super().__init__(url, retry_for_s=retry_for_s, timings=timings.tries)
        self._waits = timings
        self._headers = headers or {}
        self._address = nats_address(self.url).with_files(files_of(os.environ)).of_role("client")
        self._namespace = self._address.namespace or _NAMESPACE
        self._opening = asyncio.Lock()
        self._keeper: AsyncGenerator[_Link] | None = None
        self._link: _Link | None = None
        self._of_no_queue: set[str] = set()

    @property
    def is_open(self) -> bool:
        return self._keeper is not None

    async def close(self) -> None:
        if self._keeper is not None:
            await self._keeper.aclose()

    async def once(self, request: Request, body: bytes | None) -> Answer:
        link = await self._open()
        answer_s = self._waits.answer_s if request.answer_s is None else request.answer_s
        headers = {"OJS-Timeout": f"{answer_s * 1_000:.0f}", "OJS-Interim": "true", **self._headers, **request.headers}
        if request.parameters:
            headers["OJS-Parameters"] = urlencode(request.parameters)
        name, seconds = request.operation.name, answer_s + self._waits.late_s
        queue = _ANY_QUEUE if name in self._of_no_queue else _queue(request)
        try:
            answer = await link.ask(self._subject(name, queue), body or b"", headers, seconds)
        except (NobodyListens, RefusedError) as error:
            # An earlier gateway, or the users of one, may not have the operation in the name of a queue.
            if queue == _ANY_QUEUE or not (isinstance(error, NobodyListens) or name in _OF_A_WORKER):
                raise
            answer = await link.ask(self._subject(name, _ANY_QUEUE), body or b"", headers, seconds)
            self._of_no_queue.add(name)
        answer = await self._elsewhere(link, request, queue, body, headers, seconds, answer)
        said = answer.headers or {}
        return Answer(_status(said.get("OJS-Status", "")), answer.data, said.get("Retry-After"))

    async def _elsewhere(
        self,
        link: _Link,
        request: Request,
        queue: str,
        body: bytes | None,
        headers: dict[str, str],
        seconds: float,
        answer: Msg,
    ) -> Msg:
        """Ask again in the name of no queue, if this user may, where the answer may be due to the queue in the subject.

        A job may have been moved to another queue, or be the one that its push was content with. A unique push may be
        refused since it could meet jobs of other queues.
        """
        status = (answer.headers or {}).get("OJS-Status")
        if queue == _ANY_QUEUE or not (status == "403" or (status == "404" and "job_id" in request.parameters)):
            return answer
        try:
            return await link.ask(self._subject(request.operation.name, _ANY_QUEUE), body or b"", headers, seconds)
        except RefusedError:
            return answer

    async def events(self, wanted: EventFilter) -> AsyncGenerator[Event]:
        """Read in pages, which a message on the events' own subjects says to look for: so a cursor resumes them. Where NATS
        doesn't let this user listen to those, they are looked for once a second.
        """
        after = wanted.after or await self.cursor_now()
        over = wanted.job_id is not None and await self._has_ended(wanted.job_id)
        heard = asyncio.Event()
        link = await self._open()
        async with link.listening(self._event_subjects(wanted), heard):
            while True:
                heard.clear()
                page = await self._page(wanted, after)
                for event, cursor in zip(page.events, page.cursors, strict=True):
                    if wanted.job_id in {None, event.subject, event.data.get("job_id")}:
                        yield msgspec.structs.replace(event, cursor=cursor)
                        over = over or (wanted.job_id is not None and event.type in _LAST)
                after = page.cursor
                if over and not page.has_more:
                    return
                if not page.events:
                    await _either(heard, self._waits)

    def _subject(self, operation: str, queue: str) -> str:
        return f"{self._namespace}.api.{operation}.{queue}"

    def _event_subjects(self, wanted: EventFilter) -> list[str]:
        """Return where the events are published that are wanted, and perhaps others (docs/events.md)."""
        events = f"{self._namespace}.events"
        if wanted.job_id is not None:
            return [f"{events}.job.*.*.{wanted.job_id}"]
        return [f"{events}.{kind.removesuffix('.*')}.>" for kind in wanted.types] or [f"{events}.>"]

    async def _page(self, wanted: EventFilter, after: str) -> EventPage:
        asked = {"types": wanted.types, "queues": wanted.queues, "job_types": wanted.job_types}
        said = {name: ",".join(values) for name, values in asked.items() if values}
        queue = wanted.queues[0] if len(wanted.queues) == 1 else None
        answer = await self.send(Request(POLL, {"after": after, "limit": _PAGE, **said}, queue=queue))
        return decoded(answer, EventPage)

    async def _has_ended(self, job_id: str) -> bool:
        answer = await self.send(Request(contract.GET, {"job_id": job_id}))
        return decoded(answer, _One).job.ended

    async def _open(self) -> _Link:
        async with self._opening:
            if self._link is not None and self._link.has_given_up:
                await self.close()
            if self._link is None:
                self._keeper = self._kept_link()
                self._link = await anext(self._keeper)
            return self._link

    async def _kept_link(self) -> AsyncGenerator[_Link]:
        """A connection that is closed with its loop, as `asyncio.run` closes generators: scripts need not think of it."""
        link = _Link(self._waits)
        try:
            await link.connect(self._address)
            yield link
        finally:
            self._link = self._keeper = None
            await link.close()


class _One(msgspec.Struct):
    job: Job


class NobodyListens(NotNow):
    """NATS says so: nothing was done."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no gateway listens there for the namespace {name}", carried_out=False)


class _Client(LinkClient):
    """nats-py's client that leaves no socket open: neither behind an attempt to connect, nor where nobody takes what is
    written.
    """

    async def _attempt_reconnect(self) -> None:
        self._abort()
        await super()._attempt_reconnect()

    async def _select_next_server(self) -> None:
        self._abort()
        await super()._select_next_server()

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except OSError:  # a certificate that isn't trusted is a ValueError, too
            raise
        except (LookupError, ValueError, TypeError, AttributeError) as error:  # nats-py would try no more
            raise nats.errors.Error("nats: what answers there is no NATS server") from error

    async def end(self, close_s: float) -> None:
        """Close it, with what tries to connect it, each within `close_s`."""
        try:
            # AttributeError: nats-py before 2.15 closes a socket that it may never have had.
            with suppress(TimeoutError, nats.errors.Error, OSError, AttributeError):
                async with asyncio.timeout(close_s):
                    await self.close()
            trying = self._reconnection_task
            while trying is not None and not trying.done():  # `asyncio.wait_for` may swallow a cancellation
                trying.cancel()
                await asyncio.wait({trying}, timeout=close_s)
            if trying is not None:
                await asyncio.gather(trying, return_exceptions=True)
        finally:
            self._abort()

    @property
    def has_given_up(self) -> bool:
        """Whether it won't be connected again: after some complaints of the server, and errors that nats-py doesn't expect."""
        trying = self._reconnection_task
        return self.is_closed or (self.is_reconnecting and trying is not None and trying.done())

    def _abort(self) -> None:
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


class _Link:
    """One connection and those who wait for answers on it."""

    def __init__(self, timings: NatsTimings) -> None:
        self._timings = timings
        self._nats = _Client()
        self._inbox = ""
        self._answers: Subscription | None = None
        self._reason: Exception | None = None
        """The last trouble of the connection."""
        self._nobody_since: float | None = None
        """Since when nobody has listened to what was asked (loop time); None if somebody did the last time."""
        self._tokens = itertools.count(1)
        self._waiting: dict[str, tuple[str, asyncio.Future[Msg]]] = {}

    async def connect(self, address: Address) -> None:
        """Raises NotNow, RefusedError if NATS doesn't let this client in."""
        retry_for_s = self._timings.give_up_s * len(address.servers)
        try:
            async with asyncio.timeout(retry_for_s):  # after a handshake that failed nats-py may wait without end
                await self._nats.open(
                    address,
                    name="ojs-client",
                    error_cb=self._failed,
                    disconnected_cb=self._disconnected,
                    connect_timeout=self._timings.connect_s,
                    reconnect_time_wait=self._timings.reconnect_s,  # nats-py sleeps for it: fractions work
                    max_reconnect_attempts=1,
                    ping_interval=self._timings.ping_s,
                )
        except (nats.errors.Error, OSError) as error:
            reason = self._reason or error
            if is_refused(reason):
                raise refused("unauthenticated", f"NATS doesn't let this client in: {reason}", status=401) from None
            raise NotNow(reason, carried_out=False) from error
        self._nats.options["max_reconnect_attempts"] = -1
        await self._listen()

    async def _listen(self) -> None:
        """Listen to answers. Each connection has an inbox of its own: who answers a request of the one before finds nobody
        there, and the jobs of a fetch go to others at once.
        """
        if self._answers is not None:
            await self._answers.unsubscribe()
        self._inbox = self._nats.new_inbox()
        self._answers = await self._nats.subscribe(f"{self._inbox}.*", cb=self._answered)

    async def close(self) -> None:
        if self._nats.options:  # nats-py can't close what was never asked to connect
            await self._nats.end(self._timings.close_s)

    @property
    def has_given_up(self) -> bool:
        """Whether another one has to be made."""
        return self._nats.has_given_up

    async def ask(self, subject: str, body: bytes, headers: dict[str, str], seconds: float) -> Msg:
        """Raises NotNow, NobodyListens, RefusedError if NATS doesn't let this user ask that."""
        if not self._nats.is_connected:
            raise NotNow("there is no connection to NATS", carried_out=False)
        most = self._nats.max_payload - _HEAD_BYTES
        if len(body) > most:  # NATS would end the connection
            reason = f"the request is {len(body)} bytes; the limit is {most} bytes over this NATS"
            raise refused("envelope_too_large", reason, status=413)
        token = str(next(self._tokens))
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[token] = subject, answer

        async def asked() -> Msg:
            await self._nats.publish(subject, body, reply=f"{self._inbox}.{token}", headers=headers)
            return await answer

        try:
            found = await in_time(asked(), seconds, self._timings.tries.unread_s)
        except nats.errors.Error as error:
            raise NotNow(error, carried_out=True) from error
        except TimeoutError:
            raise NotNow(f"nobody answered within {seconds:g} s", carried_out=True) from None
        finally:
            del self._waiting[token]
        if not found.data and found.headers is not None and found.headers.get("Status") == "503":
            await self._look_elsewhere()
            raise NobodyListens(subject.partition(".")[0])
        self._nobody_since = None
        return found

    async def _look_elsewhere(self) -> None:
        """Go to another server, if nobody has listened for a while and there is one."""
        now = asyncio.get_running_loop().time()
        if self._nobody_since is None:
            self._nobody_since = now
        elif now - self._nobody_since >= self._timings.nobody_s and len(self._nats.servers) > 1:
            self._nobody_since = now
            log.debug("nobody listens at this server: another one is tried", server=self._nats.connected_url)
            await self._nats.leave("no gateway listens there")

    @asynccontextmanager
    async def listening(self, subjects: Sequence[str], heard: asyncio.Event) -> AsyncIterator[None]:
        """In here `heard` is set when something arrives on one of the subjects."""

        async def note(_: Msg) -> None:
            heard.set()

        subscriptions = [await self._nats.subscribe(subject, cb=note) for subject in subjects]
        try:
            yield
        finally:
            for subscription in subscriptions:
                if self._nats.is_connected:
                    await subscription.unsubscribe()

    async def _answered(self, message: Msg) -> None:
        if message.headers is not None and message.headers.get("OJS-Status") == _INTERIM:
            return
        waiting = self._waiting.get(message.subject.rpartition(".")[2])
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(message)

    async def _failed(self, error: Exception) -> None:
        self._reason = error
        log.debug("nats connection", reason=str(error) or type(error).__name__)
        denied = _DENIED.search(str(error))
        if denied is not None:
            reason = f"NATS doesn't let this user ask on {denied[1]}"
            self._fail(refused("permission_denied", reason, status=403), denied[1])

    async def _disconnected(self) -> None:
        self._fail(NotNow("the connection to NATS was lost", carried_out=True))
        if self._answers is not None and not self._nats.is_closed:
            await self._listen()

    def _fail(self, reason: Exception, subject: str | None = None) -> None:
        for asked, answer in self._waiting.values():
            if not answer.done() and subject in {None, asked.lower()}:
                answer.set_exception(reason)


async def _either(heard: asyncio.Event, timings: NatsTimings) -> None:
    """Until it is set and a moment has passed, in which what was published is stored, or so long."""
    try:
        async with asyncio.timeout(timings.look_s):
            await heard.wait()
    except TimeoutError:
        return
    await asyncio.sleep(timings.stored_s)


def _status(said: str) -> int:
    return int(said) if len(said) == 3 and said.isascii() and said.isdigit() else _NO_STATUS


def _queue(request: Request) -> str:
    """Return the queue to name in the subject: any, if no subject can name it. The server says what is wrong."""
    queue = request.queue or _ANY_QUEUE
    return queue if is_queue_name(queue) and "" not in queue.split(".") else _ANY_QUEUE

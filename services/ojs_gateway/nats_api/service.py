"""Where the NATS binding ends: from a message to a handler, and from its answer or any failure to the reply."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from typing import Final

import structlog

from ojs_engine.api.call import Response
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.errors import OjsError, too_large, unavailable
from ojs_engine.base.ids import request_id_of
from ojs_engine.base.loops import stop_tasks
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.readable import readable, require_readable
from ojs_engine.jetstream import micro
from ojs_engine.jetstream.connection import CannotConnect, Connection, Reply
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_engine.jetstream.streams import no_way_to_nats
from ojs_engine.jetstream.subjects import REST, StoreConfig
from ojs_engine.telemetry import metrics
from ojs_engine.wire.dialects.readers import Dialect
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_gateway.dialects.readers import dialect_of
from ojs_gateway.http.door import Door
from ojs_gateway.http.edge import SPOKEN, refusal, require_supported
from ojs_gateway.http.showing import shown
from ojs_gateway.nats_api.call import ANY_QUEUE, Headers, NatsCall, headers_of
from ojs_gateway.nats_api.operation import Operation
from ojs_runtime import tracing

log = structlog.get_logger(__name__)

_METHOD: Final = "NATS"
"""What metrics have as the method of a request that came this way."""
_INTERIM: Final = "OJS-Status: 102\r\n"
_DECIDING: Final = ("OJS-Version", "OJS-Requires-Extension")
"""Headers that every operation goes by."""
_HEAD_BYTES: Final = 4_096
"""What an answer's headers may take of NATS's max_payload."""
_MOST_ERROR: Final = 200
"""Characters of an error's message in a header; all of it is in the body."""
_MOST_BYTES: Final = 256 * 1024 * 1024
"""Of all requests that are under way: a message is in memory before anybody can say whether it is wanted."""


class NatsApi:
    """Serves operations on a connection of its own, together with all gateways of the system.

    Answers go to `inboxes` alone. At most `most` requests are under way at a time.
    """

    def __init__(
        self,
        operations: Iterable[Operation],
        config: StoreConfig,
        door: Door,
        limits: PayloadLimits,
        aside: LargeBodies,
        inboxes: Inboxes,
        extensions: SupportedExtensions,
        most: int,
    ) -> None:
        self._nats = Connection(f"{config.namespace}-gateway-api")
        self._operations = operations
        self._config = config
        self._door = door
        self._limits = limits
        self._aside = aside
        self._inboxes = inboxes
        self._extensions = extensions
        self._most = most
        self._under_way: set[asyncio.Task[None]] = set()
        self._bytes = 0

    async def start(self, url: str, instance: str) -> None:
        """Listen. Raises StartupProblem."""
        try:
            await self._nats.connect(url)
        except CannotConnect as error:
            raise no_way_to_nats(url, error, " for the API over it") from None
        group = f"{self._config.namespace}-gateways"
        served: dict[micro.Endpoint, Callable[[Reply], None]] = {}
        for operation in self._operations:
            subject = self._config.api(operation.name, REST if operation.grantable else ANY_QUEUE)
            metadata = {"method": operation.method, "path": operation.path}
            endpoint = micro.Endpoint(operation.name, subject, group, metadata)
            served[endpoint] = partial(self._arrived, operation, endpoint)
        about = "Open Job Spec on NATS JetStream"
        service = micro.MicroService(
            self._nats, self._inboxes, self._config.namespace, instance, version("ojs-nats-server"), about
        )
        await service.serve(served)
        await self._nats.flush()

    @property
    def nats(self) -> Connection:
        """The connection on which requests come."""
        return self._nats

    async def stop(self, seconds: float) -> None:
        """Take no more requests, and give those that have come so long to be answered."""
        await self._nats.drain()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds)
        await stop_tasks(self._under_way)
        await self._nats.flush()
        await self._nats.close()

    def _arrived(self, operation: Operation, endpoint: micro.Endpoint, message: Reply) -> None:
        size = len(message.data)
        if len(self._under_way) >= self._most or self._bytes + size > _MOST_BYTES:
            work = self._refused(operation, endpoint, message)
        else:
            work = self._answered(operation, endpoint, message, asyncio.get_running_loop().time())
        self._bytes += size
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(partial(self._over, size))

    def _over(self, size: int, task: asyncio.Task[None]) -> None:
        self._bytes -= size
        self._under_way.discard(task)

    async def _refused(self, operation: Operation, endpoint: micro.Endpoint, message: Reply) -> None:
        full = unavailable("this gateway has as many requests under way as it takes")
        self._reply(operation, endpoint, message, _Exchange(headers_of(message.headers)), full, time.perf_counter())

    async def _answered(self, operation: Operation, endpoint: micro.Endpoint, message: Reply, arrived: float) -> None:
        began = time.perf_counter()
        exchange = _Exchange(headers_of(message.headers))
        tracing.answering(exchange.headers.values)
        outcome: Response | OjsError
        try:
            outcome = await self._outcome(operation, exchange, message, arrived)
        except OjsError as error:
            outcome = error
        except asyncio.CancelledError:
            outcome = OjsError("backend_timeout", "the gateway had to stop before the request was answered")
        except Exception:
            log.exception("request failed", request_id=exchange.request_id, operation=operation.name)
            outcome = OjsError("backend_error", "the server failed to handle the request")
        self._reply(operation, endpoint, message, exchange, outcome, began)

    async def _outcome(self, operation: Operation, exchange: _Exchange, message: Reply, arrived: float) -> Response:
        """The handler's answer, its body as it is sent."""
        require_readable(exchange.headers.unreadable, _DECIDING)
        require_supported(exchange.dialect, exchange.version)
        if (required := exchange.headers.values.get("ojs-requires-extension")) is not None:
            self._extensions.require(required)
        room = self._nats.max_payload - _HEAD_BYTES
        call = exchange.call = NatsCall(
            operation,
            self._config.queue_of_api(readable(message.subject.decode(errors="surrogateescape"))),
            exchange.headers,
            message.data,
            exchange.dialect,
            self._limits,
            self._aside,
            arrived=arrived,
            room=room,
            listened=partial(self._nats.has_listener, message.reply.decode(), _INTERIM),
        )
        call.request_id = exchange.request_id
        if call.gone:
            raise OjsError("request_timeout", "the time that the client waits was over before the request was looked at")
        answer = await self._door.through(call, operation.endpoint)
        assert isinstance(answer, Response), "operations that stream are not served over NATS"
        body = shown(call, answer)
        if len(body) > room:
            raise _too_large(operation, len(body), room)
        return answer._replace(answer=body)

    def _reply(
        self,
        operation: Operation,
        endpoint: micro.Endpoint,
        message: Reply,
        exchange: _Exchange,
        outcome: Response | OjsError,
        began: float,
    ) -> None:
        if isinstance(outcome, OjsError):
            status, body, more = refusal(outcome, exchange.request_id)
            more = (*more, (micro.ERROR, " ".join(outcome.message.split())[:_MOST_ERROR]), (micro.ERROR_CODE, str(status)))
        else:
            assert isinstance(outcome.answer, bytes)
            status, body, more = outcome.status, outcome.answer, outcome.headers
        named = {"OJS-Status": str(status), "OJS-Version": SPOKEN, "X-Request-Id": exchange.request_id}
        headers = {"Content-Type": exchange.dialect.content_type} | named | dict(more)
        block = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reply = message.reply.decode()
        if exchange.call is not None and exchange.call.if_lost is not None:
            self._nats.publish_to_listener(reply, body, block, exchange.call.if_lost)
        else:
            self._nats.publish(reply, body, block)
        seconds = time.perf_counter() - began
        metrics.answered(_METHOD, operation.name, status, seconds)
        endpoint.answered(seconds, f"{status} {outcome.code}" if isinstance(outcome, OjsError) else None)


class _Exchange:
    """What a request's headers say of its answer, and the call once it is one."""

    def __init__(self, sent: Headers) -> None:
        self.headers = sent
        headers = sent.values
        self.version = headers.get("ojs-version")
        self.request_id = request_id_of(headers.get("x-request-id"))
        self.dialect: Dialect = dialect_of(
            headers.get("user-agent"), headers.get("accept"), self.version, headers.get("content-type")
        )
        self.call: NatsCall | None = None


def _too_large(operation: Operation, size: int, room: int) -> OjsError:
    error = too_large("envelope_too_large", "the answer", size, room)
    done = "" if operation.method == "GET" else "It was carried out. "
    error.hint = f"{done}Ask for less, with a lower `limit` or in parts, or over HTTP; NATS's max_payload is the limit."
    return error

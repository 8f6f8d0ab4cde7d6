"""The HTTP client of webhooks: one signed POST to an address that a client chose, so where it leads is checked
(docs/adr/050).

An address is checked when it is connected to, after its name was resolved, so that no name can lead elsewhere later.
Redirects aren't followed, proxies of the environment aren't used, cookies aren't kept, and of an answer little is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from ojs_engine.base.numbers import whole_number
from ojs_features.webhooks.addresses import allowed
from ojs_features.webhooks.records import Subscription
from ojs_features.webhooks.rules import signature

TIMEOUT_S: Final = 30.0
"""Ojs-webhooks §7.3."""
_MOST_CONNECTIONS: Final = 1_000
_READ_BYTES: Final = 1_024
_HEADER_BYTES: Final = 4_096
"""The size of one header of an answer; aiohttp reads up to 128 of them."""
_LOOKUPS: Final = 100
"""Names that are looked up at a time: each waits in a thread, and as many subscriptions may have names that nobody resolves."""

T = TypeVar("T")


class TargetAnswer(NamedTuple):
    """A target's answer. `status` is 0 and `error` says why if there was no answer; `body` is its beginning."""

    status: int
    ms: int
    body: str = ""
    error: str = ""
    retry_after_s: int | None = None

    @property
    def success(self) -> bool:
        return 200 <= self.status < 300


class _Refused(OSError):
    """An address that nothing is sent to."""


class _Resolver(AbstractResolver):
    """Looks names up in threads of its own, so that slow ones hold up neither the rest of the process nor its end."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(_LOOKUPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AddressFamily.AF_INET
    ) -> list[ResolveResult]:
        look_up = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        async with self._places:
            infos = await _in_thread(look_up)
        return [
            ResolveResult(
                hostname=host,
                host=str(where[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, where in infos
        ]

    async def close(self) -> None:
        pass


def _in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """The outcome of something that blocks, and that an executor would wait for when the process ends."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(done: Callable[[], None]) -> None:
        if not outcome.done():
            done()

    def run() -> None:
        try:
            found = work()
        except (OSError, ValueError) as error:  # it is unknown, or it can't be a name
            done: Callable[[], None] = partial(outcome.set_exception, error)
        else:
            done = partial(outcome.set_result, found)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, done)

    threading.Thread(target=run, name="look-up", daemon=True).start()
    return outcome


class Targets:
    """Connections to targets. `insecure` allows http, `private` loopback and private networks."""

    def __init__(self, *, insecure: bool, private: bool) -> None:
        self._insecure = insecure
        self._private = private
        self._session: aiohttp.ClientSession | None = None

    async def deliver(
        self, subscription: Subscription, delivery_id: str, event_type: str, body: bytes, now: int
    ) -> TargetAnswer:
        """Bring an event to a subscription's URL at `now` (Unix ms). Never raises; takes up to `TIMEOUT_S`."""
        loop = asyncio.get_running_loop()
        start = loop.time()

        def ms() -> int:
            return round(1_000 * (loop.time() - start))

        if not self._insecure and urlsplit(subscription.url).scheme != "https":
            return TargetAnswer(0, 0, error="its URL is not https")
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "OJS-Webhook/1.0 (ojs-nats)",
            "X-OJS-Event-Type": event_type,
            "X-OJS-Delivery-ID": delivery_id,
            "X-OJS-Subscription-ID": subscription.id,
            "X-OJS-Timestamp": str(now // 1_000),
            "X-OJS-Signature": signature(subscription.secrets(now), now // 1_000, body),
        }
        try:
            async with self._open().post(subscription.url, data=body, headers=headers, allow_redirects=False) as response:
                beginning = (await response.content.read(_READ_BYTES)).decode(errors="replace")
                return TargetAnswer(response.status, ms(), beginning, retry_after_s=_retry_after(response.headers))
        except TimeoutError:
            return TargetAnswer(0, ms(), error=f"no answer within {TIMEOUT_S:.0f} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return TargetAnswer(0, ms(), error=_reason(error))

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_MOST_CONNECTIONS, resolver=_Resolver(), socket_factory=self._socket),
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                max_line_size=_HEADER_BYTES,
                max_field_size=_HEADER_BYTES,
                trust_env=False,
            )
        return self._session

    def _socket(self, address: Any) -> socket.socket:
        """A socket for an address that is about to be connected to. Raises OSError if nothing may be sent there."""
        family, kind, protocol, _, where = address
        if not allowed(where[0], private=self._private):
            raise _Refused("its address is not one that webhooks may be sent to")
        return socket.socket(family=family, type=kind, proto=protocol)


def _reason(error: Exception) -> str:
    """Return why there was no answer, for the subscriber: never the addresses that a name stands for."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case _Refused():
                return str(cause)
            case socket.gaierror() | aiohttp.ClientConnectorDNSError():
                return "its name is not known"
            case ssl.SSLCertVerificationError():
                return f"its certificate is not accepted: {cause.verify_message}"[:200]
            case ssl.SSLError():
                return f"TLS with it fails: {cause.reason}"[:200]
            case _:
                inner = getattr(cause, "os_error", None)
                cause = inner if inner is not None and inner is not cause else cause.__cause__
    if isinstance(error, OSError):
        return "it can't be reached" if error.errno is None else f"it can't be reached: {os.strerror(error.errno)}"
    return f"{type(error).__name__}: {error}"[:200]


def _retry_after(headers: Mapping[str, str]) -> int | None:
    return whole_number(headers.get("Retry-After", ""), 9)

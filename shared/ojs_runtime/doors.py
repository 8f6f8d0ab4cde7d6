"""The way from an accepted socket to a server: the header of a balancer, TLS (docs/adr/031)."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Final, cast

import structlog
from aiohttp import web

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_runtime.connections import NO_PROXY_HEADER, Connections, GuardedHandler
from ojs_runtime.listen import ListenTimings, last_call
from ojs_runtime.proxy_header import ProxyHeaderError, ProxyHeaders

log = structlog.get_logger(__name__)

_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Door:
    """Turns accepted sockets into connections of a server.

    A client counts among `connections` from the moment it is accepted. With `headers`, a connection of a
    trusted balancer counts for the balancer until its header has said whose it is.
    """

    scheme = "http"

    def __init__(self, connections: Connections, headers: ProxyHeaders | None = None) -> None:
        self._connections = connections
        self._headers = headers

    def start(self) -> None:
        """Start the tasks that belong to no connection."""

    async def stop(self) -> None:
        """End these tasks."""

    async def admit(self, server: Callable[[], GuardedHandler], connection: socket.socket, address: str) -> None:
        """Make one connection of `server`, which may fail."""
        handler = server()
        try:
            connection.setblocking(False)
            connected = await self._through(handler, connection, address)
        except BaseException:
            connection.close()
            handler.leave()
            raise
        if not connected:
            handler.leave()

    async def _through(self, handler: GuardedHandler, connection: socket.socket, address: str) -> bool:
        """Return whether there is a connection; else the socket is closed."""
        if not handler.take_place(address):
            connection.close()
            return False
        if self._headers is None or not self._headers.trusts(address):
            return await self.connect(handler, connection, address)
        try:
            client = await self._headers.client(connection, address, handler.patience_s)
        except ProxyHeaderError as error:
            if error.reason == "missing" and self.scheme == "http":
                await self.answer(connection, NO_PROXY_HEADER)
            else:
                connection.close()
            return False
        if client != address:
            handler.client = client
            if not handler.take_place(client):
                connection.close()
                return False
        return await self.connect(handler, connection, client)

    async def connect(self, handler: GuardedHandler, connection: socket.socket, address: str) -> bool:
        """Hand the socket to the handler, and return whether there is a connection; else it is closed."""
        del address  # a plain connection can't fail, so it is reported by none
        await asyncio.get_running_loop().connect_accepted_socket(lambda: handler, connection)
        return True

    async def answer(self, connection: socket.socket, answer: bytes) -> None:
        """Answer a client that speaks HTTP and gets no connection."""
        transport, _ = await asyncio.get_running_loop().connect_accepted_socket(_Deaf, connection)
        self._connections.refuse(transport, answer)


class DoorSite(web.BaseSite):
    """Listens for a runner whose server has `GuardedHandler`s, as aiohttp's `TCPSite` does."""

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        door: Door,
        timings: ListenTimings,
        *,
        backlog: int,
        reuse_port: bool,
    ) -> None:
        super().__init__(runner, backlog=backlog)
        self._host = host
        self._port = port
        self._door = door
        self._timings = timings
        self._reuse_port = reuse_port
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def name(self) -> str:
        return f"{self._door.scheme}://{self._host}:{self._port}"

    async def start(self) -> None:
        """Bind and accept. Raises OSError if the address can't be had."""
        await super().start()
        served = self._runner.server
        assert served is not None
        loop = asyncio.get_running_loop()
        bound = await loop.create_server(
            served, self._host, self._port, reuse_address=True, reuse_port=self._reuse_port, start_serving=False
        )
        self._server = bound
        for bound_socket in bound.sockets:
            listening = socket.socket(fileno=os.dup(bound_socket.fileno()))
            self._listening.append(listening)
            listening.setblocking(False)
            listening.listen(self._backlog)
        self._accepting = [start_loop("accept", partial(self._accept, each)) for each in self._listening]
        self._door.start()

    async def stop(self) -> None:
        """Accept no more. Handshakes that are under way have a moment to end."""
        await last_call(self._listening, self._timings.last_call_s)
        for accepting in self._accepting:
            await stop_loop(accepting)
        for listening in self._listening:
            listening.close()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=self._timings.last_call_s)
        await self._door.stop()
        for handshake in self._under_way:
            handshake.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await super().stop()

    async def _accept(self, listening: socket.socket) -> None:
        served = self._runner.server
        assert served is not None
        try:
            connection, peer = await asyncio.get_running_loop().sock_accept(listening)
        except OSError as error:
            if error.errno in _NO_ROOM:
                log.error("connections can't be accepted", reason=error.strerror)
                await asyncio.sleep(self._timings.no_room_s)
            return
        task = asyncio.create_task(self._door.admit(_handlers(served), connection, str(peer[0])))
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, handshake: asyncio.Task[None]) -> None:
        self._under_way.discard(handshake)
        if not handshake.cancelled() and (error := handshake.exception()) is not None:
            log.error("a connection failed", exc_info=error)


def _handlers(served: web.Server) -> Callable[[], GuardedHandler]:
    """Return what makes a server's connections, which are guarded."""
    return cast("Callable[[], GuardedHandler]", served)


class _Deaf(asyncio.Protocol):
    """A protocol that reads nothing."""

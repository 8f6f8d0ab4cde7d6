"""Serving an aiohttp application, or a bare server, on a TCP port that may be taken."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
from aiohttp import web

from ojs_engine.base.problems import StartupProblem
from ojs_link.timings import Timings

if TYPE_CHECKING:
    from _typeshed import HasFileno

    from ojs_runtime.doors import Door

log = structlog.get_logger(__name__)

_REMEDY: Final = "stop what listens there, or choose another port (0 for any free one)"
_TURNS_TO_CONNECT: Final = 3
"""Turns of asyncio's loop from a connection that was accepted to one that has a transport."""
_BACKLOG: Final = 4_096
"""Connections that may wait to be accepted: all of a fleet that connects at once. Linux takes less where
`net.core.somaxconn` is lower; what finds no room tries again after a second."""


class ListenTimings(Timings, frozen=True, kw_only=True):
    """How long a port takes to close, and rests without room."""

    last_call_s: float = 0.5
    """How long connections that the system has for it are taken over, and handshakes go on. A flood takes all of it."""
    look_s: float = 0.02
    """Between two looks whether clients have left."""
    no_room_s: float = 1.0
    """Until connections are accepted again when there was no file for one, as asyncio itself waits."""


class Listener:
    """An aiohttp application or bare server on one address. `port` 0 takes any free one; `url` then has the real one.

    Processes that all listen with `shares_port` are given connections in turns, by chance. Whoever doesn't mean to share finds
    the port taken.

    With a `door` a connection has to pass it before it is the server's; handlers have to be `GuardedHandler`s then.
    """

    def __init__(
        self,
        served: web.Application | web.Server,
        host: str,
        port: int,
        *,
        shares_port: bool = False,
        door: Door | None = None,
        timings: ListenTimings = ListenTimings(),
        **runner_options: Any,
    ) -> None:
        self._runner: web.BaseRunner
        if isinstance(served, web.Application):
            self._runner = web.AppRunner(served, access_log=None, **runner_options)
        else:
            self._runner = web.ServerRunner(served, **runner_options)
        self._host = host
        self._port = port
        self._shares_port = shares_port
        self._url: str | None = None
        self._door = door
        self._timings = timings
        self._site: web.BaseSite | None = None

    @property
    def url(self) -> str:
        """Base URL of the server, without a slash at the end; only once it has started."""
        assert self._url is not None, "the listener hasn't started"
        return self._url

    async def start(self) -> None:
        """Bind and serve. Raises `StartupProblem` if the address can't be had."""
        await self._runner.setup()
        self._site = self._made_site()
        try:
            await self._site.start()
        except OSError as error:
            self._site = None
            await self._runner.cleanup()
            raise StartupProblem(_explain(self._host, self._port, error)) from error
        bound: tuple[str, int] = self._runner.addresses[0][:2]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._url = f"{'http' if self._door is None else self._door.scheme}://{host}:{bound[1]}"

    def _made_site(self) -> web.BaseSite:
        options: dict[str, Any] = {"backlog": _BACKLOG, "reuse_port": self._shares_port}
        if self._door is not None:
            from ojs_runtime.doors import DoorSite  # noqa: PLC0415  # it takes `last_call` from here

            return DoorSite(self._runner, self._host, self._port, self._door, self._timings, **options)
        return _Site(self._runner, self._host, self._port, self._timings, reuse_address=True, **options)

    async def close_port(self) -> None:
        """Take no new connections, and keep those that there are."""
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()
            await asyncio.sleep(self._timings.look_s)  # the runner gets to know those that came last

    async def stop(self, farewell_s: float = 0.0) -> None:
        """Close the port, let requests in flight finish within the runner's `shutdown_timeout`, then close connections.

        Connections without a request are closed after `farewell_s`: one may be on its way. If none is left, that is all.
        """
        await self.close_port()
        if farewell_s:
            loop = asyncio.get_running_loop()
            until = loop.time() + farewell_s
            server = self._runner.server
            while loop.time() < until and server is not None and server.connections:  # noqa: ASYNC110  # nobody tells of the last
                await asyncio.sleep(self._timings.look_s)
        await self._runner.cleanup()


class _Site(web.TCPSite):
    """A port whose last connections are taken over before it closes."""

    def __init__(self, runner: web.BaseRunner, host: str, port: int, timings: ListenTimings, **options: Any) -> None:
        super().__init__(runner, host, port, **options)
        self._last_call_s = timings.last_call_s

    async def stop(self) -> None:
        if self._server is not None:
            await last_call(cast("asyncio.Server", self._server).sockets, self._last_call_s)
        await super().stop()


async def last_call(listening: Iterable[HasFileno], most_s: float) -> None:
    """Return when the system has no more connections for these sockets, or after `most_s`. Closing resets the rest."""
    loop = asyncio.get_running_loop()
    until = loop.time() + most_s
    waiting = select.poll()  # select.select() takes no file descriptor above 1,023
    for each in listening:
        waiting.register(each, select.POLLIN)
    while loop.time() < until and waiting.poll(0):  # noqa: ASYNC110  # each turn accepts some
        await asyncio.sleep(0)
    for _ in range(_TURNS_TO_CONNECT):
        await asyncio.sleep(0)


async def readable(connection: socket.socket) -> None:
    """Return when there is something to read from a socket that doesn't block, or its end."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not came.done():
            came.set_result(None)

    loop.add_reader(connection, wake)
    try:
        await came
    finally:
        loop.remove_reader(connection)


async def require_free(host: str, port: int, remedy: str = _REMEDY) -> None:
    """Return if the port could be had now, which is so for 0; raises `StartupProblem`, which says `remedy` of a taken one."""
    if not port:
        return
    try:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port, start_serving=False)
    except OSError as error:
        raise StartupProblem(_explain(host, port, error, remedy)) from error
    server.close()


@asynccontextmanager
async def kept_port(host: str, port: int) -> AsyncIterator[int]:
    """Hold a port, or any free one for 0, which processes may then listen on together (`shares_port`); yields its number.

    Raises `StartupProblem` if it can't be had, also where others share it: they would get a part of the clients.
    """
    loop = asyncio.get_running_loop()
    await require_free(host, port)
    try:
        kept = await loop.create_server(asyncio.Protocol, host, port, reuse_port=True, start_serving=False)
    except OSError as error:
        raise StartupProblem(_explain(host, port, error)) from error
    try:
        number: int = kept.sockets[0].getsockname()[1]
        yield number
    finally:
        kept.close()


def _explain(host: str, port: int, error: OSError, remedy: str = _REMEDY) -> str:
    where = f"{host}:{port}"
    # asyncio joins the errors of several addresses into one without an error number.
    text = str(error).lower()
    if error.errno == errno.EADDRINUSE or "address already in use" in text:
        return f"{where} is taken: {remedy}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where} needs privileges that this process hasn't: choose a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL or "cannot assign requested address" in text:
        return f"{host} is no address of this machine: choose another one with --host"
    return f"can't listen on {where}: {error.strerror or error}"

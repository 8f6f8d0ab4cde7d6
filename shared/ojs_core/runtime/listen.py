"""Serving an aiohttp application, or a bare server, on a TCP port that may be taken."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, Final

import structlog
from aiohttp import web

from ojs_core.base.problems import StartupProblem
from ojs_core.runtime.addresses import is_loopback

log = structlog.get_logger(__name__)

_LOOK_S: Final = 0.02


class Listener:
    """An aiohttp application or bare server on one address. `port` 0 takes any free one; `url` then has the real one."""

    def __init__(self, served: web.Application | web.Server, host: str, port: int, **runner_options: Any) -> None:
        self._runner: web.BaseRunner
        if isinstance(served, web.Application):
            self._runner = web.AppRunner(served, access_log=None, **runner_options)
        else:
            self._runner = web.ServerRunner(served, **runner_options)
        self._host = host
        self._port = port
        self._url: str | None = None
        self._site: web.TCPSite | None = None

    @property
    def url(self) -> str:
        """Base URL of the server, without a slash at the end; only once it has started."""
        assert self._url is not None, "the listener hasn't started"
        return self._url

    async def start(self) -> None:
        """Bind and serve. Raises `StartupProblem` if the address can't be had."""
        await self._runner.setup()
        # Several processes on one port would share clients at random, so SO_REUSEPORT stays off.
        self._site = web.TCPSite(self._runner, self._host, self._port, reuse_address=True, reuse_port=False)
        try:
            await self._site.start()
        except OSError as error:
            self._site = None
            await self._runner.cleanup()
            raise StartupProblem(self._explain(error)) from error
        bound: tuple[str, int] = self._runner.addresses[0][:2]
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._url = f"http://{host}:{bound[1]}"
        reached = [address for address, *_ in self._runner.addresses if not is_loopback(address)]
        if reached:
            log.warning(
                "clients aren't authenticated, and others may reach this address: keep it in a private network, or behind "
                "a proxy that authenticates",
                url=self._url,
            )

    async def stop(self, farewell_s: float = 0.0) -> None:
        """Close the port, let requests in flight finish within the runner's `shutdown_timeout`, then close connections.

        Connections without a request are closed after `farewell_s`: one may be on its way. If none is left, that is all.
        """
        if self._site is not None and farewell_s:
            await self._site.stop()
            loop = asyncio.get_running_loop()
            until = loop.time() + farewell_s
            server = self._runner.server
            while loop.time() < until and server is not None and server.connections:  # noqa: ASYNC110  # nobody tells of the last
                await asyncio.sleep(_LOOK_S)
        self._site = None
        await self._runner.cleanup()

    def _explain(self, error: OSError) -> str:
        where = f"{self._host}:{self._port}"
        # asyncio joins the errors of several addresses into one without an error number.
        text = str(error).lower()
        if error.errno == errno.EADDRINUSE or "address already in use" in text:
            return f"{where} is taken: stop what listens there, or choose another port (0 for any free one)"
        if error.errno in (errno.EACCES, errno.EPERM):
            return f"{where} needs privileges that this process hasn't: choose a port above 1023"
        if error.errno == errno.EADDRNOTAVAIL or "cannot assign requested address" in text:
            return f"{self._host} is no address of this machine: choose another one with --host"
        return f"can't listen on {where}: {error.strerror or error}"

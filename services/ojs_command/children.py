"""A service as a child process of `ojs-nats dev`."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from ojs_command.services import ServiceEntry
from ojs_command.supervision import Supervised
from ojs_core.base.problems import StartupProblem
from ojs_core.runtime.settings import Settings
from ojs_core.runtime.supervised import ReadyLine


class ServiceChild(Supervised):
    """Runs `ojs-nats <service>` with the settings of `dev`, handed down in the environment.

    The child holds one end of a socket pair: through it comes its ready line, and its end tells the child that `dev` is
    gone, whatever killed it.
    """

    def __init__(self, entry: ServiceEntry, settings: Settings, on_change: Callable[[], None]) -> None:
        super().__init__(entry.name, on_change)
        self._entry = entry
        self._environment: dict[str, str] = {**os.environ, **settings.environment(entry.kind)}
        self._environment.pop("OJS_INSTANCE", None)  # each process has a name of its own
        self._link: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self.url: str | None = None

    async def _spawn(self) -> Process:
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._link = await asyncio.open_unix_connection(sock=ours)
            command = (sys.executable, "-m", "ojs_command", self.name, "--supervisor-fd", str(theirs.fileno()))
            return await asyncio.create_subprocess_exec(
                *command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C reaches `dev` alone, which stops the others in order
            )

    async def _until_ready(self, process: Process) -> None:
        assert self._reader is not None
        line = await self._reader.readline()
        if not line:
            status = await process.wait()
            raise StartupProblem(f"{self.name} ended with status {status} before it was ready; it says why itself")
        self.url = msgspec.json.decode(line, type=ReadyLine).url
        if self._entry.kind == "gateway" and self.url is not None:
            # A gateway on any free port keeps it when it is started again: clients have its URL.
            self._environment["OJS_PORT"] = str(urlsplit(self.url).port)

    async def _ended(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

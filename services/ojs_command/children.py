"""A service as a child process of `ojs-nats dev`, or of `ojs-nats gateway --processes`."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from ojs_command.supervision import Kept, Supervised
from ojs_engine.base.problems import StartupProblem
from ojs_runtime.service_entry import ServiceEntry
from ojs_runtime.settings import Settings
from ojs_runtime.supervised import ReadyLine


async def start_all(children: Sequence[Kept]) -> None:
    """Start them at once; returns when all are ready.

    Raises the first `StartupProblem`; those that run already go on.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for child in children:
                group.create_task(child.start())
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None


class ServiceChild(Supervised):
    """Runs `ojs-nats <service>` with the settings of this process, handed down in the environment.

    The child holds one end of a socket pair: through it comes its ready line, and its end tells the child that its
    parent is gone, whatever killed that.
    """

    def __init__(
        self,
        entry: ServiceEntry,
        settings: Settings,
        on_change: Callable[[], None],
        number: int | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """`number` is that of one of several processes of the service which share a port."""
        super().__init__(entry.name if number is None else f"{entry.name}-{number}", on_change)
        self._entry = entry
        self._arguments = (*arguments, *(() if number is None else ("--number", str(number))))
        self._environment: dict[str, str] = {**os.environ, **settings.environment(entry.kind)}
        self._environment.pop("OJS_INSTANCE", None)  # each process has a name of its own
        self._link: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None
        self.url: str | None = None

    async def _spawn(self) -> Process:
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._link = await asyncio.open_unix_connection(sock=ours)
            command = (sys.executable, "-m", "ojs_command", self._entry.name, "--supervisor-fd", str(theirs.fileno()))
            return await asyncio.create_subprocess_exec(
                *command,
                *self._arguments,
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

    def let_go(self) -> None:
        """Have it stop as if this process were gone: at once, though it may be draining."""
        if self._link is not None:
            self._link.close()
            self._link = None

    async def _ended(self) -> None:
        self.let_go()

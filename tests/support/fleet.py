"""Two of every service, or `each`, under names that stay, however often their processes are killed and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ojs_command.services import SERVICES
from support.forked import OJS_NATS
from support.network import Link, Network
from support.processes import free_port
from support.system import Command, Processes

EACH: Final = 2


class Fleet:
    """Processes named `gateway-1`, `gateway-2` and so on. A gateway keeps its port, a projector its folder.

    `network` puts a link before each gateway, and links of its own between each process and each address of `nats_url`.
    """

    def __init__(
        self,
        folder: Path,
        nats_url: str,
        *arguments: str,
        each: int = EACH,
        program: Sequence[str] = OJS_NATS,
        network: Network | None = None,
    ) -> None:
        self._processes = Processes(folder, nats_url, program=program)
        self.arguments = arguments
        """Of every process that is started."""
        self._ports = {f"gateway-{number}": free_port() for number in range(1, each + 1)}
        self.all_names = [f"{entry.name}-{number}" for entry in SERVICES for number in range(1, each + 1)]
        self.running: dict[str, Command] = {}
        self.before_gateways: dict[str, Link] = {}
        self.to_nats: dict[str, list[Link]] = {}
        """By process: the links to each address of NATS, in their order."""
        if network is not None:
            self.before_gateways = {name: network.link(port) for name, port in self._ports.items()}
            nats_ports = [urlsplit(url).port or 0 for url in nats_url.split(",")]
            self.to_nats = {name: [network.link(port) for port in nats_ports] for name in self.all_names}

    @classmethod
    @contextmanager
    def started(
        cls,
        folder: Path,
        nats_url: str,
        *arguments: str,
        each: int = EACH,
        program: Sequence[str] = OJS_NATS,
        network: Network | None = None,
    ) -> Iterator[Fleet]:
        """All of them, ready; stopped at the end. `program` is another way to start a service."""
        fleet = cls(folder, nats_url, *arguments, each=each, program=program, network=network)
        try:
            for name in fleet.all_names:
                fleet.start(name)
            for name in fleet.all_names:
                fleet.running[name].ready()
            yield fleet
        finally:
            fleet._processes.stop()

    @property
    def urls(self) -> list[str]:
        """The addresses of the gateways, through their links if there are any."""
        ports = {**self._ports, **{name: link.port for name, link in self.before_gateways.items()}}
        return [f"http://127.0.0.1:{port}" for port in ports.values()]

    @property
    def names(self) -> list[str]:
        return sorted(self.running)

    def start(self, name: str) -> Command:
        """Start what doesn't run; it isn't ready yet."""
        service = name.rpartition("-")[0]
        own: Sequence[str] = ()
        if service == "gateway":
            own = ("--port", str(self._ports[name]))
        elif service == "projector":
            own = ("--projector-data", str(self._processes.folder / name))
        way = ",".join(f"nats://127.0.0.1:{link.port}" for link in self.to_nats.get(name, ()))
        self.running[name] = command = self._processes.start(service, *own, *self.arguments, nats_url=way or None)
        return command

    def kill(self, name: str) -> None:
        """SIGKILL; returns when it is gone."""
        self.running[name].kill()

    async def replace(self, name: str) -> None:
        """Start what was killed once more; returns when it is ready."""
        await asyncio.to_thread(self.start(name).ready)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event, of all processes that there ever were."""
        return [line for command in self._processes.commands for line in command.events(event)]

    @property
    def relay(self) -> str | None:
        """The projector that relays events, as far as the logs say; None if it was killed, or nobody does yet."""
        begun = [
            (line["timestamp"], name)
            for name, command in self.running.items()
            if name.startswith("projector") and command.process.poll() is None
            for line in command.events("relaying events")[-1:]
        ]
        last = max((line["timestamp"] for line in self.logged("relaying events")), default="")
        return max(begun)[1] if begun and max(begun)[0] == last else None

    @property
    def tracebacks(self) -> list[str]:
        """What the services logged about errors that they did not expect."""
        lines = [line for command in self._processes.commands for line in command.output.splitlines()]
        return [line for line in lines if '"exception"' in line or line.startswith("Traceback")]

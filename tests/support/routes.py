"""A cluster of three nats-servers whose routes can be cut, as a partition of the network does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Self

from support.cluster import NatsCluster
from support.nats import NatsServer
from support.processes import free_port

_READ: Final = 64 * 1024


class CutCluster(NatsCluster):
    """Its routes lead through this process: `cut` has a node reach no other, and none reach it, until `mend`.

    As an asynchronous context manager it starts and stops.
    """

    def __init__(self, folder: Path) -> None:
        self._ports = [free_port() for _ in range(3)]
        self._doors = {(a, b): free_port() for a in range(3) for b in range(3) if a != b}
        self._cut: set[int] = set()
        self._servers: list[asyncio.Server] = []
        self._open: dict[tuple[int, int], set[asyncio.StreamWriter]] = {pair: set() for pair in self._doors}
        nowhere = free_port()  # what the nodes tell each other of their addresses must lead past no door
        self.nodes = [
            NatsServer(
                folder / f"n{node + 1}",
                name=f"n{node + 1}",
                more=f'http: "127.0.0.1:-1"\n'
                f'cluster {{ name: test, listen: "127.0.0.1:{self._ports[node]}", advertise: "127.0.0.1:{nowhere}", '
                f"no_advertise: true, routes: [{self._routes(node)}] }}",
            )
            for node in range(3)
        ]

    def _routes(self, node: int) -> str:
        return ", ".join(f'"nats://127.0.0.1:{port}"' for (a, _), port in self._doors.items() if a == node)

    async def __aenter__(self) -> Self:
        try:
            for pair, port in self._doors.items():
                self._servers.append(await asyncio.start_server(self._door(pair), "127.0.0.1", port))
            await asyncio.to_thread(self.start)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        await asyncio.to_thread(self.stop)
        self._sever(set(range(3)))

    def cut(self, node: NatsServer) -> None:
        """Cut a node off from the two others."""
        self._cut = {self.nodes.index(node)}
        self._sever(self._cut)

    def mend(self) -> None:
        self._cut = set()

    def _sever(self, nodes: set[int]) -> None:
        for pair, writers in self._open.items():
            if nodes & set(pair):
                for writer in writers:
                    writer.transport.abort()

    def _door(self, pair: tuple[int, int]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def let_through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends = [writer]
            try:
                if not self._cut & set(pair):
                    there, onward = await asyncio.open_connection("127.0.0.1", self._ports[pair[1]])
                    ends.append(onward)
                    self._open[pair].update(ends)
                    await asyncio.gather(_carry(reader, onward), _carry(there, writer))
            except OSError:
                pass  # the node at the other end doesn't run
            finally:
                self._open[pair].difference_update(ends)
                for end in ends:
                    end.transport.abort()

        return let_through


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(_READ):
            target.write(data)
            await target.drain()
    target.transport.abort()

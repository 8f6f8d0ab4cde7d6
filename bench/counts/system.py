"""A system whose services count: nats-server, and each service in a process of its own behind a tap."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.client import ResponseReader
from bench.counts.tap import Tap, Traffic
from bench.system import NoSystem, stop
from ojs_command.embedded import configuration, find_server

SERVICES: Final = ("gateway", "scheduler", "reaper", "coordinator", "projector", "webhooks")
_START_S: Final = 180.0
_POLL_S: Final = 0.05
_QUIET_S: Final = 0.28
_MOST_S: Final = 1.5
"""How long a system is waited for at most until nothing crosses the wire."""
_PASSED_S: Final = 5.0
_LOOK_S: Final = 0.01

Calls = dict[str, dict[str, int]]
"""Calls by stretch of time and function, as `bench.counts.counted` tells them."""


class Counted:
    """A running system. Each service has a tap and a process that counts, under the name of the service."""

    def __init__(self, taps: Mapping[str, Tap], folder: Path, port: int) -> None:
        self._taps = taps
        self._folder = folder
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._requests: list[float] = []

    async def request(self, method: str, path: str, body: object = None) -> Any:
        """Send a request on the one connection that is kept. Raises NoSystem when it is refused."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        payload = b"" if body is None else msgspec.json.encode(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(payload)}"
        )
        self._requests.append(time.monotonic())
        self._writer.write(f"{head}\r\n\r\n".encode() + payload)
        response, answer = ResponseReader(), None
        while answer is None:
            data = await self._reader.read(2**18)
            if not data:
                raise NoSystem(f"no answer to {method} {path}")
            answer = response.feed(data)
        self._requests.append(time.monotonic())
        status, content = answer
        if status >= 300:
            raise NoSystem(f"{method} {path} was refused: {status} {content.decode()}")
        return msgspec.json.decode(content) if content else None

    async def settle(self) -> None:
        """Return once nothing has crossed the wire for a while."""
        began = time.monotonic()
        while (now := time.monotonic()) - began < _MOST_S:
            last = max(began, *(tap.last for tap in self._taps.values()))
            if now - last >= _QUIET_S:
                return
            await asyncio.sleep(last + _QUIET_S - now)

    async def passed(self, service: str, start: str) -> None:
        """Return once a kind of message of a service has passed that begins so, or won't come (another version has others)."""
        until = time.monotonic() + _PASSED_S
        while not self._taps[service].passed(start) and time.monotonic() < until:  # noqa: ASYNC110 - what passes tells nobody
            await asyncio.sleep(_LOOK_S)

    async def taken(self) -> tuple[dict[str, Traffic], dict[str, Calls], list[float]]:
        """Return what crossed the wire, calls, and when requests were sent and answered, since it was asked last."""
        calls = await asyncio.gather(*(self._calls(name) for name in self._taps))
        requests, self._requests = self._requests, []
        return {name: tap.taken() for name, tap in self._taps.items()}, dict(zip(self._taps, calls, strict=True)), requests

    async def _calls(self, name: str) -> Calls:
        reader, writer = await asyncio.open_unix_connection(str(self._folder / f"{name}.sock"))
        try:
            told: Calls = json.loads(await reader.read(-1))
            return told
        finally:
            writer.close()


@asynccontextmanager
async def counted_system(checkout: Path, varies: str) -> AsyncIterator[Counted]:
    """Start a checkout's services and a nats-server of their own, and stop them. Raises NoSystem."""
    taps: dict[str, Tap] = {}
    processes: list[Process] = []
    with tempfile.TemporaryDirectory(prefix="ojs-counts-") as name:
        folder = Path(name)
        try:
            nats_port = await _nats_server(folder, processes)
            for service in SERVICES:
                taps[service] = Tap(nats_port, varies)
                await taps[service].start()
            port = _free_port()
            # The first one makes the streams, for which the others would wait or compete.
            await _service("gateway", checkout, folder, taps, port, processes)
            await asyncio.gather(
                *(_service(one, checkout, folder, taps, port, processes) for one in SERVICES if one != "gateway")
            )
            yield Counted(taps, folder, port)
        finally:
            # The services first, then nats-server.
            await asyncio.gather(*(stop(process) for process in processes[1:]))
            await asyncio.gather(*(stop(process) for process in processes[:1]))
            for tap in taps.values():
                tap.stop()


async def _nats_server(folder: Path, processes: list[Process]) -> int:
    (folder / "ports").mkdir()
    file = folder / "nats-server.conf"
    file.write_text(configuration(folder, -1))
    process = await asyncio.create_subprocess_exec(find_server("auto"), "-c", str(file), stdout=-3, stderr=-3)
    processes.append(process)
    ports = folder / "ports" / f"nats-server_{process.pid}.ports"
    async with asyncio.timeout(_START_S):
        while True:
            try:
                return int(json.loads(ports.read_text())["nats"][0].rsplit(":", 1)[1])
            except (FileNotFoundError, json.JSONDecodeError):
                await asyncio.sleep(_POLL_S)


async def _service(
    name: str, checkout: Path, folder: Path, taps: Mapping[str, Tap], port: int, processes: list[Process]
) -> None:
    ours = Path(__file__).parent.parent.parent
    path = [str(checkout / part) for part in ("shared", "services")] + [str(ours)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("OJS_", "NATS_"))} | {
        "PYTHONPATH": os.pathsep.join(path),
        "BENCH_COUNTS": str(folder / f"{name}.sock"),
        "OJS_NATS": f"nats://127.0.0.1:{taps[name].port}",
        "OJS_LOG_FORMAT": "json",
    }
    if name == "gateway":
        environment["OJS_PORT"] = str(port)
    if name == "projector":
        environment["OJS_PROJECTOR_DATA"] = str(folder / "projector")
    output = folder / f"{name}.log"
    with output.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.counts.counted", name, stdout=sink, stderr=sink, env=environment, cwd=folder
        )
    processes.append(process)
    began = time.monotonic()
    while b'"ready"' not in output.read_bytes():
        if process.returncode is not None or time.monotonic() - began > _START_S:
            raise NoSystem(f"{name} isn't ready:\n{output.read_text(errors='replace')[-2000:]}")
        await asyncio.sleep(_POLL_S)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])

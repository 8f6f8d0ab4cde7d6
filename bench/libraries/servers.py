"""The servers behind the libraries, each in a folder of its own, with what their documents advise for jobs that matter."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 60.0


class Missing(Exception):
    """A program that a contender needs isn't installed."""


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which a contender finds its server. Raises Missing."""
    start = {"ojs-nats": _ojs, "nats": _nats, "redis": _redis, "postgres": _postgres}[kind]
    process, found = start(folder)
    try:
        yield found
    finally:
        process.terminate()
        process.wait(timeout=60)


def _ojs(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    port, nats_port = free_port(), free_port()
    command = [sys.executable, "-m", "ojs_command", "dev", "--data", str(folder), "--log-level", "warning"]
    process = _started([*command, "--port", str(port), "--nats-port", str(nats_port)], folder)
    found = {"http": f"http://127.0.0.1:{port}", "nats": f"nats://127.0.0.1:{nats_port}"}

    def ready() -> bool:
        with urllib.request.urlopen(f"{found['http']}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)

    _wait(process, ready)
    return process, found


def _nats(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    port = free_port()
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else _program("nats-server")
    process = _started([program, "--jetstream", "--store_dir", str(folder), "--port", str(port), "--addr", "127.0.0.1"], folder)
    _wait(process, lambda: _answers(port))
    return process, {"NATS": f"nats://127.0.0.1:{port}"}


def _redis(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    port = free_port()
    command = [_program("redis-server"), "--port", str(port), "--dir", str(folder), "--save", "", "--appendonly", "yes"]
    process = _started([*command, "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"], folder)
    _wait(process, lambda: _answers(port))
    return process, {"REDIS": f"redis://127.0.0.1:{port}/0"}


def _postgres(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    [program, *_] = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres")), Path(shutil.which("postgres") or "postgres")]
    if not program.exists():
        raise Missing("postgres is not installed")
    data, port = folder / "data", free_port()
    data.mkdir()
    shutil.chown(folder, "postgres")
    shutil.chown(data, "postgres")
    folder.chmod(0o755)
    as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]  # it refuses to run as root
    make = [*as_postgres, str(program.parent / "initdb"), "-D", str(data), "-A", "trust"]
    subprocess.run(make, check=True, capture_output=True, cwd=folder)
    command = [*as_postgres, str(program), "-D", str(data), "-p", str(port), "-k", str(data), "-c", "synchronous_commit=off"]
    process = _started(command, folder)
    found = {"POSTGRES": f"host=127.0.0.1 port={port} user=postgres dbname=postgres"}
    _wait(
        process,
        lambda: (
            b"accepting"
            in subprocess.run(
                [program.parent / "pg_isready", "-h", "127.0.0.1", "-p", str(port)], check=False, capture_output=True
            ).stdout
        ),
    )
    return process, found


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def _started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder.parent / f"{folder.name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)


def _answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} has ended with {process.returncode}")
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"{process.args!r} isn't ready after {_PATIENCE_S:.0f} s")

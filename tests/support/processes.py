"""Processes and ports."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOWEST_PORT: Final = 10_000
_chance: Final = random.SystemRandom()


def free_port() -> int:
    """A port that was free a moment ago, and that the kernel gives to nobody who asks for any.

    Prefer port 0 wherever the process under test can report its own.
    """
    own = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    while True:
        port = _chance.randrange(_LOWEST_PORT, int(own.split()[0]))
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def free_ports(count: int) -> int:
    """The first of so many that follow each other and were free a moment ago."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent to look doesn't."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not stat.parent.parent.joinpath("self").exists()


def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM, seconds: float = 15.0) -> int:
    """Send a signal and wait for the end; a process that ignores it is killed, which fails the test."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that stands still: it is there, and does and answers nothing. It may be killed in here."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

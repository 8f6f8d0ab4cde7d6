"""Processes and ports."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

_LOWEST_PORT: Final = 10_000
_TICKS_S: Final = os.sysconf("SC_CLK_TCK")
_chance: Final = random.SystemRandom()


class Process(Protocol):
    """A process that was started (`subprocess.Popen`) or forked (`support.forked.Forked`)."""

    @property
    def args(self) -> object: ...

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int, /) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


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


def end(
    process: Process,
    number: int = signal.SIGTERM,
    seconds: float = 60.0,
    *,
    explain: Callable[[], str] = lambda: "",
) -> int:
    """Send a signal and wait for the end; a process that ignores it is killed, which fails the test.

    `explain` is asked before the kill. What it returns is in the failure.
    """
    if process.poll() is None:
        process.send_signal(number)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        said = explain()
        process.kill()
        process.wait()
        raise AssertionError(f"{process.args!r} didn't end within {seconds:g} s of signal {number}\n{said}") from None


kin: Final[set[int]] = set()
"""Processes that work for this one alone and are no children of it: a server of forks (support.forked)."""


def family(pid: int) -> dict[int, float]:
    """A process and all that descend from it, with the seconds of CPU that each and its ended children used.

    This one's kin belong to it.
    """
    children: dict[int, list[int]] = defaultdict(list)
    used: dict[int, float] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            one = int(file.parent.name)
            children[int(fields[1])].append(one)
            used[one] = sum(map(int, fields[11:15])) / _TICKS_S
    found: dict[int, float] = {}
    todo = [pid, *kin] if pid == os.getpid() else [pid]
    while todo:
        one = todo.pop()
        found[one] = used.get(one, 0.0)
        todo += children[one]
    return found


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that stands still: it is there, and does and answers nothing. It may be killed in here."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

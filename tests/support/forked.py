"""Processes of `ojs-nats` that are forked, in place of started, by a process that has imported it: support.fork_server."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from support import fork_server
from support.fork_server import NUMBER, REQUEST_BYTES
from support.processes import Process, kin
from support.waiting import PATIENCE_S

OJS_NATS: Final = (sys.executable, "-m", "ojs_command")
"""The command as its users have it."""
PYTHON: Final = (sys.executable, "-W", "default")
"""What runs a user's program, or a module by `-m`, and tells of everything that isn't closed."""
STACKS: Final = Path(__file__).parent / "stacks"
"""On the PYTHONPATH of a process: it prints its stacks at SIGUSR1. Those that are forked do so anyway."""

_AS_PYTHON: Final = """\
import gc, runpy, sys, warnings
warnings.simplefilter("default")
{}
gc.collect()  # what the program left open
"""
_WITH_SOURCES: Final = ("/usr/bin/env",)
_WITHOUT_PYTHON: Final = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
_READ_AT_START: Final = ("PYTHON", "LC_", "LANG", "LD_", "COVERAGE")


def start(command: Sequence[str], env: Mapping[str, str], files: tuple[int, int, int], folder: Path | None = None) -> Process:
    """Fork a process if it can be, else start it. Without a folder it runs in this process's.

    `files` are the descriptors of its input, output and errors.
    """
    sources, own = _sources(command)
    if _can_fork(env):
        place = folder or Path.cwd()
        if tuple(own[: len(OJS_NATS)]) == OJS_NATS:
            surroundings = {**env, "PYTHONPATH": sources} if sources else env
            return Forked(own[len(OJS_NATS) :], surroundings, files, place, sources=sources)
        if tuple(own[: len(PYTHON)]) == PYTHON:
            code, arguments = _program(own[len(PYTHON) :])
            return Forked(arguments, env, files, place, code=code)
    given, out, err = files
    return subprocess.Popen(command, cwd=folder, env=env, stdin=given, stdout=out, stderr=err)


def completed(
    command: Sequence[str], env: Mapping[str, str], *, folder: Path | None = None, text: str = "", seconds: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """What a process printed that was given this text, and its exit code."""
    with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        given.write(text)
        given.seek(0)
        process = start(command, env, (given.fileno(), out.fileno(), err.fileno()), folder)
        try:
            code = process.wait(seconds)
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), err.read())


def with_sources(sources: str) -> Sequence[str]:
    """The command out of other folders than today's, as PYTHONPATH has them."""
    return (*_WITH_SOURCES, f"PYTHONPATH={sources}", *OJS_NATS)


def _sources(command: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The folders that `with_sources` has put before a command, or none, and the command itself."""
    if tuple(command[:1]) != _WITH_SOURCES:
        return "", command
    return command[1].removeprefix("PYTHONPATH="), command[2:]


def _program(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The code that runs a program or a module as Python does, and the arguments of that."""
    if words[0] == "-m":
        return _AS_PYTHON.format(f"runpy.run_module({words[1]!r}, run_name='__main__', alter_sys=True)"), words[2:]
    return _AS_PYTHON.format(f"runpy.run_path({words[0]!r}, run_name='__main__')"), words[1:]


def _can_fork(env: Mapping[str, str]) -> bool:
    """Whether there is nothing in the environment that is read when Python starts."""
    folders = [Path(folder) for folder in env.get("PYTHONPATH", "").split(os.pathsep) if folder]
    if any((folder / "sitecustomize.py").exists() for folder in folders if folder != STACKS):
        return False
    read = {name for name in env.keys() | os.environ.keys() if name.startswith(_READ_AT_START)} - _WITHOUT_PYTHON
    return all(env.get(name) == os.environ.get(name) for name in read)


class Forked:
    """A process of the command, with what tests use of `subprocess.Popen`. It isn't this one's child, but one of the server."""

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        files: tuple[int, int, int],
        folder: Path,
        *,
        terminal: bool = False,
        code: str | None = None,
        sources: str = "",
    ) -> None:
        """`files` as for `start`; with `terminal` they are that of a session of its own.

        `code` is a program that runs in place of the command, as by `python -c`; `sources` as for `with_sources`.
        """
        self.args = (*OJS_NATS, *arguments)
        self.returncode: int | None = None
        self._lock = threading.Lock()
        request = {"arguments": arguments, "env": dict(env), "folder": str(folder), "terminal": terminal, "code": code}
        text = json.dumps(request).encode()
        assert len(text) < REQUEST_BYTES, "its arguments and environment are too long"
        self._told, telling = socket.socketpair()
        with telling:
            socket.send_fds(_server(sources), [text], [telling.fileno(), *files])
        self.pid: Final = self._number()

    def poll(self) -> int | None:
        """The exit code, None as long as it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended. Raises `subprocess.TimeoutExpired`."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send one, if it hasn't ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, and its server is about to say so
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and self._tells(seconds):
            with self._lock:  # another thread may have read it
                if self.returncode is None:
                    self.returncode = self._number()
                    self._told.close()
        return self.returncode

    def _tells(self, seconds: float | None) -> bool:
        told = select.poll()  # select.select() takes no file descriptor above 1,023
        told.register(self._told, select.POLLIN)
        return bool(told.poll(None if seconds is None else seconds * 1_000))

    def _number(self) -> int:
        told = self._told.recv(NUMBER.size)
        if not told:
            self._told.close()
        assert told, "the fork server has ended"
        number: int = NUMBER.unpack(told)[0]
        return number


_shared: list[str] = []
"""Where the server listens that all processes of pytest share, if there is one."""


def share(name: str) -> None:
    """Use the server that listens there in place of one of this process's own."""
    _shared[:] = [name]


@functools.cache
def _server(sources: str) -> socket.socket:
    """The socket for requests. The server ends with this process, which is the only one to have this end of it.

    Each version of the product has one of its own.
    """
    if sources or not _shared:
        return started_server(fork_server.__file__, sources=sources)
    control = fork_server.connected(_shared[0])
    kin.add(NUMBER.unpack(control.recv(NUMBER.size))[0])
    return control


def started_server(program: str, *arguments: str, door: socket.socket | None = None, sources: str = "") -> socket.socket:
    """Start a server that ends with this process: `support.fork_server`, or `support.collected`. It takes over its door.

    With `sources` it imports what is there in place of this version of the product.
    """
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {**os.environ, "PYTHONPATH": sources} if sources else None
    with theirs, door or nullcontext():
        files = [file.fileno() for file in (theirs, door) if file]
        command = [sys.executable, "-P", program, *map(str, files), *arguments]
        server = subprocess.Popen(command, env=env, pass_fds=files, stdin=subprocess.DEVNULL)

    def end() -> None:
        control.close()
        server.wait()

    atexit.register(end)
    return control


def ready() -> None:
    """Have the server import everything now, and not for the first test that needs it."""
    with Path(os.devnull).open("r+b") as null:
        assert start([*OJS_NATS, "--version"], os.environ, (null.fileno(), null.fileno(), null.fileno())).wait() == 0

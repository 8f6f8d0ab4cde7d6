"""A process that has imported the product, and forks a child for each request: `python -P fork_server.py FD [DOOR]`.

Each child runs `python -m ojs_command`, or the code that its request has, with the arguments, environment, folder and files
of its request, without the second or two of CPU that the imports take. `support.forked` has the other end of the socket FD.
Whoever connects to the socket DOOR gets a fork of the server to itself.
"""

from __future__ import annotations

import atexit
import faulthandler
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import struct
import sys
import termios
import time
from contextlib import suppress
from typing import Any, Final

NUMBER: Final = struct.Struct("i")
"""What is said of a child: first its process id, then its exit code."""
REQUEST_BYTES: Final = 1 << 20
_FILES: Final = 4
"""The socket for the numbers, and standard input, output and error."""
_CREDENTIALS: Final = struct.Struct("3i")
"""Of who connects: process, user, group."""


def imported() -> None:
    """Import all that a command, a service or a worker uses."""
    import ojs_command  # noqa: PLC0415 - only where a process is asked for
    from ojs_command.services import SERVICES  # noqa: PLC0415

    for entry in SERVICES:
        entry.load()
    for module in pkgutil.walk_packages(ojs_command.__path__, f"{ojs_command.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ("ojs_nats.worker._process", "ojs_nats._command.worker", "ojs_nats._command.logs"):
        with suppress(ModuleNotFoundError):  # an earlier version has none
            importlib.import_module(name)
    with suppress(ModuleNotFoundError, TypeError):  # that of 0.2 takes an argument, and packs the files at its start
        importlib.import_module("ojs_dashboard.files").load()  # or each gateway packs the dashboard's files anew


def listening(name: str) -> socket.socket:
    """The door of a server that others than its parent use, too. It is in no folder, and gone with its process."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.bind(f"\0{name}")
    control.listen()
    return control


def connected(name: str) -> socket.socket:
    """Connect to the server that listens there; raises OSError if there is none."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        control.connect(f"\0{name}")
    except OSError:
        control.close()
        raise
    return control


def request_of_child(control: socket.socket, door: socket.socket | None = None) -> dict[str, Any] | None:
    """Serve until the other end is closed; returns None then, and in each child what it is to run.

    What still runs then is told to stop: the tests were killed. Each that connects to the door is served by a fork.
    """
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    if door is not None:
        selector.register(door, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is door:
                own = _fork_for_one(selector, door)
                if own is not None:
                    return request_of_child(own)
                continue
            if key.fileobj is not control:
                selector.unregister(key.fileobj)
                pid, said = key.data
                _, status = os.waitpid(pid, 0)
                os.close(key.fd)
                if said is not None:
                    with said:
                        _tell(said, os.waitstatus_to_exitcode(status))
                continue
            text, files, _, _ = socket.recv_fds(control, REQUEST_BYTES, _FILES)
            if not text:
                for running in selector.get_map().values():
                    if running.data is not None and running.data[1] is not None:
                        os.kill(running.data[0], signal.SIGTERM)
                return None
            pid = os.fork()
            if pid == 0:
                for number, file in enumerate(files[1:]):
                    os.dup2(file, number)
                _let_go(selector)
                os.closerange(len(files) - 1, os.sysconf("SC_OPEN_MAX"))
                request: dict[str, Any] = json.loads(text)
                return request
            said = socket.socket(fileno=files[0])
            for file in files[1:]:
                os.close(file)
            _tell(said, pid)
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, said))


def _let_go(selector: selectors.BaseSelector) -> None:
    """Leave the closing of files to who calls: whenever an object goes, it would close the file that has its number then."""
    for key in list(selector.get_map().values()):
        for owner in (key.fileobj, key.data and key.data[1]):
            if isinstance(owner, socket.socket):
                owner.detach()
    selector.close()


def _fork_for_one(selector: selectors.BaseSelector, door: socket.socket) -> socket.socket | None:
    """Fork for who connects; returns the connection in the child, which has nothing else of its parent's, and None here.

    The child says its process id, and ends with its connection, so the parent never tells it to.
    """
    connection, _ = door.accept()
    _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if user != os.getuid():
        connection.close()
        return None
    pid = os.fork()
    if pid == 0:
        for key in list(selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
                if key.data[1] is not None:
                    key.data[1].close()
        selector.close()
        connection.send(NUMBER.pack(os.getpid()))
        return connection
    connection.close()
    selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, None))
    return None


def _tell(said: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it
        said.send(NUMBER.pack(number))


def become(request: dict[str, Any], paths: list[str]) -> None:
    """Make this process as if it had been started as the request says; `paths` is where Python looks for modules."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if request["terminal"]:
        take_terminal()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    named = os.environ.get("PYTHONPATH", "")
    sys.path[:] = [request["folder"], *filter(None, named.split(os.pathsep)), *paths]
    importlib.invalidate_caches()
    sys.argv[1:] = request["arguments"]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), sys.stdin.encoding)
    sys.stdout, sys.stderr = _written(1, "strict"), _written(2, "backslashreplace")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def take_terminal() -> None:
    """Begin a session on the terminal that standard output is."""
    os.setsid()
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


def _written(number: int, errors: str) -> io.TextIOWrapper:
    lines = number == 2 or os.isatty(number)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(number, "wb", closefd=False)),
        sys.stdout.encoding,
        errors,
        line_buffering=lines,
        write_through=at_once,
    )


class QuickEnd:
    """The end of a child: what was registered runs and output is flushed, but nothing is taken apart, which takes longest."""

    def __init__(self) -> None:
        self._code: int | None = None
        atexit.register(self._now)  # before the product registers anything, so after all of it

    def run(self, code: str | None) -> None:
        """Run the command, or this code as `python -c` does, and remember its exit code."""
        try:
            if code is None:
                runpy.run_module("ojs_command", run_name="__main__", alter_sys=True)
            else:
                exec(code, {"__name__": "__main__"})
            self._code = 0
        except SystemExit as end:
            self._code = end.code if isinstance(end.code, int) else None
            raise

    def _now(self) -> None:
        if self._code is not None:
            with suppress(OSError):  # in which case Python says so itself
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(self._code)


def main() -> None:
    """Serve; in a child, run the command."""
    end = QuickEnd()
    control = socket.socket(fileno=int(sys.argv[1]))
    door = socket.socket(fileno=int(sys.argv[2])) if len(sys.argv) > 2 else None
    faulthandler.register(signal.SIGUSR1)
    paths = sys.path.copy()
    if door is not None and door not in select.select([control, door], [], [])[0]:
        return  # a run that needed none of the product's processes has ended
    imported()
    serve(control, door, end, paths)


def serve(control: socket.socket, door: socket.socket | None, end: QuickEnd, paths: list[str]) -> None:
    """Fork for each request, as `request_of_child` says; in a child, run what it asks for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests and for the children, which go on without
    gc.collect()
    gc.freeze()
    request = request_of_child(control, door)
    if request is None:
        os._exit(0)
    become(request, paths)
    end.run(request["code"])


if __name__ == "__main__":
    main()

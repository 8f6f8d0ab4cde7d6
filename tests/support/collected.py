"""Tests that are collected once for all processes of pytest-xdist, which are forked from the one that did.

`python -P collected.py FD DOOR ARGUMENTS` collects the tests of the arguments, and then forks for each that connects to the
socket DOOR. A test file is imported by this process alone: its forks find it in `sys.modules`. So no two import the same, or
rewrite its assertions on a fresh checkout. A process that isn't served starts as ever (`support.worker_python`).
"""

from __future__ import annotations

import fcntl
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support import fork_server, forked, worker_python
from support.fork_server import QuickEnd, listening, serve


class Forks:
    """The servers of forks of a run with pytest-xdist: that of the product, and that of pytest's own processes."""

    def __init__(self, config: pytest.Config) -> None:
        """Start them. The tests are collected meanwhile; who asks for a process waits for it."""
        self.product: Final = f"ojs-tests-{token_hex(16)}"
        """Where processes of `ojs-nats` are forked."""
        name = f"ojs-tests-{token_hex(16)}"
        self.python: Final = shlex.join([sys.executable, "-IS", worker_python.__file__, name])
        """What pytest-xdist starts in place of Python."""
        arguments = [f"--rootdir={config.rootpath}", *(["-c", str(config.inipath)] if config.inipath else []), *config.args]
        self._servers = (
            forked.started_server(fork_server.__file__, door=listening(self.product)),
            forked.started_server(__file__, *arguments, door=listening(name)),
        )


def main() -> None:
    """Collect, then fork, as long as the other end of the socket FD is open."""
    end = QuickEnd()
    control = socket.socket(fileno=int(sys.argv[1]))
    door = socket.socket(fileno=int(sys.argv[2]))
    arguments = sys.argv[3:]
    paths = sys.path.copy()
    with _ending_with(control), Path(os.devnull).open("r+b") as null:
        for number in (0, 1):  # what can't be collected is told by the processes of pytest-xdist
            os.dup2(null.fileno(), number)
        code = pytest.main(["-n0", "--collect-only", "-qq", "-p", "no:cacheprovider", *arguments])
    if code != pytest.ExitCode.INTERRUPTED:
        serve(control, door, end, paths)


@contextmanager
def _ending_with(control: socket.socket) -> Iterator[None]:
    """A block in which SIGIO ends this process as soon as the other end of the socket is closed."""
    flags = fcntl.fcntl(control, fcntl.F_GETFL)
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(control, fcntl.F_SETFL, flags | os.O_ASYNC)
    yield
    fcntl.fcntl(control, fcntl.F_SETFL, flags)


if __name__ == "__main__":
    main()

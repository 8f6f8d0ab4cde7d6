"""Python for a process of pytest-xdist, forked in place of started: `python -IS worker_python.py NAME -u -c CODE`.

The process at the socket NAME has collected the tests (`support.collected`). Where there is none, Python is started. It imports
nothing that it can do without: a run has one beside each of its processes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys

_NUMBER = struct.Struct("i")


def main() -> int:
    """Return the exit code of the fork."""
    name, *arguments = sys.argv[1:]
    told, telling = socket.socketpair()
    code = arguments[-1]
    request = {"arguments": [], "env": dict(os.environ), "folder": os.getcwd(), "terminal": False, "code": code}  # noqa: PTH109
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        server.connect(f"\0{name}")
        server.recv(_NUMBER.size)
        with telling:
            socket.send_fds(server, [json.dumps(request).encode()], [telling.fileno(), 0, 1, 2])
        begun = told.recv(_NUMBER.size)
    except OSError:
        begun = b""
    if not begun:
        os.execv(sys.executable, [sys.executable, *arguments])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the fork, which says how it ended
    os.close(0)  # or the fork doesn't see that nobody writes to it, and nobody that it has ended
    os.close(1)
    ended = told.recv(_NUMBER.size)
    return int(_NUMBER.unpack(ended)[0]) if ended else 1


if __name__ == "__main__":
    sys.exit(main())

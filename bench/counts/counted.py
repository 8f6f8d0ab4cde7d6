"""A service's process that counts the calls of its Python functions: `python -m bench.counts.counted SERVICE …`.

It runs `ojs-nats SERVICE …` under `sys.setprofile`, also in its threads. Who connects to the socket that BENCH_COUNTS names
gets the calls so far as JSON, and they begin at zero again: by stretch of BUCKET_S seconds of the machine's monotonic clock,
and by function. The thread that answers isn't counted.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from types import CodeType, FrameType
from typing import Final

BUCKET_S: Final = 0.005

_calls: defaultdict[int, Counter[CodeType]] = defaultdict(Counter)


def _profile(frame: FrameType, event: str, _argument: object) -> None:
    if event == "call":
        _calls[int(time.monotonic() / BUCKET_S)][frame.f_code] += 1


def _answer(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            told: dict[int, Counter[str]] = {}
            for bucket in list(_calls):
                named: Counter[str] = Counter()
                for code, number in list(_calls.pop(bucket).items()):
                    named[f"{_place(code.co_filename)}:{code.co_qualname}"] += number
                told[bucket] = named
            connection.sendall(json.dumps(told).encode())


def _place(file: str) -> str:
    """Return the end of a path, the same in each checkout and environment: of our modules from the package on."""
    ours = re.search(r"(?<=/)ojs_\w+/(?!.*/ojs_\w+/).*", file)
    return ours[0] if ours else "/".join(file.split("/")[-3:])


def main() -> None:
    """Run the command line of `ojs-nats` with the arguments of this process."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.environ.pop("BENCH_COUNTS"))
    listener.listen()
    threading.Thread(target=_answer, args=(listener,), daemon=True).start()
    threading.setprofile(_profile)
    sys.argv[0] = "ojs-nats"
    sys.setprofile(_profile)
    runpy.run_module("ojs_command", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

"""The start and the end of every `ojs-nats` command: Ctrl-C ends it at once, with 130 and without a traceback.

A service, a worker and a client command that goes on handle Ctrl-C themselves once they run. This is for the time
before, in which most is imported, and for the time after.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # built in: `signal` imports others first
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

INTERRUPTED = 130


def main() -> int:
    """Run the command of this process; returns its exit code."""
    code = INTERRUPTED

    def end(_number: int, _frame: FrameType | None) -> None:
        os._exit(code)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background jobs ignore it
        signal.signal(signal.SIGINT, end)
    sys.unraisablehook = _unraisable
    try:
        from ojs_nats._command.main import main as run  # noqa: PLC0415  # takes most of the start

        code = run()
    except KeyboardInterrupt:
        pass
    signal.signal(signal.SIGINT, end)  # an event loop has put Python's own handler back
    return code


def _unraisable(error: UnraisableHookArgs) -> None:
    """Say nothing of a Ctrl-C that came in a `__del__` or the like: its handler has stopped the event loop as well."""
    if error.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(error)

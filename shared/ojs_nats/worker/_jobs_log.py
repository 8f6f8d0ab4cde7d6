"""Lines in a worker's log about its jobs: what failed, why and where, and for the verbose each begin and end."""

from __future__ import annotations

import sysconfig
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

_OURS: Final = f"{Path(__file__).parents[1]}/"
_PATHS: Final = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES: Final = (*(f"{sysconfig.get_path(name)}/" for name in _PATHS), "<")
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")
_LONGEST: Final = 1_000
_LONGEST_PLACE: Final = 500


class JobsLog(msgspec.Struct, frozen=True):
    """The lines that a worker writes of its jobs.

    `messages` lets the texts of errors in, which may hold what a job carries. `verbose` adds the traceback of each
    failure and a line for each begin and end.
    """

    messages: bool = True
    verbose: bool = False

    def begins(self, log: Any, queue: str) -> float:
        """Write that a job begins, if that is wanted. Returns the time for `completed` and `failed`."""
        if self.verbose:
            log.info("the job begins", queue=queue)
        return time.perf_counter()

    def completed(self, log: Any, began: float) -> None:
        """Write that a job has completed, if that is wanted."""
        if self.verbose:
            log.info("the job ends", ending="completed", seconds=_since(began))

    def misfit(self, log: Any, wrong: str) -> None:
        """Write that a handler's result isn't what its hint says. `wrong` is how."""
        reason = {"reason": _cut(wrong, _LONGEST)} if self.messages else {}
        log.warning("the handler's result isn't of its hint's type, so whoever waits for it gets an error", **reason)

    def handed_back(self, log: Any, began: float, reason: str) -> None:
        """Write that a job has ended without an outcome of its own, if that is wanted."""
        if self.verbose:
            log.info("the job ends", ending="handed back", error=reason, seconds=_since(began))

    def failed(self, log: Any, began: float, error: dict[str, Any]) -> None:
        """Write that a job has failed. `error` is what the server is sent of it."""
        said: dict[str, Any] = {"error": error.get("type") or error.get("code")}
        if self.messages:
            said["reason"] = _cut(str(error.get("message", "")), _LONGEST)
        if (place := error.get("details", {}).get("where")) is not None:
            said["where"] = place
        if self.verbose:
            said["seconds"] = _since(began)
            if self.messages and (trace := error.get("backtrace")):
                said["exception"] = "".join(trace).rstrip()
        log.warning("the job failed", **said)


USUAL: Final = JobsLog()


def where(error: BaseException) -> str | None:
    """Return the place of the application where an error was raised, as `app/jobs.py:12 in send_email`.

    That is the innermost frame outside of libraries. If the application is installed as a library, it is the innermost
    frame of the package that the handler is in. None for an error that no code of the application raised.
    """
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if not _is_ours(frame)]
    if not frames:
        return None if error.__cause__ is None else where(error.__cause__)
    own = [(frame, line) for frame, line in frames if not _is_of_a_library(frame)]
    if not own:
        home = _package(frames[0][0])
        own = [(frame, line) for frame, line in frames if _package(frame) == home]
    frame, line = own[-1]
    return _cut(f"{_shown(frame.f_code.co_filename)}:{line} in {frame.f_code.co_qualname}", _LONGEST_PLACE)


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OURS)


def _is_of_a_library(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(_LIBRARIES) or any(part in name for part in _INSTALLED)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _shown(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return path


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 3)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"

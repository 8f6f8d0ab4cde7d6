"""What a handler's end means for its job: a result, or an error and what is to come of it."""

from __future__ import annotations

import traceback
from typing import Any, Final

import msgspec

_MAX_FRAMES: Final = 50


class Discard(Exception):
    """Raised by a handler: the job has failed for good, and isn't tried again."""

    action = "DISCARD"


class DeadLetter(Exception):
    """Raised by a handler: the job has failed for good, and is kept among the dead letters for somebody to look at."""

    action = "DEAD_LETTER"


class ShutDown(Exception):
    """The worker stops before the job has ended: it is handed back."""


class TimedOut(Exception):
    """The job has run for as long as it may."""


class Report(msgspec.Struct, frozen=True):
    """What the server is told: the path under /workers, and the members beside the job's."""

    operation: str
    members: dict[str, Any]


def returned(result: Any) -> Report:
    """A handler has returned. Raises TypeError for what JSON can't say."""
    return Report("ack", {} if result is None else {"result": msgspec.to_builtins(result)})


def raised(error: BaseException) -> Report:
    """A handler has raised. Its error's class is what `Retry.not_for` names."""
    kind = type(error).__name__
    if isinstance(error, ShutDown):
        shutdown = {"code": "shutdown", "type": "shutdown", "message": str(error)}
        return Report("nack", {"requeue": True, "error": shutdown})
    if isinstance(error, TimedOut):
        return Report("nack", {"error": {"code": "timeout", "type": "timeout", "message": str(error)}})
    told: dict[str, Any] = {
        "code": "handler_error",
        "type": kind,
        "message": str(error) or kind,
        "details": {"error_class": f"{type(error).__module__}.{type(error).__qualname__}"},
        "backtrace": traceback.format_exception(error)[-_MAX_FRAMES:],
    }
    if isinstance(error, Discard | DeadLetter):
        told["action"] = error.action
    return Report("nack", {"error": told})


def unfit(error: Exception) -> Report:
    """The job's arguments aren't its handler's, and won't be the next time."""
    told = {"code": "invalid_arguments", "type": type(error).__name__, "message": str(error), "retryable": False}
    return Report("nack", {"error": told})

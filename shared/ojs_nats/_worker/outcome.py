"""What a handler's end means for its job: a result, or an error and what is to come of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ojs_nats._durations import Duration, milliseconds

_MAX_FRAMES: Final = 50


class Discard(Exception):
    """Raised by a handler: the job has failed for good, and isn't tried again."""

    action = "DISCARD"


class DeadLetter(Exception):
    """Raised by a handler: the job has failed for good, and is kept among the dead letters for somebody to look at."""

    action = "DEAD_LETTER"


class RetryLater(Exception):
    """Raised by a handler: the attempt has failed, and the next one, if one is left, begins after `delay` in place of the pause
    that the job's policy has.
    """

    def __init__(self, delay: Duration, reason: str = "to be tried again later") -> None:
        super().__init__(reason)
        self.delay_ms = milliseconds(delay)


class Snooze(Exception):
    """Raised by a handler: not now. The job runs again after `delay`; this attempt isn't counted, and isn't a failure."""

    def __init__(self, delay: Duration, reason: str = "put off") -> None:
        super().__init__(reason)
        self.delay_ms = milliseconds(delay)


class SoftTimeout(Exception):
    """Met by a handler whose time is nearly over, once: it may save what it has, and end. Else the attempt has failed."""


class ShutDown(Exception):
    """The worker stops before the job has ended: it is handed back."""


class NoPlace(Exception):
    """The worker has no place for the job after all: it is handed back."""


class TimedOut(Exception):
    """The job has run for as long as it may."""


class Unfit(Exception):
    """The job's arguments aren't its handler's, and won't be the next time."""


class FailedInProcess(Exception):
    """A handler has raised in a process of the pool; `members` are what the server is told of it."""

    def __init__(self, members: dict[str, Any]) -> None:
        error = members["error"]
        super().__init__(": ".join(error[name] for name in ("type", "message") if name in error))
        self.members = members


def called(handler: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What a plain function returns. One that exits fails; it doesn't end its thread or process."""
    try:
        return handler(*given, **named)
    except SystemExit as error:
        raise exited(error) from error


def exited(error: SystemExit) -> RuntimeError:
    return RuntimeError(f"the handler called exit({error.code})")


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
    told: dict[str, Any]
    if isinstance(error, ShutDown):
        shutdown = {"code": "shutdown", "type": "shutdown", "message": str(error)}
        return Report("nack", {"requeue": True, "error": shutdown})
    if isinstance(error, NoPlace):
        return Report("nack", {"requeue": True, "error": {"code": "no_place", "message": str(error)}})
    if isinstance(error, Snooze):
        return Report("nack", {"requeue": True, "retry_after_ms": error.delay_ms, "error": {"message": str(error)}})
    if isinstance(error, TimedOut):
        return Report("nack", {"error": {"code": "timeout", "type": "timeout", "message": str(error)}})
    if isinstance(error, Unfit):
        cause = type(error.__cause__).__name__
        told = {"code": "invalid_arguments", "type": cause, "message": str(error), "retryable": False}
        return Report("nack", {"error": told})
    if isinstance(error, FailedInProcess):
        return Report("nack", error.members)
    told = {
        "code": "handler_error",
        "type": kind,
        "message": str(error) or kind,
        "details": {"error_class": f"{type(error).__module__}.{type(error).__qualname__}"},
        "backtrace": traceback.format_exception(error)[-_MAX_FRAMES:],
    }
    if isinstance(error, Discard | DeadLetter):
        told["action"] = error.action
    if isinstance(error, RetryLater):
        return Report("nack", {"retry_after_ms": error.delay_ms, "error": {**told, "action": "RETRY"}})
    return Report("nack", {"error": told})

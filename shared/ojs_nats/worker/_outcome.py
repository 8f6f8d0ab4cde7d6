"""Outcomes of a handler: exceptions that it may raise to say what happens to its job, and reports to the server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ojs_nats._durations import LONGEST_MS, Duration, milliseconds
from ojs_nats._plain import encoded
from ojs_nats.jobs import Job
from ojs_nats.worker._jobs_log import where

T = TypeVar("T")

# What a failure's text may take: a report that is too large would be refused, and the job would hang.
_MAX_FRAMES: Final = 50
_MAX_FRAME: Final = 4_096
_MAX_TEXT: Final = 16_384
_MAX_NAME: Final = 250
_name: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
_held: Final[Callable[[BaseException], tuple[BaseException, ...]]] = BaseExceptionGroup.__dict__["exceptions"].__get__


class _Pickled(Exception):
    """An exception whose arguments aren't those that it is made of: it is pickled with what it has become."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)


def _unpickled(kind: type[Exception], args: tuple[Any, ...], members: dict[str, Any]) -> Exception:
    made = kind.__new__(kind, *args)
    made.__dict__.update(members)
    return made


class Discard(Exception):
    """An exception for handlers to raise: the job has failed for good, and isn't tried again.

    Example:
        ```python
        raise Discard("the order doesn't exist")
        ```
    """

    __module__ = "ojs_nats.worker"

    action = "DISCARD"


class DeadLetter(Exception):
    """An exception for handlers to raise: the job has failed for good, and is kept as a dead letter for somebody to
    inspect.

    Example:
        ```python
        raise DeadLetter("the address bounced")
        ```
    """

    __module__ = "ojs_nats.worker"

    action = "DEAD_LETTER"


class RetryLater(_Pickled):
    """An exception for handlers to raise: the attempt has failed, and the next one begins after `delay` in place of the
    policy's pause.

    If no attempt is left, the job has failed for good.

    Args:
        delay: The pause, in seconds or as `"5m"`, up to ten years.
        reason: The message of the failed attempt.

    Raises:
        ValueError: The delay is longer than ten years.
    """

    __module__ = "ojs_nats.worker"

    def __init__(self, delay: Duration, reason: str = "to be tried again later") -> None:
        super().__init__(reason)
        self.delay_ms = _delay_ms(delay)


class Snooze(_Pickled):
    """An exception for handlers to raise: the job runs again after `delay`. The attempt isn't counted, and isn't a
    failure.

    Args:
        delay: The pause, in seconds or as `"10m"`, up to ten years.
        reason: The reason, which the job's history shows.

    Raises:
        ValueError: The delay is longer than ten years.

    Example:
        ```python
        raise Snooze("10m", "the shop is closed")
        ```
    """

    __module__ = "ojs_nats.worker"

    def __init__(self, delay: Duration, reason: str = "put off") -> None:
        super().__init__(reason)
        self.delay_ms = _delay_ms(delay)


class SoftTimeout(Exception):
    """An exception that a handler is sent once, when its `soft_timeout` is over, so that it may save its work.

    If the handler doesn't catch it, the attempt has failed.
    """

    __module__ = "ojs_nats.worker"


class ShutDown(Exception):
    """An exception for a job that is handed back, since the worker stops before it has ended."""


class NoPlace(Exception):
    """An exception for a job that is handed back, since the worker has no place for it."""


class NotHere(_Pickled):
    """An exception for a job that is handed back, since this worker can't run it and another one may.

    Args:
        reason: The message.
        delay_ms: After how many milliseconds it may run again, at the earliest.
    """

    def __init__(self, reason: str, delay_ms: int) -> None:
        super().__init__(reason)
        self.delay_ms = delay_ms


class TimedOut(Exception):
    """An exception for a job whose `timeout` is over."""


class Unfit(Exception):
    """An exception for a job whose arguments don't fit its handler.

    Args:
        reason: The message.
        newer: Whether there are more arguments than the handler takes, as a newer release of the producer may send
            them.
    """

    def __init__(self, reason: str, *, newer: bool = False) -> None:
        super().__init__(reason)
        self.newer = newer


class Interrupted(Exception):
    """An exception in place of a handler's KeyboardInterrupt, which would end the event loop."""


class FailedInProcess(_Pickled):
    """An exception of a handler that ran in a process of the pool.

    Args:
        members: The members of the report to the server.
    """

    def __init__(self, members: dict[str, Any]) -> None:
        error = members["error"]
        super().__init__(": ".join(error[name] for name in ("type", "message") if name in error))
        self.members = members


def called(call: Callable[..., T], given: Sequence[Any] = (), named: Mapping[str, Any] = {}) -> T:
    """Call a plain function, and return what it returns.

    It raises what the function raises, but for exceptions that would end a thread, a loop or the process.

    Args:
        call: The function.
        given: Its positional arguments.
        named: Its arguments by name.

    Raises:
        RuntimeError: The function raised SystemExit or StopIteration.
        Interrupted: The function raised KeyboardInterrupt.
    """
    try:
        return call(*given, **named)
    except SystemExit as error:
        raise exited(error) from error
    except StopIteration as error:  # as a coroutine has it (PEP 479)
        raise RuntimeError("the handler raised StopIteration") from error
    except KeyboardInterrupt as error:
        raise interrupted(error) from error


def exited(error: SystemExit) -> RuntimeError:
    """Return the error of a handler that called `exit()`."""
    return RuntimeError(f"the handler called exit({_text(error.code)})")


def interrupted(error: KeyboardInterrupt) -> Interrupted:
    """Return the error of a handler that raised KeyboardInterrupt."""
    return Interrupted(_text(error) or "the handler raised KeyboardInterrupt")


class Report(msgspec.Struct, frozen=True):
    """A report to the server of how an attempt ended. It can be written as JSON.

    Attributes:
        operation: `ack` or `nack`.
        members: The members besides those that name the job.
    """

    operation: str
    members: dict[str, Any]


def returned(result: Any) -> Report:
    """Return the report for a handler that returned.

    Raises:
        TypeError, ValueError: JSON can't hold the result.
    """
    return Report("ack", {} if result is None else {"result": msgspec.Raw(encoded(result, "the result"))})


def not_tried_again(job: Job) -> Sequence[str]:
    """Return the names of error classes that end the job at once, by its retry policy."""
    return job.retry.non_retryable_errors


def raised(error: BaseException, non_retryable_errors: Sequence[str] = ()) -> Report:
    """Return the report for a handler that raised. This raises nothing.

    The exceptions in a group count as if each was raised by itself, however deep they are. Of several, this order
    decides: DeadLetter, Discard, a name of `non_retryable_errors`, RetryLater with the longest delay, any other error.
    A group of nothing but Snooze is put off, by the longest.

    Args:
        error: The exception.
        non_retryable_errors: Names of error classes that end the job at once.
    """
    try:
        return _raised(error, non_retryable_errors)
    except BaseException:  # noqa: BLE001  # the error's own code may do anything
        return Report("nack", {"error": {"code": "handler_error", "type": kind(error), "message": kind(error)}})


def _delay_ms(delay: Duration) -> int:
    found = milliseconds(delay)
    if found > LONGEST_MS:
        raise ValueError(f"a delay is up to ten years, not {delay!r}")
    return max(found, 1)


def without_details(report: Report, reason: str, away_ms: int) -> Report:
    """Return a smaller report, for a server that refused the whole one.

    Args:
        report: The whole report.
        reason: Why the server refused it.
        away_ms: For how long a job stays away that named a time itself: it would come at once else.
    """
    error = report.members.get("error", {})
    kept = {name: _cut(str(error[name]), _MAX_NAME) for name in ("code", "type", "action") if name in error}
    members: dict[str, Any] = {"error": {**kept, "message": _cut(f"the server refused the whole report: {reason}", _MAX_TEXT)}}
    if report.members.get("requeue"):
        members |= {"requeue": True, "retry_after_ms": away_ms}
    return Report(report.operation, members)


def _raised(error: BaseException, non_retryable_errors: Sequence[str]) -> Report:
    if isinstance(error, ShutDown):
        shutdown = {"code": "shutdown", "type": "shutdown", "message": _text(error)}
        return Report("nack", {"requeue": True, "error": shutdown})
    if isinstance(error, NoPlace):
        return Report("nack", {"requeue": True, "error": {"code": "no_place", "message": _text(error)}})
    if isinstance(error, NotHere):
        handed_back = {"code": "not_here", "message": _text(error)}
        return Report("nack", {"requeue": True, "retry_after_ms": error.delay_ms, "error": handed_back})
    ends = _ends(error)
    snoozes = [each for each in ends if isinstance(each, Snooze)]
    if len(snoozes) == len(ends):
        longest = max(snoozes, key=lambda each: each.delay_ms)
        return Report("nack", {"requeue": True, "retry_after_ms": longest.delay_ms, "error": {"message": _text(longest)}})
    if isinstance(error, TimedOut):
        return Report("nack", {"error": {"code": "timeout", "type": "timeout", "message": _text(error)}})
    if isinstance(error, FailedInProcess):
        return Report("nack", error.members)
    failure: dict[str, Any]
    if isinstance(error, Unfit):
        failure = {"code": "invalid_arguments", "type": kind(error.__cause__ or error), "message": _text(error)}
        return Report("nack", {"error": {**failure, "retryable": False}})
    if isinstance(error, Interrupted):
        return Report("nack", {"error": {"code": "handler_error", "type": "KeyboardInterrupt", "message": _text(error)}})
    failure = {
        "code": "handler_error",
        "type": kind(error),
        "message": _text(error) or kind(error),
        "details": _details(error),
        "backtrace": _backtrace(error),
    }
    for final in (DeadLetter, Discard):
        if any(isinstance(each, final) for each in ends):
            return Report("nack", {"error": {**failure, "action": final.action}})
    if isinstance(error, BaseExceptionGroup) and any(_named(each, non_retryable_errors) for each in ends):
        return Report("nack", {"error": {**failure, "retryable": False}})  # the server sees the group's class alone
    if delays := [each.delay_ms for each in ends if isinstance(each, RetryLater)]:
        return Report("nack", {"retry_after_ms": max(delays), "error": {**failure, "action": "RETRY"}})
    return Report("nack", {"error": failure})


def _ends(error: BaseException) -> list[BaseException]:
    """Return the errors in a group and in the groups in it; of another error itself alone."""
    found: list[BaseException] = []
    waiting = [error]
    while waiting:  # they may be nested deeper than calls may
        each = waiting.pop()
        if isinstance(each, BaseExceptionGroup):
            waiting += _held(each)
        else:
            found.append(each)
    return found


def _named(error: BaseException, names: Sequence[str]) -> bool:
    """Whether one of the names is that of its class, or begins it and ends in `.*` (ojs-retry §6.2)."""
    known = (kind(error), _class(error))
    return any(each.startswith(name[:-1]) if name.endswith(".*") else each == name for name in names for each in known)


def _details(error: BaseException) -> dict[str, str]:
    details = {"error_class": _class(error)}
    place = where(error)
    return details if place is None else {**details, "where": _cut(place, _MAX_TEXT)}


def _class(error: BaseException) -> str:
    return _cut(f"{type(error).__module__}.{type(error).__qualname__}", _MAX_NAME)


def kind(error: BaseException) -> str:
    """Return the name of an exception's class. This raises nothing, whatever that class does."""
    return _cut(_name(type(error)), _MAX_NAME)


def _text(error: object) -> str:
    """The text of an error, which its own code makes."""
    try:
        return _cut(str(error), _MAX_TEXT)
    except BaseException as met:  # noqa: BLE001  # that code may do anything
        return f"its text can't be made, which raises {kind(met)}"


def _backtrace(error: BaseException) -> list[str]:
    try:
        lines = traceback.format_exception(error)
    except BaseException:  # noqa: BLE001  # it asks the error for its text, too
        return []
    return [_cut(line, _MAX_FRAME) for line in lines[-_MAX_FRAMES:]]


def _cut(text: str, most: int) -> str:
    """At most so many characters of a text, all of which JSON can say."""
    kept = text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"
    return kept.encode("utf-8", "backslashreplace").decode()

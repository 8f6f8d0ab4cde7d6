"""Loggers of the client and of workers: their lines go through the standard library, as those of any package."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final, Self

from ojs_nats.worker._outcome import SoftTimeout

_PASSED_ON: Final = (KeyboardInterrupt, SystemExit, SoftTimeout)
"""The exceptions that aren't about the line: they may arrive while one is written."""
_DEEPEST: Final = 8
_LONGEST_BITS: Final = 1_000
"""The most bits of a number that is written as one: Python refuses to write very long ones."""
_CALLER: Final = 3
"""How far whoever logs is above what calls the standard library's logger."""


_of_task: Final[ContextVar[Mapping[str, Any]]] = ContextVar("ojs_nats_log_members", default=MappingProxyType({}))


def get_logger(name: str) -> Logger:
    """Return a logger whose lines go to `logging.getLogger(name)`, whatever structlog has been configured for."""
    return Logger(logging.getLogger(name), {})


class Logger:
    """A logger of lines that have members: `log.info("a receipt is sent", order=7)`.

    A record's message has the members of its line as `key=value`; a formatter finds them apart from each other in the
    record's `ojs_event` and `ojs_members`. Arguments behind the text are put into it as the standard library does it. A
    line that can't be written is dropped: nothing is raised.
    """

    __slots__ = ("_bound", "_logger")

    def __init__(self, logger: logging.Logger, bound: Mapping[str, Any]) -> None:
        self._logger = logger
        self._bound = bound

    def bind(self, /, **members: Any) -> Self:
        """Return a logger each line of which has these members as well."""
        return type(self)(self._logger, {**self._bound, **members})

    def debug(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what only developers want to know."""
        self._write(logging.DEBUG, event, args, members)

    def info(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what happens."""
        self._write(logging.INFO, event, args, members)

    def warning(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what somebody should know of."""
        self._write(logging.WARNING, event, args, members)

    def error(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what has failed."""
        self._write(logging.ERROR, event, args, members)

    def exception(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what has failed, with the traceback of the exception that is handled."""
        self._write(logging.ERROR, event, args, {"exc_info": True, **members})

    def critical(self, event: object = "", /, *args: object, **members: Any) -> None:
        """Log what ends the program."""
        self._write(logging.CRITICAL, event, args, members)

    def log(self, level: int, event: object = "", /, *args: object, **members: Any) -> None:
        """Log with a level of the standard library."""
        self._write(level, event, args, members)

    def _write(self, level: int, event: object, args: tuple[object, ...], members: dict[str, Any]) -> None:
        try:
            if self._logger.isEnabledFor(level):
                line = {**self._bound, **members}
                for name, value in members_of_all().items():
                    line.setdefault(name, value)
                passed = {name: line.pop(name) for name in ("exc_info", "stack_info") if name in line}
                text, shown = _shown(event, args, line)
                message = " ".join([text, *(f"{name}={value!r}" for name, value in shown.items())])
                extra = {"ojs_event": text, "ojs_members": shown}
                self._logger.log(level, message, extra=extra, stacklevel=_CALLER, **passed)
        except _PASSED_ON:
            raise
        except BaseException:  # noqa: BLE001  # as those that extensions raise out of `__repr__`
            return


def parts(record: logging.LogRecord) -> tuple[str, dict[str, Any]] | None:
    """Return a record's event and members, None for one that isn't of a logger of this module."""
    event, members = getattr(record, "ojs_event", None), getattr(record, "ojs_members", None)
    return (event, members) if isinstance(event, str) and isinstance(members, dict) else None


def bind_to_task(**members: Any) -> None:
    """Give all further lines of this task these members, also those of an application's own structlog."""
    _of_task.set({**_of_task.get(), **members})
    if (bind := _of_structlog("bind_contextvars")) is not None:
        bind(**members)


def members_of_all() -> Mapping[str, Any]:
    """Return the members that all lines of this task have."""
    read = _of_structlog("get_contextvars")
    return _of_task.get() if read is None else {**_of_task.get(), **read()}


def _of_structlog(name: str) -> Any:
    """Return a function of structlog's context variables, None unless the application has imported them."""
    return getattr(sys.modules.get("structlog.contextvars"), name, None)


def _shown(event: object, args: tuple[object, ...], members: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of a line and its members, as any formatter can write them."""
    text = _text(event)
    if args:
        try:
            text = _text(text % args)
        except (TypeError, ValueError, KeyError):
            members["positional_args"] = args
    return text, {_text(name): _readable(value) for name, value in members.items()}


def _readable(value: Any, depth: int = 0) -> Any:
    """Return the value as plain data that any formatter can write."""
    if value is None or type(value) in {bool, float} or (type(value) is int and value.bit_length() < _LONGEST_BITS):
        return value
    if isinstance(value, str):
        return _text(value)
    if depth < _DEEPEST:
        if type(value) in {list, tuple}:
            return [_readable(each, depth + 1) for each in value]
        if type(value) is dict:
            return {_text(name): _readable(each, depth + 1) for name, each in value.items()}
    return _text(value, repr)


def _text(value: Any, written: Any = str) -> str:
    """Return it as text that any encoding can have, without half surrogate pairs."""
    try:
        found = str.__str__(value) if isinstance(value, str) else written(value)
        return found.encode("utf-8", "backslashreplace").decode("utf-8")
    except _PASSED_ON:
        raise
    except BaseException as error:  # noqa: BLE001  # as above
        return f"<{type(value).__name__}: its text can't be had: {type(error).__name__}>"

"""Loggers of the client and of workers: their lines go through the standard library, as those of any package."""

from __future__ import annotations

import logging
from typing import Any, Final, cast

import structlog
from structlog.typing import EventDict, WrappedLogger

from ojs_nats._worker.outcome import SoftTimeout

_PASSED_ON: Final = (KeyboardInterrupt, SystemExit, SoftTimeout)
"""What isn't about the line: it may arrive while one is written."""
_DEEPEST: Final = 8
_LONGEST_BITS: Final = 1_000
"""Of a number that is written as one: Python refuses to write very long ones."""
_CALLER: Final = 3
"""How far whoever logs is above what calls the standard library's logger."""


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger whose lines go to `logging.getLogger(name)`, whatever structlog has been configured for.

    A record's message has the members of its line as `key=value`; a formatter finds them apart from each other in the record's
    `ojs_event` and `ojs_members`. A line that can't be written is dropped: nothing is raised.
    """
    made = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, structlog.contextvars.merge_contextvars, _as_record],
        wrapper_class=_Logger,
        context_class=dict,
        cache_logger_on_first_use=False,
    )
    return cast("structlog.stdlib.BoundLogger", made)


def parts(record: logging.LogRecord) -> tuple[str, dict[str, Any]] | None:
    """Return a record's event and members, None for one that isn't of a logger of this module."""
    event, members = getattr(record, "ojs_event", None), getattr(record, "ojs_members", None)
    return (event, members) if isinstance(event, str) and isinstance(members, dict) else None


def members_of_all() -> dict[str, Any]:
    """Return the members that all lines of this task have."""
    return structlog.contextvars.get_contextvars()


class _Logger(structlog.stdlib.BoundLogger):
    def _proxy_to_logger(  # type: ignore[override]  # a line may have members of those names
        self, method: str, event: str | None = None, /, *args: Any, **members: Any
    ) -> Any:
        if args:
            members["positional_args"] = args
        try:
            called, named = self._process_event(method, event, members)
            return getattr(self._logger, method)(*called, **named)
        except structlog.DropEvent:  # its level isn't wanted
            return None
        except _PASSED_ON:
            raise
        except BaseException:  # noqa: BLE001  # as those that extensions raise out of `__repr__`
            return None


def _as_record(_logger: WrappedLogger, _method: str, line: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """Return what the standard library's logger is called with."""
    event, given = _text(line.pop("event", "")), line.pop("positional_args", ())
    passed = {name: line.pop(name) for name in ("exc_info", "stack_info") if name in line}
    if given:
        try:
            event = _text(event % given)
        except (TypeError, ValueError, KeyError):
            line["positional_args"] = given
    members = {_text(name): _readable(value) for name, value in line.items()}
    message = " ".join([event, *(f"{name}={value!r}" for name, value in members.items())])
    extra = {"ojs_event": event, "ojs_members": members}
    return (message,), {**passed, "extra": extra, "stacklevel": _CALLER}


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

"""The log of `ojs-nats worker`: lines for people on a terminal, one JSON object a line elsewhere.

The client's lines, those of the standard library's loggers and an application's own of structlog come out the same
way. Passwords in URLs are masked. JSON lines have their own members and the fields of ojs-logging §5.2.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final, TextIO

from ojs_link.address import masked
from ojs_nats._logging import members_of_all, parts

_OURS: Final = "ojs_nats"
_SEVERITIES: Final = {
    "debug": ("DEBUG", 5),
    "info": ("INFO", 9),
    "warning": ("WARN", 13),
    "error": ("ERROR", 17),
    "critical": ("FATAL", 21),
}
"""Names and numbers of ojs-logging §5.4, by the standard library's."""
_COLOURS: Final = {"debug": "32", "info": "32", "warning": "33", "error": "31", "critical": "31"}
_DIM, _BRIGHT, _BLUE, _CYAN, _MAGENTA = "2", "1", "34", "36", "35"


def configure(*, instance: str, log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Set up logging for this process, to `stream` (standard output unless given).

    Other loggers of the standard library than the client's log warnings at the least.

    Args:
        instance: Which worker this is, for lines in JSON.
        log_format: `console`, `json`, or `auto`, which is `console` where `stream` is a terminal.
        level: The least that is logged: `debug`, `info`, `warning`, `error`.
        stream: Where lines go.

    """
    out = stream or sys.stdout
    terminal = out.isatty()
    console = log_format == "console" or (log_format == "auto" and terminal)
    threshold = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(out)
    handler.setFormatter(ForPeople(colours=terminal) if console else AsJson(instance))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    logging.getLogger(_OURS).setLevel(threshold)
    logging.captureWarnings(capture=True)
    if sys.modules.get("structlog"):
        _configure_structlog(threshold)
    elif "structlog" not in sys.modules:
        sys.meta_path.insert(0, _StructlogFinder(threshold))


class _StructlogFinder(MetaPathFinder):
    """A finder that has an application's structlog configured when it is imported: few use it, and it takes long."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target  # it is no part of a package
        if fullname != "structlog":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _configure_structlog(self._threshold)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this loader
        return spec


def _configure_structlog(threshold: int) -> None:
    """Have an application's lines of structlog written as the others are."""
    import structlog  # noqa: PLC0415  # an application's: this package needs none of it

    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _as_record],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=lambda *_: logging.getLogger(f"{_OURS}.application"),
        cache_logger_on_first_use=True,
    )


def _as_record(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> tuple[tuple[str, str], dict[str, Any]]:
    """Return what the standard library's logger is called with, for a line of an application's structlog."""
    passed = {name: line.pop(name) for name in ("exc_info", "stack_info") if name in line}
    event = str(line.pop("event", ""))
    return ("%s", event), {**passed, "extra": {"ojs_event": event, "ojs_members": dict(line)}}


class _Lines(logging.Formatter):
    """The part that both formats have in common."""

    def taken_apart(self, record: logging.LogRecord, timestamp: str) -> dict[str, Any]:
        """Return the members of a line, with those of all lines of its task, and what is secret masked."""
        found = parts(record)
        event, own = (record.getMessage(), {"logger": record.name}) if found is None else found
        line = {**members_of_all(), **own, "event": event, "level": record.levelname.lower(), "timestamp": timestamp}
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return {name: masked(value) if isinstance(value, str) else value for name, value in line.items()}


class AsJson(_Lines):
    """Lines for programs: each is a JSON object."""

    def __init__(self, instance: str) -> None:
        super().__init__()
        self._instance = instance

    def format(self, record: logging.LogRecord) -> str:
        timestamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds")
        line = self.taken_apart(record, timestamp.replace("+00:00", "Z"))
        severity, number = _SEVERITIES.get(line["level"], _SEVERITIES["info"])  # a library may have levels of its own
        line |= {"service": "worker", "instance": self._instance, "severity": severity, "severity_number": number}
        return json.dumps({**line, "message": line["event"], "component": "worker"}, default=repr)


class ForPeople(_Lines):
    """Lines for people: time, level, what happened, and the members by their names."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        line = self.taken_apart(record, f"{datetime.fromtimestamp(record.created).astimezone():%H:%M:%S.%f}")
        time, level, event = (line.pop(name) for name in ("timestamp", "level", "event"))
        below = [line.pop(name) for name in ("stack", "exception") if name in line]
        words = [
            self._in(_DIM, time),
            self._in(_BLUE, f"{'worker':<11}"),
            f"[{self._in(_COLOURS.get(level, _BRIGHT), f'{level:<9}')}]",
            self._in(_BRIGHT, f"{event:<30}"),
            *(f"{self._in(_CYAN, name)}={self._in(_MAGENTA, str(line[name]))}" for name in sorted(line)),
        ]
        return "\n".join([" ".join(words), *below])

    def _in(self, colour: str, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._colours else text

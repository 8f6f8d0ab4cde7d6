"""Logging of one process: lines for people on a terminal, one JSON object a line elsewhere.

Every line carries the service and the instance. The standard library's loggers (aiohttp, nats, asyncio) come out the same
way. Job payloads aren't logged by anybody, and what looks like a URL with a password is masked whoever logs it. JSON lines
have the fields of ojs-logging §5.2 beside their own.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from ojs_engine.telemetry.logs import verbosity
from ojs_link.address import masked

_SEVERITIES: Final = {
    "debug": ("DEBUG", 5),
    "info": ("INFO", 9),
    "warning": ("WARN", 13),
    "error": ("ERROR", 17),
    "critical": ("FATAL", 21),
}
"""Names and numbers of ojs-logging §5.4, by ours."""


def resolve_format(log_format: str, stream: TextIO) -> str:
    """`console` or `json`; `auto` depends on whether `stream` is a terminal."""
    return log_format if log_format != "auto" else "console" if stream.isatty() else "json"


def configure(
    *,
    service: str,
    instance: str,
    log_format: str,
    level: str,
    namespace: str | None = None,
    stream: TextIO | None = None,
    own: Sequence[str] = (),
) -> None:
    """Set up logging for this process, to `stream` (standard output unless given).

    As JSON, a server's lines name its `namespace` in NATS.
    Of the standard library's loggers those named in `own` log from `level` on, the others warnings at the least.
    """
    out = stream or sys.stdout
    console = resolve_format(log_format, out) == "console"
    threshold = logging.getLevelNamesMapping()[level.upper()]
    verbosity.debug = threshold <= logging.DEBUG

    def identify(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        if not console:
            event["instance"] = instance
            if namespace is not None:
                event["namespace"] = namespace
        return event

    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S.%f" if console else "iso", utc=not console),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        identify,
        _mask_values,
    ]
    if not console:
        shared.append(_as_specified)
    final = _console(out.isatty()) if console else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, final],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_taken_apart, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, final],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(threshold, logging.WARNING))
    for name in own:
        logging.getLogger(name).setLevel(threshold)
    logging.captureWarnings(capture=True)


def _taken_apart(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Give a line of the client library its members (`ojs_nats._logging`), and any other one the name of its logger."""
    record = event["_record"]
    if hasattr(record, "ojs_event"):
        return {**record.ojs_members, **event, "event": record.ojs_event}
    return structlog.stdlib.add_logger_name(logger, method, event)


def _mask_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if isinstance(value, str) and "@" in value:
            event[key] = masked(value)
    return event


def _as_specified(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    severity, number = _SEVERITIES.get(event["level"], _SEVERITIES["info"])  # a library may have levels of its own
    event.update(severity=severity, severity_number=number, message=event["event"], component="server")
    return event


def _console(colors: bool) -> Processor:
    styles = structlog.dev.ConsoleRenderer.get_default_column_styles(colors=colors)
    levels = structlog.dev.ConsoleRenderer.get_default_level_styles(colors=colors)
    column, key_value = structlog.dev.Column, structlog.dev.KeyValueColumnFormatter

    def plain(style: str, width: int = 0) -> structlog.dev.KeyValueColumnFormatter:
        return key_value(key_style=None, value_style=style, reset_style=styles.reset, value_repr=str, width=width)

    columns = [
        column("", key_value(styles.kv_key, styles.kv_value, styles.reset, value_repr=str)),
        column("timestamp", plain(styles.timestamp)),
        column("service", plain(styles.logger_name, width=11)),
        column("level", structlog.dev.LogLevelColumnFormatter(levels, reset_style=styles.reset, width=9)),
        column("event", plain(styles.bright, width=30)),
    ]
    return structlog.dev.ConsoleRenderer(columns=columns, exception_formatter=structlog.dev.plain_traceback)

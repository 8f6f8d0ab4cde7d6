from __future__ import annotations

import io
import json
import logging
import warnings
from typing import Any

import pytest
import structlog

from ojs_runtime import logs

pytestmark = pytest.mark.usefixtures("logging_kept")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def configured(log_format: str = "json", level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
    out = stream or io.StringIO()
    logs.configure(service="gateway", instance="host:1", log_format=log_format, level=level, stream=out)
    return out


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_lines_name_service_and_instance() -> None:
    out = configured()
    structlog.get_logger().info("ready", url="http://127.0.0.1:1")
    [line] = lines(out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "ready",
        "level": "info",
        "service": "gateway",
        "instance": "host:1",
        "url": "http://127.0.0.1:1",
        "severity": "INFO",
        "severity_number": 9,
        "message": "ready",
        "component": "server",
    }


@pytest.mark.parametrize(
    ("method", "severity", "number"),
    [("debug", "DEBUG", 5), ("info", "INFO", 9), ("warning", "WARN", 13), ("error", "ERROR", 17), ("critical", "FATAL", 21)],
)
def test_json_lines_have_the_severities_of_the_specification(method: str, severity: str, number: int) -> None:
    out = configured(level="debug")
    getattr(structlog.get_logger(), method)("x")
    getattr(logging.getLogger("aiohttp"), method)("y")
    assert {(line["severity"], line["severity_number"]) for line in lines(out)} == {(severity, number)}


def test_the_standard_librarys_loggers_come_out_the_same_way() -> None:
    out = configured()
    logging.getLogger("aiohttp.server").error("no %s", "luck")
    logging.getLogger("asyncio").info("not interesting")
    [line] = lines(out)
    assert (line["event"], line["logger"], line["service"]) == ("no luck", "aiohttp.server", "gateway")


def test_warnings_are_logged() -> None:
    out = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    [line] = lines(out)
    assert "DeprecationWarning: old" in line["event"]


def test_the_level_is_kept() -> None:
    out = configured(level="warning")
    log = structlog.get_logger()
    log.info("hidden")
    log.warning("shown")
    assert [line["event"] for line in lines(out)] == ["shown"]


def test_secrets_of_urls_are_masked_wherever_they_appear() -> None:
    out = configured()
    log = structlog.get_logger()
    log.info("at nats://u:hunter2@h", server="nats://u:hunter2@h")
    logging.getLogger("nats").error("lost nats://u:hunter2@h")
    try:
        raise ValueError("nats://u:hunter2@h")
    except ValueError:
        log.exception("failed")
    assert len(lines(out)) == 3
    assert "hunter2" not in out.getvalue()
    assert "nats://***@h" in lines(out)[2]["exception"]


def test_a_terminal_gets_lines_for_people_that_begin_with_the_service() -> None:
    out = configured("auto", stream=Terminal())
    structlog.get_logger().info("ready", url="http://127.0.0.1:1")
    assert "gateway" in out.getvalue()
    assert "\x1b[" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_anything_else_gets_json_and_a_given_format_wins() -> None:
    assert logs.resolve_format("auto", io.StringIO()) == "json"
    assert logs.resolve_format("auto", Terminal()) == "console"
    assert logs.resolve_format("json", Terminal()) == "json"
    assert logs.resolve_format("console", io.StringIO()) == "console"

"""Lines of `ojs-nats worker`."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import warnings
from typing import Any

import pytest
import structlog

from ojs_nats._command import logs
from ojs_nats._logging import get_logger

pytestmark = pytest.mark.usefixtures("logging_kept")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def configured(log_format: str = "json", level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
    out = stream or io.StringIO()
    logs.configure(instance="h:1", log_format=log_format, level=level, stream=out)
    return out


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_has_its_members_and_those_of_the_specification() -> None:
    out = configured()
    get_logger("ojs_nats.f").info("the worker runs", queues=["a", "b"], url="http://u:hunter2@h")
    get_logger("ojs_nats.f").debug("not wanted")
    [line] = lines(out)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("timestamp"))
    assert line == {
        "event": "the worker runs",
        "queues": ["a", "b"],
        "url": "http://***@h",
        "level": "info",
        "service": "worker",
        "instance": "h:1",
        "severity": "INFO",
        "severity_number": 9,
        "message": "the worker runs",
        "component": "worker",
    }


@pytest.mark.parametrize(
    ("level", "severity", "number"),
    [
        ("debug", "DEBUG", 5),
        ("info", "INFO", 9),
        ("warning", "WARN", 13),
        ("error", "ERROR", 17),
        ("critical", "FATAL", 21),
    ],
)
def test_severities_are_those_of_the_specification(level: str, severity: str, number: int) -> None:
    out = configured(level="debug")
    getattr(get_logger("ojs_nats.g"), level)("x")
    getattr(logging.getLogger("aiohttp"), level)("y")
    getattr(structlog.get_logger(), level)("z")
    assert [(line["severity"], line["severity_number"]) for line in lines(out)][-1:] == [(severity, number)]
    assert {(line["severity"], line["severity_number"]) for line in lines(out)} == {(severity, number)}


def test_a_level_of_a_library_s_own_is_written_as_information() -> None:
    out = configured()
    logging.getLogger("a.library").log(35, "odd")
    assert [(line["level"], line["severity"]) for line in lines(out)] == [("level 35", "INFO")]


def test_other_libraries_log_warnings_at_the_least_with_the_job_that_they_run_in() -> None:
    out = configured()
    with structlog.contextvars.bound_contextvars(job_id="j1"):
        logging.getLogger("an.app").warning("no %s", "luck")
        logging.getLogger("an.app").info("not interesting")
    [line] = lines(out)
    assert (line["event"], line["logger"], line["job_id"]) == ("no luck", "an.app", "j1")


def test_an_application_s_structlog_comes_out_the_same_way() -> None:
    out = configured()
    log = structlog.get_logger().bind(bound=1)
    with structlog.contextvars.bound_contextvars(job_id="j1"):
        log.info("100% done", count=2)
    log.debug("not wanted")
    [line] = lines(out)
    assert (line["event"], line["bound"], line["count"], line["job_id"]) == ("100% done", 1, 2, "j1")
    assert "logger" not in line


def test_an_application_need_not_have_structlog(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "structlog"]:
        monkeypatch.setitem(sys.modules, name, None)  # as if it weren't installed
    out = configured()
    get_logger("ojs_nats.l").bind(count=1).info("ready")
    assert [(line["event"], line["count"]) for line in lines(out)] == [("ready", 1)]


def test_tracebacks_are_a_member_and_what_is_secret_in_them_is_masked() -> None:
    out = configured()
    try:
        raise ValueError("nats://u:hunter2@h")
    except ValueError:
        get_logger("ojs_nats.h").exception("ours")
        logging.getLogger("an.app").exception("theirs at nats://u:hunter2@h")
        structlog.get_logger().exception("theirs")
    assert [line["exception"].splitlines()[-1] for line in lines(out)] == ["ValueError: nats://***@h"] * 3
    assert "hunter2" not in out.getvalue()


def test_what_json_has_not_is_written_by_its_repr() -> None:
    out = configured()
    structlog.get_logger().info("made", of={1, 2})
    assert lines(out)[0]["of"] == "{1, 2}"


def test_warnings_are_logged() -> None:
    out = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert "DeprecationWarning: old" in lines(out)[0]["event"]


def test_people_get_the_time_the_level_what_happened_and_the_members() -> None:
    out = configured("console")
    get_logger("ojs_nats.i").warning("the job failed", where="a.py:1", attempt=1)
    try:
        raise ValueError("no luck")
    except ValueError:
        get_logger("ojs_nats.i").exception("broken")
    first, second, *below = out.getvalue().splitlines()
    time = r"\d\d:\d\d:\d\d\.\d{6}"
    assert re.fullmatch(rf"{time} worker      \[warning  \] the job failed {{17}}attempt=1 where=a\.py:1", first)
    assert re.fullmatch(rf"{time} worker      \[error    \] broken {{24}}", second.ljust(len(second)))
    assert (below[0], below[-1]) == ("Traceback (most recent call last):", "ValueError: no luck")


def test_a_terminal_has_colours() -> None:
    out = configured("auto", stream=Terminal())
    get_logger("ojs_nats.j").info("ready", n=1)
    assert "[\x1b[32minfo     \x1b[0m] \x1b[1mready" in out.getvalue()
    assert "\x1b[36mn\x1b[0m=\x1b[35m1\x1b[0m" in out.getvalue()


def test_anything_else_gets_json_and_a_given_format_wins() -> None:
    for log_format, stream, begins in (
        ("auto", io.StringIO(), "{"),
        ("json", Terminal(), "{"),
        ("console", io.StringIO(), ""),
    ):
        out = configured(log_format, stream=stream)
        get_logger("ojs_nats.k").info("x")
        assert out.getvalue().startswith("{") is bool(begins)

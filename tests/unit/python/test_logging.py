"""Lines of the client and of workers, in the logging of the program that they are part of."""

from __future__ import annotations

import contextvars
import io
import logging
import sys
from typing import Any

import pytest
import structlog

from ojs_nats._logging import bind_to_task, get_logger, parts
from ojs_nats.worker import SoftTimeout
from support.python_samples import context


class Panic(BaseException):
    """As extensions raise it."""


class Unwritable:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


class Handler(logging.Handler):
    """Raises, as one does whose author didn't think of it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def emit(self, record: logging.LogRecord) -> None:
        del record
        raise self.error


def test_a_line_is_a_record_of_the_standard_library(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    get_logger("ojs_nats.a").bind(job_id="j1").info("it %s", "began", queue="email", count=2)
    [record] = caplog.records
    assert (record.name, record.levelname) == ("ojs_nats.a", "INFO")
    assert record.getMessage() == "it began job_id='j1' queue='email' count=2"
    assert parts(record) == ("it began", {"job_id": "j1", "queue": "email", "count": 2})
    assert record.funcName == "test_a_line_is_a_record_of_the_standard_library"


def test_the_program_s_logging_says_what_is_wanted(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    context().log.info("not wanted")
    get_logger("ojs_nats.b").debug("not wanted", queue="email")
    context().log.warning("wanted")
    assert [record.name for record in caplog.records] == ["ojs_nats.job"]
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("logging_kept")
def test_a_program_s_own_structlog_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    theirs = io.StringIO()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(theirs), cache_logger_on_first_use=True)
    structlog.get_logger().warning("theirs")
    get_logger("ojs_nats.c").warning("ours", count=1)
    assert caplog.messages == ["ours count=1"]
    assert "ours" not in theirs.getvalue()


def test_an_error_has_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no luck")
    except ValueError:
        get_logger("ojs_nats.d").exception("failed", count=1)
    assert "ValueError: no luck" in caplog.text


@pytest.mark.parametrize(
    "member",
    [
        Unwritable(ValueError("no")),
        Unwritable(Panic("no")),
        [{"deep": Unwritable(RecursionError())}],
        10**5000,
        "invoice-\udce9.pdf",
    ],
    ids=["error", "panic", "nested", "long number", "half a surrogate pair"],
)
def test_a_member_that_can_t_be_written_leaves_its_line(member: Any, caplog: pytest.LogCaptureFixture) -> None:
    context().log.warning("strange \udce9", member=member)
    [record] = caplog.records
    record.getMessage().encode()
    assert record.getMessage().startswith("strange \\udce9 job_id='j1' job_type='a.job' attempt=1 member=")


def test_what_refers_to_itself_can_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    endless: list[Any] = []
    endless.append(endless)
    context().log.warning("endless", member=endless)
    assert len(caplog.records) == 1


def test_arguments_that_don_t_fit_the_text_are_members(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("ojs_nats.e").warning("%d of %s", "one")
    assert caplog.messages == ["%d of %s positional_args=['one']"]


@pytest.mark.parametrize("error", [ValueError("no"), Panic("no"), BrokenPipeError()])
def test_a_handler_of_logging_that_raises_is_no_error_of_whoever_logs(error: BaseException) -> None:
    logger = logging.getLogger("ojs_nats.raising")
    handler = Handler(error)
    logger.addHandler(handler)
    try:
        get_logger("ojs_nats.raising").warning("a line")
    finally:
        logger.removeHandler(handler)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), SoftTimeout()])
def test_what_only_arrives_while_a_line_is_written_is_raised(error: BaseException) -> None:
    logger = logging.getLogger("ojs_nats.interrupted")
    handler = Handler(error)
    logger.addHandler(handler)
    try:
        with pytest.raises(type(error)):
            get_logger("ojs_nats.interrupted").warning("a line")
    finally:
        logger.removeHandler(handler)


def test_a_member_may_have_any_name(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("ojs_nats.f").bind(self=1).warning("named", event=2, level=3, args=4, name=5, message=6)
    assert caplog.messages == ["named self=1 event=2 level=3 args=4 name=5 message=6"]


def test_members_are_bound_to_a_logger_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    log = get_logger("ojs_nats.g")
    bound = log.bind(first=1, second=2)
    log.warning("without")
    bound.warning("with both", second=3)
    assert caplog.messages == ["without", "with both first=1 second=3"]


def test_each_method_has_its_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    log = get_logger("ojs_nats.h")
    for method in (log.debug, log.info, log.warning, log.error, log.critical):
        method("a line")
    log.log(25, "a line")
    assert [(record.levelno, record.funcName) for record in caplog.records] == [
        (level, "test_each_method_has_its_level") for level in (10, 20, 30, 40, 50, 25)
    ]


@pytest.mark.parametrize("theirs", [True, False], ids=["structlog imported", "not imported"])
def test_members_of_a_task_are_in_its_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, theirs: bool
) -> None:
    if not theirs:
        monkeypatch.delitem(sys.modules, "structlog.contextvars")

    def task() -> dict[str, Any]:
        bind_to_task(job_id="j1")
        bind_to_task(trace_id="t1")
        get_logger("ojs_nats.i").bind(job_id="its own").warning("a line", count=1)
        return structlog.contextvars.get_contextvars()

    seen = contextvars.copy_context().run(task)
    get_logger("ojs_nats.i").warning("of another")
    assert caplog.messages == ["a line job_id='its own' count=1 trace_id='t1'", "of another"]
    assert seen == ({"job_id": "j1", "trace_id": "t1"} if theirs else {})


def test_what_an_application_has_bound_in_structlog_is_in_its_lines(caplog: pytest.LogCaptureFixture) -> None:
    def task() -> None:
        bind_to_task(tenant="ours")
        with structlog.contextvars.bound_contextvars(tenant="theirs"):
            get_logger("ojs_nats.j").warning("a line")

    contextvars.copy_context().run(task)
    assert caplog.messages == ["a line tenant='theirs'"]

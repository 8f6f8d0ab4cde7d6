"""The log of a worker says what failed, why and where, and as much more as was asked for."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from ojs_nats import App, Job, JobContext, Snooze
from ojs_nats._logging import parts
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._execution import Execution
from ojs_nats.worker._jobs_log import JobsLog
from ojs_nats.worker._outcome import FailedInProcess, raised
from support.python_samples import Heard, context

Line = tuple[str, dict[str, Any]]


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = parts(record)
        assert found is not None
        self.lines.append(found)


@contextmanager
def kept() -> Iterator[list[Line]]:
    """What is logged of jobs in here."""
    logger, handler = logging.getLogger("ojs_nats.job"), _Kept()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


async def lines_of(handler: Callable[..., Any], *args: Any, **log: bool) -> list[Line]:
    app = App("http://localhost")
    app.job("a.job")(handler)
    attempt = Attempt(context(*args), Heard())
    execution = Execution(app, 1, 1, "w1", jobs_log=JobsLog(**log))
    with kept() as lines:
        try:
            await execution.outcome(attempt.context.job, attempt)
        finally:
            await execution.close()
    return lines


def divided(number: int) -> float:
    return 1 / number


async def divides(number: int) -> float:
    return divided(number)


def decodes(text: str) -> Any:
    return msgspec.json.decode(text, type=int)


async def snoozes() -> None:
    raise Snooze("5m", "not now")


@pytest.mark.parametrize("handler", [divided, divides])
async def test_a_failure_is_logged_with_its_message_and_its_place(handler: Callable[..., Any]) -> None:
    [(event, members)] = await lines_of(handler, 0)
    assert event == "the job failed"
    assert (members["error"], members["reason"]) == ("ZeroDivisionError", "division by zero")
    assert re.fullmatch(r"tests/unit/python/test_jobs_log.py:\d+ in divided", members["where"])
    assert (members["job_id"], members["attempt"]) == ("j1", 1)
    assert "exception" not in members


async def test_an_error_of_a_library_is_placed_where_the_application_called_it() -> None:
    import json  # noqa: PLC0415

    async def loads() -> Any:
        return json.loads("{")

    [(_, members)] = await lines_of(loads)
    assert re.search(r"test_jobs_log.py:\d+ in .*loads$", members["where"])


async def test_messages_stay_out_of_the_log_where_that_is_wanted() -> None:
    for verbose in (False, True):
        lines = await lines_of(divides, 0, messages=False, verbose=verbose)
        [failed] = [members for event, members in lines if event == "the job failed"]
        assert failed["error"] == "ZeroDivisionError"
        assert failed["where"].endswith("in divided")
        assert "division by zero" not in str(lines)


async def test_a_verbose_worker_logs_each_job_and_tracebacks() -> None:
    assert await lines_of(divides, 1) == []
    begins, ends = await lines_of(divides, 1, verbose=True)
    assert (begins[0], begins[1]["queue"]) == ("the job begins", "default")
    assert (ends[0], ends[1]["ending"]) == ("the job ends", "completed")
    assert ends[1]["seconds"] >= 0
    _, (_, failed) = await lines_of(divides, 0, verbose=True)
    assert failed["exception"].startswith("Traceback (most recent call last):")
    assert failed["exception"].endswith("ZeroDivisionError: division by zero")
    _, (event, put_off) = await lines_of(snoozes, verbose=True)
    assert (event, put_off["ending"], put_off["error"]) == ("the job ends", "handed back", "Snooze")


async def test_a_very_long_message_is_cut_in_the_log() -> None:
    async def shouts() -> None:
        raise ValueError("x" * 5_000)

    [(_, members)] = await lines_of(shouts)
    assert members["reason"] == f"{'x' * 1_000}… (4000 more characters)"


def test_a_process_s_failure_keeps_its_place() -> None:
    with pytest.raises(ZeroDivisionError) as met:
        divided(0)
    members = raised(met.value).members
    with kept() as lines:
        JobsLog().failed(context().log, 0.0, raised(FailedInProcess(members)).members["error"])
    [(_, said)] = lines
    assert said["where"].endswith("in divided")


def test_an_error_that_the_application_did_not_raise_has_no_place() -> None:
    assert "where" not in raised(ValueError("never raised")).members["error"]["details"]


@pytest.mark.parametrize(("messages", "told"), [(True, {"reason": "Expected `int`, got `str`"}), (False, {})])
async def test_a_result_that_breaks_its_handler_s_hint_is_told_once(messages: bool, told: dict[str, str]) -> None:
    app = App("http://localhost")

    @app.job("a.job")
    def wrong() -> int:
        return "secret"  # type: ignore[return-value]

    @app.job("another.job")
    def right() -> list[tuple[int, ...]]:
        return [(1, 2)]

    @app.job("no.json")
    def unwritable() -> int:
        return object()  # type: ignore[return-value]

    execution = Execution(app, 1, 1, "w1", jobs_log=JobsLog(messages=messages))
    with kept() as lines:
        for job_type in ("a.job", "a.job", "another.job", "no.json"):
            attempt = Attempt(JobContext(Job("j1", job_type, "active", attempt=1), Heard(), "w1"), Heard())
            report = await execution.outcome(attempt.context.job, attempt)
            assert report.operation == ("nack" if job_type == "no.json" else "ack")
    await execution.close()
    misfits = [members for line, members in lines if line.startswith("the handler's result isn't of its hint's type")]
    assert [{name: member for name, member in each.items() if name == "reason"} for each in misfits] == [told]


def _computes(ctx: JobContext) -> None:
    """A handler that runs in a process, where one can be started."""


async def test_that_no_process_can_be_started_is_a_warning_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    app = App("http://localhost")
    app.job("a.job", runs_in="process")(_computes)
    attempt = Attempt(context(), Heard())
    execution = Execution(app, 1, 1, "w1")
    with kept() as lines:
        report = await execution.outcome(attempt.context.job, attempt)
        await execution.close()
    [(event, members)] = lines
    assert event == "the job is handed back: this worker can't run it"
    assert "no process can be started" in members["reason"]
    assert "/nowhere/python" in members["reason"]
    assert report.members["requeue"]

"""What a handler's end means for its job."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import msgspec
import pytest

from ojs_nats import Snooze
from ojs_nats.worker import DeadLetter, Discard, RetryLater
from ojs_nats.worker._outcome import Report, ShutDown, TimedOut, Unfit, raised, returned


def error_of(report: Report) -> dict[str, Any]:
    assert report.operation == "nack"
    error: dict[str, Any] = report.members["error"]
    return error


def test_a_result_is_json() -> None:
    assert returned(None) == Report("ack", {})
    assert returned({"day": date(2026, 11, 23)}) == Report("ack", {"result": msgspec.Raw(b'{"day":"2026-11-23"}')})
    with pytest.raises(TypeError):
        returned(object())


def test_an_error_says_what_it_was() -> None:
    try:
        raise KeyError("name")
    except KeyError as error:
        told = error_of(raised(error))
    assert (told["type"], told["message"]) == ("KeyError", "'name'")
    assert told["details"]["error_class"] == "builtins.KeyError"
    place = r"tests/unit/python/test_outcome.py:\d+ in test_an_error_says_what_it_was"
    assert re.fullmatch(place, told["details"]["where"])
    assert "test_outcome.py" in "".join(told["backtrace"])
    assert "action" not in told


@pytest.mark.parametrize(("error", "action"), [(Discard("no"), "DISCARD"), (DeadLetter("no"), "DEAD_LETTER")])
def test_a_handler_decides_what_is_to_come(error: Exception, action: str) -> None:
    assert error_of(raised(error))["action"] == action


def test_a_handler_says_when_its_job_goes_on() -> None:
    put_off = raised(Snooze("10m"))
    assert put_off.members == {"requeue": True, "retry_after_ms": 600_000, "error": {"message": "put off"}}
    later = raised(RetryLater("5s", "busy"))
    assert (later.members["retry_after_ms"], error_of(later)["action"], error_of(later)["message"]) == (5_000, "RETRY", "busy")
    with pytest.raises(ValueError, match="a duration is written like"):
        Snooze("soon")


def nested(*errors: Exception) -> Exception:
    return ExceptionGroup("outer", [ExceptionGroup("inner", [each]) for each in errors])


@pytest.mark.parametrize(
    ("errors", "members"),
    [
        ([Discard("no")], {"action": "DISCARD"}),
        ([ValueError(), Discard("no"), Snooze("1s"), RetryLater("1s")], {"action": "DISCARD"}),
        ([Discard("no"), DeadLetter("no"), ValueError()], {"action": "DEAD_LETTER"}),
        ([Discard("no"), LookupError()], {"action": "DISCARD"}),
        ([LookupError(), RetryLater("1s")], {"retryable": False}),
        ([RetryLater("5s"), ValueError(), RetryLater("7s"), Snooze("9s")], {"action": "RETRY", "retry_after_ms": 7_000}),
        ([Snooze("5s"), ValueError()], {}),
        ([Snooze("5s"), Snooze("7s")], {"requeue": True, "retry_after_ms": 7_000}),
    ],
)
@pytest.mark.parametrize("group", [lambda *errors: ExceptionGroup("one", errors), nested])
def test_errors_mean_the_same_in_a_group(errors: list[Exception], members: dict[str, Any], group: Any) -> None:
    for order in (errors, errors[::-1]):
        report = raised(group(*order), ["builtins.LookupError"])
        told = error_of(report) | report.members
        names = ("action", "retryable", "requeue", "retry_after_ms")
        assert {name: told[name] for name in names if name in told} == members


def test_a_group_may_be_nested_deeper_than_calls() -> None:
    deep: Exception = Discard("no")
    for _ in range(3_000):
        deep = ExceptionGroup("deeper", [deep])
    assert error_of(raised(deep))["action"] == "DISCARD"


def test_a_worker_that_stops_hands_back() -> None:
    report = raised(ShutDown("bye"))
    assert report.members["requeue"] is True
    assert error_of(report)["type"] == "shutdown"


def test_time_outs_and_wrong_arguments() -> None:
    assert error_of(raised(TimedOut("too long")))["type"] == "timeout"
    try:
        raise Unfit("two, not one") from TypeError()
    except Unfit as unfit:
        told = error_of(raised(unfit))
    assert (told["type"], told["message"], told["retryable"]) == ("TypeError", "two, not one", False)

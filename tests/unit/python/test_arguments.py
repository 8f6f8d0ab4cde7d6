"""A job's args are its handler's parameters, in order."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from ojs_nats import JobContext
from ojs_nats._arguments import Parameters


async def greet(ctx: JobContext, name: str, greeting: str = "Hello", times: int = 1) -> str:
    return f"{greeting}, {name} ({ctx.attempt})" * times


def total(first: int, *more: int) -> int:
    return first + sum(more)


def on(day: date, /, anything: Any = None) -> date:
    return anything or day


def test_the_context_is_no_argument() -> None:
    assert Parameters(greet).takes_context
    assert not Parameters(total).takes_context
    assert Parameters(greet).returns is str


@pytest.mark.parametrize(
    ("args", "kwargs", "listed"),
    [
        (("Ada",), {}, ("Ada",)),
        ((), {"name": "Ada"}, ("Ada",)),
        (("Ada",), {"greeting": "Hi"}, ("Ada", "Hi")),
        (("Ada",), {"times": 2}, ("Ada", "Hello", 2)),
        (("Ada", "Hi", 3), {}, ("Ada", "Hi", 3)),
    ],
)
def test_a_call_becomes_a_list(args: tuple[Any, ...], kwargs: dict[str, Any], listed: tuple[Any, ...]) -> None:
    assert Parameters(greet).listed(args, kwargs) == listed


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), (("a", "b", 1, 2), {}), (("a",), {"nome": "b"})])
def test_a_call_that_python_would_refuse_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Parameters(greet).listed(args, kwargs)


def test_what_a_job_brings_is_converted() -> None:
    assert Parameters(on).converted(["2026-11-23", {"a": 1}]) == [date(2026, 11, 23), {"a": 1}]
    assert Parameters(total).converted([1, 2, 3]) == [1, 2, 3]
    assert Parameters(greet).converted(["Ada"]) == ["Ada"]


@pytest.mark.parametrize(
    ("handler", "sent", "said"),
    [
        (greet, [], "takes 1 to 3 arguments, and the job has 0"),
        (greet, ["a", "b", 1, 2], "takes 1 to 3 arguments, and the job has 4"),
        (total, [], "takes 1 to any number arguments"),
        (greet, [1], r"args\[0\]: Expected `str`, got `int`"),
        (total, [1, "two"], r"args\[1\]: Expected `int`, got `str`"),
        (on, ["today"], r"args\[0\]: Invalid RFC3339"),
    ],
)
def test_what_doesn_t_fit_is_named(handler: Any, sent: list[Any], said: str) -> None:
    with pytest.raises((TypeError, msgspec.ValidationError), match=said):
        Parameters(handler).converted(sent)


def test_what_can_t_be_given_in_order_is_refused_where_it_is_written() -> None:
    def named(*, only: int) -> None: ...

    def whatever(**more: int) -> None: ...

    for handler in (named, whatever):
        with pytest.raises(TypeError, match="a job's arguments are a list"):
            Parameters(handler)

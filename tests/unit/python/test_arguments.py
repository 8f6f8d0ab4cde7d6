"""A job's args are its handler's parameters, in order."""

from __future__ import annotations

import enum
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import msgspec
import pytest

from ojs_nats import App, Depends, JobContext
from ojs_nats._arguments import Parameters
from ojs_nats.worker._outcome import Unfit
from support.python_samples import context

if TYPE_CHECKING:
    from somewhere import Elsewhere  # type: ignore[import-not-found]


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


@pytest.mark.parametrize(
    ("handler", "sent", "newer"),
    [(greet, ["a", "b", 1, 2], True), (greet, [], False), (greet, [1], False), (total, [1, "two"], False)],
)
def test_a_job_with_more_arguments_is_of_a_newer_producer(handler: Any, sent: list[Any], newer: bool) -> None:
    with pytest.raises(Unfit) as raised:
        Parameters(handler).given(context(*sent))
    assert raised.value.newer is newer


def test_what_can_t_be_given_in_order_is_refused_where_it_is_written() -> None:
    def named(*, only: int) -> None: ...

    def whatever(**more: int) -> None: ...

    for handler in (named, whatever):
        with pytest.raises(TypeError, match="a job's arguments are a list"):
            Parameters(handler)


class Size(enum.IntEnum):
    SMALL = 1


class Model:
    """Something that no JSON is."""


@dataclass
class Order:
    of: Model


def keyed(by_number: dict[int, str], by_size: dict[Size, str] | None = None, by_id: dict[UUID, int] | None = None) -> None: ...


def test_keys_that_aren_t_texts_come_back_as_they_were() -> None:
    args = ({1: "a"}, {Size.SMALL: "s"}, {UUID(int=7): 1})
    assert Parameters(keyed).listed(args, {}) == args
    sent = msgspec.json.decode(msgspec.json.encode(args))
    assert sent[0] == {"1": "a"}
    assert Parameters(keyed).converted(sent) == list(args)


@pytest.mark.parametrize(
    ("handler", "args", "said"),
    [
        (total, (True,), r"total: 'first' isn't what the worker could read by its hint: Expected `int`, got `bool`"),
        (total, (1, 2, True), r"'more' isn't what"),
        (on, (datetime(2026, 11, 23, tzinfo=UTC),), r"'day' isn't what .*date"),
        (greet, (5,), r"'name' isn't what the worker .*Expected `str`, got `int`"),
        (greet, (object(),), r"name can't be written as JSON"),
        (on, (date(2026, 11, 23), {("a", 1): 1}), r"anything has the key \('a', 1\)"),
    ],
)
def test_what_the_worker_could_not_read_is_refused_at_the_push(handler: Any, args: tuple[Any, ...], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Parameters(handler).listed(args, {})


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": {"b": float("-inf")}}, "\udce9"])
def test_what_json_can_t_hold_is_refused_at_the_push(value: Any) -> None:
    with pytest.raises(ValueError, match="which JSON can't hold"):
        Parameters(on).listed((date(2026, 11, 23), value), {})


class Greeter:
    async def __call__(self, name: str) -> str:
        return name


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("handler", [generator, async_generator])
def test_a_handler_is_no_generator(handler: Any) -> None:
    with pytest.raises(TypeError, match="can't be a generator"):
        Parameters(handler)


@pytest.mark.parametrize("handler", [Greeter(), functools.partial(total, 1), Greeter])
def test_a_handler_is_a_function(handler: Any) -> None:
    with pytest.raises(TypeError, match="a job's handler is a function, so write one that calls this"):
        App("http://127.0.0.1:1").job("greet")(handler)


def test_hints_that_no_json_fits_are_refused_where_they_are_written() -> None:
    def of_model(one: int, what: Model) -> None: ...
    def of_optional(what: Model | None = None) -> None: ...
    def of_list(what: list[Order]) -> None: ...
    def of_call(what: Callable[[], int]) -> None: ...
    def of_path(what: Path) -> None: ...
    def of_union(what: str | date) -> None: ...
    def of_keys(what: dict[tuple[int, int], str]) -> None: ...
    def of_flags(what: dict[bool, str]) -> None: ...
    def of_rest(*what: Model) -> None: ...

    for handler in (of_model, of_optional, of_list, of_call, of_path, of_union, of_keys, of_flags, of_rest):
        with pytest.raises(TypeError, match=rf"{handler.__name__}: the hint of 'what' can't be filled from JSON: .*Hint what"):
            Parameters(handler)

    def returning() -> Model: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match=r"returning: the hint of what it returns can't be filled"):
        Parameters(returning)


def test_hints_that_json_fits_are_fine() -> None:
    def endless() -> NoReturn:
        raise SystemExit

    def nested(tree: Tree, anything: object, whatever: Any, rest: Order2 | None = None) -> dict[int, Tree]: ...  # type: ignore[empty-body]

    assert Parameters(endless).returns is Any
    assert Parameters(nested).converted([{"below": [{"below": []}]}, 1, 2]) == [Tree([Tree([])]), 1, 2]


@dataclass
class Tree:
    below: list[Tree]


class Order2(msgspec.Struct):
    amount: int


def test_a_context_in_a_wrong_place_is_refused_where_it_is_written() -> None:
    def second(one: int, ctx: JobContext) -> None: ...
    def twice(ctx: JobContext, ctx2: JobContext) -> None: ...
    def by_name(*, ctx: JobContext) -> None: ...
    def many(*ctx: JobContext) -> None: ...
    def by_names(**ctx: JobContext) -> None: ...
    def optional(ctx: JobContext | None) -> None: ...

    for handler in (second, twice, by_name, many, by_names, optional):
        with pytest.raises(TypeError, match="can't be given the running job: only a handler's first parameter is"):
            Parameters(handler)


def test_a_hint_that_can_t_be_resolved_is_named_with_what_helps() -> None:
    def handler(one: int, what: Elsewhere) -> None: ...
    def provider(ctx: JobContext, what: Elsewhere = None) -> int: ...  # type: ignore[empty-body]

    said = r"the hint 'Elsewhere' of 'what' can't be resolved \(NameError: .*\): import what it names outside of `if TYPE_CH"
    with pytest.raises(TypeError, match="handler: " + said):
        Parameters(handler)
    with pytest.raises(TypeError, match="provider: " + said):
        Depends(provider)


def test_a_provider_is_given_what_it_needs_by_name() -> None:
    def provider(ctx: JobContext, /) -> int: ...  # type: ignore[empty-body]

    with pytest.raises(TypeError, match="'ctx' can't be by position alone"):
        Depends(provider)


def test_a_job_may_be_named_by_its_function() -> None:
    app = App("http://127.0.0.1:1")

    @app.job
    def tidy_up(ctx: JobContext, folder: str) -> None: ...

    @app.job(queue="slow")
    async def tidy_all() -> None: ...

    assert (tidy_up.type, tidy_up.job("a").args) == ("tidy_up", ("a",))
    assert (tidy_all.type, tidy_all.job().queue) == ("tidy_all", "slow")
    assert [*app.definitions] == ["tidy_up", "tidy_all"]
    with pytest.raises(ValueError, match="tidy_up has a handler already"):
        app.job(tidy_up.handler)

    def _private() -> None: ...

    with pytest.raises(ValueError, match=r"a job type is one or more words .*not '_private'"):
        app.job(_private)

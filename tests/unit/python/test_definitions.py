"""A definition is its function: it is called, shown, documented and pickled as that."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import pydoc
from datetime import UTC, datetime
from typing import Any

import pytest

from ojs_nats import App, JobContext, Retry, Unique
from ojs_nats.definitions import AsyncContextDefinition, AsyncDefinition, PlainContextDefinition, PlainDefinition
from ojs_nats.jobs import JobRequest

app = App("http://127.0.0.1:1")
decorate: Any = app.job
"""The same, for what no type checker lets pass."""


@app.job("definitions.add", queue="math", retry=Retry(5))
def add(first: int, second: int = 2, *more: int) -> int:
    """Add numbers up."""
    return first + second + sum(more)


@app.job("definitions.greet")
async def greet(ctx: JobContext, name: str) -> str:
    """Greet somebody."""
    return f"{ctx} greets {name}"


@app.job("definitions.add_again")
@app.job("definitions.add_more")
def add_more(first: int, second: int) -> int:
    return first + second


def logged(function: Any) -> Any:
    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called


@app.job("definitions.logged")
@logged
def shout(text: str) -> str:
    return text.upper()


class Jobs:
    @app.job("definitions.static")
    @staticmethod
    def double(number: int) -> int:
        return number * 2


async def test_it_is_called_as_its_function() -> None:
    context: Any = "ada"
    assert add(1) == 3
    assert add(1, 2, 3, 4) == 10
    assert await greet(context, "bob") == "ada greets bob"
    assert shout("quiet") == "QUIET"
    assert Jobs.double(4) == Jobs().double(4) == 8
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        add()  # type: ignore[call-arg]


def test_it_has_the_function_s_name_docstring_and_signature() -> None:
    assert (add.__name__, add.__qualname__, add.__module__) == ("add", "add", __name__)
    assert inspect.getdoc(add) == "Add numbers up."
    assert str(inspect.signature(add)) == "(first: 'int', second: 'int' = 2, *more: 'int') -> 'int'"
    assert add.__wrapped__ is add.handler
    assert inspect.unwrap(shout)("a") == "A"
    shown = pydoc.plain(pydoc.render_doc(add))
    assert "add(first: 'int', second: 'int' = 2, *more: 'int')" in shown
    assert "Add numbers up." in shown
    assert repr(add) == f"<job definitions.add: {__name__}.add>"


def test_it_is_pickled_and_copied_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(add)) is add
    assert copy.copy(add) is copy.deepcopy(add) is add
    changed = pickle.loads(pickle.dumps(add.options(priority=5)))
    assert changed.defaults == {"queue": "math", "retry": Retry(5), "priority": 5}
    assert changed.job(1).options["priority"] == 5


def test_a_function_has_several_types() -> None:
    assert {each.handler for each in (app.definitions["definitions.add_again"], app.definitions["definitions.add_more"])} == {
        inspect.unwrap(add_more)
    }
    assert add_more(1, 2) == 3


def test_options_are_those_of_the_copy_alone() -> None:
    when = datetime(2026, 11, 28, tzinfo=UTC)
    assert add.options(priority=5).later("5m").job(1).options == {
        "queue": "math",
        "retry": Retry(5),
        "priority": 5,
        "delay": "5m",
    }
    assert add.later(when).job(1).options["scheduled_at"] == when
    assert add.options(unique=Unique()).job(1, 2) != add.job(1, 2)
    assert add.job(1).options == {"queue": "math", "retry": Retry(5)}
    assert isinstance(add.job(1, 2, 3), JobRequest)
    assert add.job(1, 2, 3).args == (1, 2, 3)


class Adder:
    def __call__(self, number: int) -> int:
        return number

    def add(self, number: int) -> int:
        return number

    @classmethod
    def made(cls, number: int) -> int:
        return number


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (Adder.add, "a job brings no 'self', so a method can't be its handler: write a function"),
        (Adder.__dict__["made"], "a job brings no class, so write a function, or a staticmethod"),
        (Adder(), "a job's handler is a function, so write one that calls this"),
        (Adder, "a job's handler is a function, so write one that calls this"),
        (functools.partial(add, 1), "a job's handler is a function, so write one that calls this"),
    ],
    ids=["method", "classmethod", "object", "class", "partial"],
)
def test_what_no_job_can_call_is_refused(handler: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        decorate("definitions.refused")(handler)
    assert "definitions.refused" not in app.definitions


def test_a_bound_method_is_called_with_its_object() -> None:
    kept = Adder()
    assert decorate("definitions.bound")(kept.add)(3) == 3


def test_frameworks_see_a_coroutine_function() -> None:
    assert inspect.iscoroutinefunction(inspect.unwrap(greet))
    running = greet(None, "bob")  # type: ignore[arg-type]
    assert inspect.iscoroutine(running)
    running.close()


async def in_loop(name: str) -> str:
    return name


def with_context(ctx: JobContext, name: str) -> str:
    return f"{ctx} {name}"


def test_a_definition_is_of_the_class_that_type_checkers_know() -> None:
    kinds: dict[type[Any], Any] = {
        AsyncContextDefinition: greet,
        AsyncDefinition: app.job("definitions.in_loop")(in_loop),
        PlainContextDefinition: app.job("definitions.with_context")(with_context),
        PlainDefinition: add,
    }
    assert {type(definition): definition for definition in kinds.values()} == kinds
    assert [kind for kind, definition in kinds.items() if type(definition.options(priority=5)) is not kind] == []


def test_a_time_out_that_ends_the_handler_before_its_warning_is_refused_for_a_push_as_well() -> None:
    warned = app.job("definitions.warned", timeout="30s", soft_timeout="25s")(_nothing)
    assert warned.options(timeout="26s").job().options["timeout"] == "26s"
    with pytest.raises(ValueError, match="soft_timeout '25s' has to be shorter than timeout '20s'"):
        warned.options(timeout="20s")


def _nothing() -> None: ...

"""Each example in a docstring of a public module does what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType

import pytest

import ojs_nats
from ojs_nats import App

_FENCED = re.compile(r"```python\n(.*?)```", re.DOTALL)


def _modules() -> Iterator[str]:
    """Yield the modules of the package: private ones define what public ones show."""
    yield "ojs_nats"
    yield from (
        module.name for module in pkgutil.walk_packages(ojs_nats.__path__, "ojs_nats.") if "__main__" not in module.name
    )


MODULES = sorted(_modules())


def _examples(module: ModuleType) -> list[doctest.DocTest]:
    return [test for test in doctest.DocTestFinder().find(module) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_prints_what_it_says(name: str) -> None:
    for test in _examples(importlib.import_module(name)):
        said: list[str] = []
        outcome = doctest.DocTestRunner().run(test, out=said.append)
        assert outcome.failed == 0, "".join(said)


@pytest.mark.parametrize("name", MODULES)
def test_an_example_that_needs_a_server_is_python(name: str) -> None:
    module = importlib.import_module(name)
    documented = [
        module.__doc__ or "",
        *(test.docstring or "" for test in doctest.DocTestFinder(exclude_empty=False).find(module)),
    ]
    for text in documented:
        for program in _FENCED.findall(inspect.cleandoc(text)):
            ast.parse(textwrap.dedent(program))


def test_the_first_classes_that_a_reader_meets_have_an_example() -> None:
    lacking = [
        name
        for name in ("App", "Client", "Retry", "Unique", "RateLimit", "Depends", "Worker", "chain", "verify_webhook")
        if "Example:" not in (getattr(ojs_nats, name).__doc__ or "")
    ]
    assert lacking == []


def test_help_of_app_is_a_page_to_send_to_a_colleague(capsys: pytest.CaptureFixture[str]) -> None:
    help(App)
    page = capsys.readouterr().out
    parts = ("Args:", "Attributes:", "Raises:", "Example:", "url:", "token:", "retry_for:", "tls:", "Returns:")
    assert [part for part in parts if part not in page] == []
    methods = ("job(", "lifespan(", "close(", "client", "sync", "enqueue", "execution")
    assert [method for method in methods if method not in page] == []
    assert "| None" in page, "a reader sees the types of the arguments"
    assert page.index("An application") < page.index("Args:") < page.index("Example:") < page.index("job(")


def test_help_of_a_definition_begins_with_the_functions_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    app = App("http://127.0.0.1:8080")

    @app.job("math.add")
    def add(a: int, b: int) -> int:
        """Return the sum."""
        return a + b

    help(add)
    page = capsys.readouterr().out
    assert "Return the sum." in page
    assert "(a: 'int', b: 'int')" in page

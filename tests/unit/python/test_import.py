"""What `import ojs_nats` does, and doesn't."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ojs_nats
import ojs_nats.testing
import ojs_nats.worker

BEFORE = """\
import contextlib, importlib, json, logging, pkgutil, sys

before, odd = set(sys.modules), []


def note(event, args):
    if event == "open" and not str(args[0]).endswith((".py", ".pyc", ".so")):
        odd.append(f"{args[0]} is opened")
    elif event == "_thread.start_new_thread" or event.startswith(("socket.", "subprocess.", "os.fork")):
        odd.append(event)


sys.addaudithook(note)


def everything():
    import ojs_nats, ojs_nats.testing, ojs_nats.worker

    for module in pkgutil.iter_modules(ojs_nats.__path__, "ojs_nats."):
        if not module.name.startswith("ojs_nats._"):
            importlib.import_module(module.name)
    for package in (ojs_nats, ojs_nats.testing, ojs_nats.worker):
        for name in package.__all__:
            getattr(package, name)
    return ojs_nats


"""
AFTER = """
loggers = [each for each in logging.root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
odd += [f"{each.name} is configured" for each in loggers if each.handlers or each.level]
odd += ["logging is configured"] if logging.root.handlers or logging.root.level != logging.WARNING else []
print(json.dumps({"modules": sorted(set(sys.modules) - before), "odd": odd}))
"""
MAKES = """
everything().App("http://h"), everything().Client("http://h")
"""
ASKS = """
import asyncio

with contextlib.suppress(everything().OjsError):
    asyncio.run(everything().Client("http://127.0.0.1:1", retry_for=0).system.health())
"""
PUBLIC = {"msgspec", "ojs_api", "ojs_link", "ojs_nats"}
"""The packages that importing all that is public brings."""

LAZY = (ojs_nats, ojs_nats.testing, ojs_nats.worker)
lazy = pytest.mark.parametrize("package", LAZY, ids=["ojs_nats", "testing", "worker"])
"""The packages whose names are imported when they are used."""


def names_for_type_checkers(package: ModuleType) -> dict[str, str]:
    """Return the names that a package imports for type checkers alone, each with its module."""
    tree = ast.parse(inspect.getsource(package))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    lines = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    return {each.asname or each.name: str(line.module) for line in lines for each in line.names}


@functools.cache
def after(code: str) -> dict[str, Any]:
    """Return which modules a new process has imported by some code, and what it did that an import has no use for."""
    command = [sys.executable, "-I", "-B", "-c", BEFORE + code + AFTER]  # -B: it writes no compiled modules
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def packages(code: str) -> set[str]:
    """Return the packages that some code imports beside those of the standard library."""
    found = {name.partition(".")[0] for name in after(code)["modules"]} - sys.stdlib_module_names
    own = {name for name in found if not name.startswith("_")}  # others are parts of the interpreter and of Cython
    return own - {"cython_runtime", "typing_extensions"}  # msgspec imports the latter where it is installed


def test_importing_the_package_imports_nothing_else() -> None:
    assert set(after("import ojs_nats")["modules"]) <= {"__future__", "ojs_nats"}


def test_importing_all_that_is_public_reads_no_files_and_starts_nothing() -> None:
    assert after("everything()")["odd"] == []


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("everything()", set()),
        (MAKES, set()),
        ('everything().Client("https://h")', set()),
        ('everything().Client("nats://h")', {"nats", "aiohttp"}),  # nats-py imports aiohttp where it is installed
        (ASKS, {"aiohttp"}),
    ],
    ids=["names", "http made", "https made", "nats made", "http used"],
)
def test_packages_are_imported_when_they_are_needed(code: str, more: set[str]) -> None:
    assert packages(code) == PUBLIC.union(*(packages(f"import {name}") for name in sorted(more)))


@lazy
def test_each_public_name_is_there_when_it_is_used(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    assert [name for name in package.__all__ if getattr(package, name).__name__ != name] == []


@lazy
def test_type_checkers_see_the_names_that_are_there(package: ModuleType) -> None:
    seen = names_for_type_checkers(package)
    assert sorted(seen) == sorted(package.__all__)
    defined = {name: getattr(importlib.import_module(place), name) for name, place in seen.items()}
    assert [name for name, value in defined.items() if getattr(package, name) is not value] == []


@lazy
def test_a_name_that_is_none_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Aap'"):
        _ = package.Aap


def test_modules_by_subject_are_attributes_of_the_package() -> None:
    public = [path.stem for path in Path(ojs_nats.__path__[0]).iterdir() if path.suffix in {".py", ""}]
    named = sorted(name for name in public if not name.startswith("_"))
    code = f"import ojs_nats; print(*[getattr(ojs_nats, name).__name__ for name in {named}])"
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [f"ojs_nats.{name}" for name in named]

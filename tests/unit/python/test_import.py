"""What `import ojs_nats` does, and doesn't."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import ojs_nats
import ojs_nats.testing
import ojs_nats.worker

lazy = pytest.mark.parametrize("package", [ojs_nats, ojs_nats.testing, ojs_nats.worker], ids=["ojs_nats", "testing", "worker"])
"""The packages whose names are imported when they are used."""


def names_for_type_checkers(package: ModuleType) -> dict[str, str]:
    """Return the names that a package imports for type checkers alone, each with its module."""
    tree = ast.parse(inspect.getsource(package))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    lines = [line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom)]
    return {each.asname or each.name: str(line.module) for line in lines for each in line.names}


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import ojs_nats; print(*sorted(set(sys.modules) - before))"
    said = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(said.stdout.split()) <= {"__future__", "ojs_nats"}


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

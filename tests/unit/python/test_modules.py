"""The modules of the package know each other in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import ojs_nats

PACKAGE: Final = Path(ojs_nats.__file__).parent
LAZY: Final = {
    "ojs_nats": "its names are imported when they are used",
    "ojs_nats.testing": "its names are imported when they are used",
    "ojs_nats.worker": "its names are imported when they are used",
    "ojs_nats._connections": "aiohttp, which takes long to import, is there for what speaks HTTP alone",
    "ojs_nats._http": "aiohttp, which takes long to import, is there for what speaks HTTP alone",
    "ojs_nats.testing.plugin": "pytest imports it in every project of the environment",
    "ojs_nats.worker._worker": "a worker without a port for its health needs neither aiohttp's server nor prometheus_client",
}
"""The modules that import others of the package for type checkers alone, each with why: to import less, never for a circle."""


def name_of(file: Path) -> str:
    return ".".join(("ojs_nats", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


FILES: Final = {name_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}
PUBLIC: Final = [name for name in FILES if not any(part.startswith("_") for part in name.split("."))]
"""Public by their names; `ojs_nats.__main__` isn't imported."""


def imported(tree: ast.AST) -> set[str]:
    """Return the modules of the package that are imported anywhere in a tree."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {within if (within := f"{node.module}.{each.name}") in FILES else node.module for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return found & FILES.keys()


def for_type_checkers(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from node.body


def circles(imports: Mapping[str, set[str]]) -> list[str]:
    """Return the modules that import themselves by way of others."""

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        left = [name]
        while left:
            new = imports[left.pop()] - found
            found |= new
            left += new
        return found

    return [name for name in imports if name in reached(name)]


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Neither when it is imported nor for type checkers, nor within its functions."""
    assert circles({name: imported(ast.parse(file.read_text(encoding="utf-8"))) for name, file in FILES.items()}) == []


def test_a_circle_is_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]


def test_modules_import_others_for_type_checkers_alone_only_to_import_less() -> None:
    trees = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}
    alone = {name for name, tree in trees.items() if any(imported(statement) for statement in for_type_checkers(tree))}
    assert alone == LAZY.keys()


def test_each_public_module_can_be_imported_first() -> None:
    code = """
import importlib, sys
for name in sys.argv[1:]:
    for known in [known for known in sys.modules if known.partition(".")[0] == "ojs_nats"]:
        del sys.modules[known]
    try:
        importlib.import_module(name)
    except Exception as error:
        print(name, repr(error))
"""
    said = subprocess.run([sys.executable, "-I", "-c", code, *PUBLIC], capture_output=True, text=True, check=True)
    assert said.stdout == ""
    assert len(PUBLIC) > 40

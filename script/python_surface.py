"""Writes tests/unit/python/surface.txt: what the public modules of ojs_nats have, with its signatures.

`.venv/bin/python script/python_surface.py`; with `--check` it writes nothing, and fails if the file isn't as it would be.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))
from script.python_package import ROOT, Function, definition, exported, keep, modules, name_of, statements

WRITTEN: Final = ROOT / "tests" / "unit" / "python" / "surface.txt"
SHOWN: Final = {"__init__", "__call__"}
"""The methods with underscores that others call by another way of writing."""


def surface() -> str:
    """Return all of the file."""
    return "\n".join(line for name in modules() for line in ["", name, *of_module(name)])[1:] + "\n"


def of_module(module: str) -> Iterator[str]:
    """Yield the lines of a module: the names of its `__all__`, and what they are unless another public module has them."""
    for name, place in sorted(exported(module).items()):
        if place != module and (place in modules() or module == "ojs_nats"):
            yield f"    {name}"
            continue
        for node in definition(place, name, stub=True):
            yield from of_class(node) if isinstance(node, ast.ClassDef) else [f"    {written(node)}"]


def of_class(kind: ast.ClassDef) -> Iterator[str]:
    """Yield the lines of a class: its members, and the attributes that its `__init__` sets."""
    bases = ", ".join(ast.unparse(each) for each in [*kind.bases, *kind.keywords])
    decorators = "".join(f"@{ast.unparse(each)} " for each in kind.decorator_list)
    yield f"    {decorators}class {kind.name}" + (f"({bases})" if bases else "")
    members = [node for node in statements(kind.body) if not name_of(node).startswith("_") or name_of(node) in SHOWN]
    named = {name_of(node) for node in members}
    lines = [(name_of(node), written(node)) for node in members]
    lines += [(name, f"self.{name}") for name in set(attributes(kind)) - named if not name.startswith("_")]
    yield from (f"        {line}" for _, line in sorted(lines, key=lambda each: each[0]))


def attributes(kind: ast.ClassDef) -> Iterator[str]:
    made = [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    for node in (each for method in made for each in ast.walk(method)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def written(node: ast.stmt) -> str:
    """Return a definition in a line, without its body."""
    if not isinstance(node, Function):
        return ast.unparse(node)
    decorators = "".join(f"@{ast.unparse(each)} " for each in node.decorator_list)
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{decorators}{word} {node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    keep(WRITTEN, surface())

"""Writes tests/unit/python/surface.txt: what the public modules of ojs_nats have, with its signatures.

`.venv/bin/python script/python_surface.py`; with `--check` it writes nothing, and fails if the file isn't as it would be.
It is read from the source, so that it is the same for each Python.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "shared" / "ojs_nats"
WRITTEN: Final = ROOT / "tests" / "unit" / "python" / "surface.txt"
SHOWN: Final = {"__init__", "__call__"}
"""The methods with underscores that others call by another way of writing."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    made = surface()
    if "--check" not in sys.argv:
        WRITTEN.write_text(made, encoding="utf-8")
    elif WRITTEN.read_text(encoding="utf-8") != made:
        sys.exit(f"{WRITTEN.relative_to(ROOT)} isn't current: run script/python_surface.py")


def surface() -> str:
    """Return all of the file."""
    return "\n".join(line for name, file in modules().items() for line in ["", name, *of_module(file)])[1:] + "\n"


def modules() -> dict[str, Path]:
    """Return the public modules: no part of their names has an underscore in front. A stub is read in place of its module."""
    found: dict[str, Path] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = ("ojs_nats", *file.relative_to(PACKAGE).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if not any(part.startswith("_") for part in parts):
            stub = file.with_suffix(".pyi")
            found[".".join(parts)] = stub if stub.exists() else file
    return dict(sorted(found.items()))


def of_module(file: Path) -> Iterator[str]:
    """Yield the lines of a module: what it gives from others by its `__all__`, and what it defines."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    lists = [node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    exported = {str(name) for each in lists for name in ast.literal_eval(each)}
    defined = sorted(filter(public, statements(body)), key=name_of)
    yield from (f"    {name}" for name in sorted(exported - set(map(name_of, defined))))
    for node in defined:
        yield from of_class(node) if isinstance(node, ast.ClassDef) else [f"    {written(node)}"]


def of_class(kind: ast.ClassDef) -> Iterator[str]:
    """Yield the lines of a class: its members, and the attributes that its `__init__` sets."""
    bases = ", ".join(ast.unparse(each) for each in [*kind.bases, *kind.keywords])
    decorators = "".join(f"@{ast.unparse(each)} " for each in kind.decorator_list)
    yield f"    {decorators}class {kind.name}" + (f"({bases})" if bases else "")
    members = [node for node in statements(kind.body) if public(node) or name_of(node) in SHOWN]
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


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that give a name to something, also those for type checkers alone; of overloads, these."""
    overloaded = {node.name for node in body if isinstance(node, Function) and is_overload(node)}
    for node in body:
        if name_of(node) in overloaded and not is_overload(node):
            continue
        if isinstance(node, ast.If):
            yield from statements(node.body if ast.unparse(node.test) == "TYPE_CHECKING" else node.orelse)
        elif name_of(node):
            yield node


def is_overload(node: ast.stmt) -> bool:
    return isinstance(node, Function) and any(ast.unparse(each) == "overload" for each in node.decorator_list)


def name_of(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            return ""


def public(node: ast.stmt) -> bool:
    variable = isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(
        ("TypeVar(", "ParamSpec(", "typing_extensions.")
    )
    return not name_of(node).startswith("_") and not variable and name_of(node) not in {"TYPE_CHECKING", "log"}


def written(node: ast.stmt) -> str:
    """Return a definition in a line, without its body."""
    if not isinstance(node, Function):
        return ast.unparse(node)
    decorators = "".join(f"@{ast.unparse(each)} " for each in node.decorator_list)
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{decorators}{word} {node.name}({ast.unparse(node.args)}){returns}"


if __name__ == "__main__":
    main()

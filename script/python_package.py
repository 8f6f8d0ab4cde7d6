"""What the public modules of ojs_nats have, read from their source, so that it is the same for each Python."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec

from ojs_api import words

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "shared" / "ojs_nats"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def keep(file: Path, made: str) -> None:
    """Write a file; with `--check`, only fail if it isn't as it would be."""
    if "--check" not in sys.argv:
        file.write_text(made, encoding="utf-8")
    elif file.read_text(encoding="utf-8") != made:
        sys.exit(f"{file.relative_to(ROOT)} isn't current: run {sys.argv[0]}")


@cache
def modules() -> tuple[str, ...]:
    """Return the public modules: no part of their names has an underscore in front."""
    files = (file.relative_to(PACKAGE).with_suffix("").parts for file in PACKAGE.rglob("*.py"))
    named = (("ojs_nats", *(part for part in parts if part != "__init__")) for parts in files)
    return tuple(sorted(".".join(parts) for parts in named if not any(part.startswith("_") for part in parts)))


@cache
def tree(module: str, *, stub: bool = False) -> ast.Module:
    """Return the source of a module, or of its stub if it has one and that is asked for."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    files = (*([path.with_suffix(".pyi")] if stub else []), path.with_suffix(".py"), path / "__init__.py")
    source = ast.parse(next(file for file in files if file.exists()).read_text(encoding="utf-8"))
    spelt: ast.Module = _Spelt().visit(_as_read(module, source) if module.startswith("ojs_api.") else source)
    return ast.fix_missing_locations(spelt)


class _Spelt(ast.NodeTransformer):
    """Writes the lists of `ojs_api.words` out, so that who reads of a parameter sees what it may be."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id == "words"):
            return self.generic_visit(node)
        given = ast.Tuple([ast.Constant(word) for word in get_args(getattr(words, node.attr))])
        return ast.Subscript(ast.Name("Literal"), given)


def _as_read(module: str, source: ast.Module) -> ast.Module:
    """Return a module of the contract as its readers know it: types without notes, and their descriptions in docstrings."""
    for node in source.body:
        kind = getattr(importlib.import_module(module), node.name) if isinstance(node, ast.ClassDef) else None
        if not (isinstance(node, ast.ClassDef) and isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            continue
        node.bases = [base for base in node.bases if ast.unparse(base) != "OpenAnswer"] or [ast.Name("Struct")]
        node.keywords = [each for each in node.keywords if each.arg != "omit_defaults"]
        hints, notes = get_type_hints(kind), get_type_hints(kind, include_extras=True)
        about: list[str] = []
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                name = field.target.id
                field.annotation = ast.parse(_shown(hints[name]), mode="eval").body
                about += [f"    {name}: {said}" for said in re.findall(r"description='(.*?)'[,)]", repr(notes[name]))[:1]]
        if about:
            said = "\n".join([ast.get_docstring(node) or "", "", "Attributes:", *about])
            node.body[0] = ast.Expr(ast.Constant(said))
    return source


def _shown(hint: Any) -> str:
    """Return a type as it is written where its names are imported."""
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", re.sub(r"typing\.Optional\[(.*)\]", r"\1 | None", str(hint)))


def exported(module: str) -> dict[str, str]:
    """Return the names of a module's `__all__`, in the order of their definitions, each with the module that defines it."""
    body = tree(module).body
    lists = [node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    names = [str(name) for each in lists for name in ast.literal_eval(each)]
    defined = list(dict.fromkeys(name_of(node) for node in statements(body)))
    brought = {each.name: node.module or "" for node in imports(body) for each in node.names}
    found: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (defined.index(name) if name in defined else -1, name)):
        found[name] = module if name in defined else home(brought[name], name)
    return found


def home(module: str, name: str) -> str:
    """Return the module that defines a name which another one has."""
    body = tree(module).body
    if any(name_of(node) == name for node in statements(body)):
        return module
    return next(home(node.module or "", name) for node in imports(body) if name in {each.name for each in node.names})


def definition(module: str, name: str, *, stub: bool = False) -> list[ast.stmt]:
    """Return what defines a name of a module: of overloads each."""
    return [node for node in statements(tree(module, stub=stub).body) if name_of(node) == name]


def imports(body: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imports(node.body)


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

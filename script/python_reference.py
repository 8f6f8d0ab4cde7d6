"""Writes docs/reference/python.md, the reference of the Python package, from its docstrings.

`.venv/bin/python script/python_reference.py`; with `--check` it only fails if the page isn't current.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))
from script.python_package import (
    ROOT,
    Documented,
    Function,
    definition,
    exported,
    is_overload,
    keep,
    modules,
    tree,
)

WRITTEN: Final = ROOT / "docs" / "reference" / "python.md"
WIDTH: Final = 100

# Each section: its title, and the modules whose names it has.
SECTIONS: Final = {
    "Apps and definitions": ("app", "definitions"),
    "Jobs and their options": ("options", "jobs"),
    "Clients": ("client", "sync"),
    "Workflows": ("workflows", "operations.workflows"),
    "Operations": tuple(
        f"operations.{name}"
        for name in (
            *("jobs", "queues", "dead_letters", "crons", "events", "workers", "webhooks", "schemas", "rate_limits", "pools"),
            *("keys", "system"),
        )
    ),
    "Workers": ("worker", "dependencies"),
    "Middleware": ("chains", "middleware"),
    "Webhooks and TLS": ("webhooks", "tls"),
    "Errors": ("errors",),
    "Testing": ("testing", "testing.plugin"),
    "Models": tuple(
        f"models.{name}"
        for name in (
            *("jobs", "queues", "statistics", "dead_letters", "crons", "events", "workflows", "workers", "webhooks"),
            *("schemas", "rate_limits", "pools", "keys", "system"),
        )
    ),
}
CALLED: Final = {"Events": "client.events", "JobDefinition": "send_email"}
"""How an example calls an instance."""
ABOUT: Final = (
    'Durations are seconds (`30`, `0.5`), a text (`"30s"`, `"1h30m"`) or a `timedelta`. '
    "Times are `datetime`s with a time zone. "
    "Methods that begin with `async` are awaited; a method that returns an `AsyncIterator` is used with `async for`. "
    "`SyncClient` and its handles have the same methods without either."
)
SECTION: Final = re.compile(r"^(Args|Attributes|Returns|Raises|Example):$", re.MULTILINE)


def page() -> str:
    """Return the page in Markdown."""
    contents = "\n".join(f"- [{title}](#{_anchor(title)})" for title in SECTIONS)
    sections = "\n\n".join("\n\n".join([f"## {title}", *_section(modules)]) for title, modules in SECTIONS.items())
    return f"""\
# The Python package

{wrapped("All public names of `ojs_nats`, by subject. [Python](../python.md) is the guide.")}

{contents}

{wrapped(ABOUT)}

{sections}

This page is made by `script/python_reference.py`.
"""


def _section(sources: tuple[str, ...]) -> Iterator[str]:
    for module in (f"ojs_nats.{name}" for name in sources):
        if module.startswith("ojs_nats.models."):
            yield f"### `{module}`\n\n{wrapped(ast.get_docstring(tree(module)) or '')}"
        for name, place in exported(module).items():
            if place != module and place in modules():
                continue
            node = definition(place, name)[0]
            if isinstance(node, Documented):
                yield from _thing(module, node)


def _thing(module: str, node: Documented) -> Iterator[str]:
    if module.startswith("ojs_nats.models."):
        assert isinstance(node, ast.ClassDef)
        yield f"#### {node.name}\n\n{_model(node)}"
        return
    yield f"### {node.name}"
    yield f"`from {_place(module, node.name)} import {node.name}`"
    if isinstance(node, ast.ClassDef) and module == "ojs_nats.errors":
        yield f"A subclass of `{ast.unparse(node.bases[0])}`."
    if not isinstance(node, ast.ClassDef):
        yield _signature(node, node.name)
        yield from _documented(node, {})
        return
    made = _function(node, "__init__")
    yield from _documented(node, _fields(node) | (_types(made) | _defaults(made) if made else {}))
    for method in _methods(node):
        yield f"#### {node.name}()" if method.name == "__call__" else f"#### {node.name}.{method.name}"
        if not _is_property(method):
            yield _signature(method, CALLED.get(node.name, node.name) if method.name == "__call__" else method.name)
        elif method.returns is not None:
            yield f"A property: `{ast.unparse(method.returns)}`."
        yield from _documented(method, {})


def _model(node: ast.ClassDef) -> str:
    said, parts = _parts(node)
    explained = dict(_items(parts.get("Attributes", "")))
    bases = [ast.unparse(base) for base in node.bases if "Struct" not in ast.unparse(base)]
    fields = _fields(node)
    plain = [f"`{name}: {kind}`" for name, kind in fields.items() if name not in explained]
    items = [_item(f"`{name}: {fields[name]}`", what) for name, what in explained.items()]
    also = [f"It has the members of `{bases[0]}`, too."] if bases else []
    listed = [wrapped(f"Members: {', '.join(plain)}.")] if plain else []
    return "\n\n".join([wrapped(said), *also, *listed, *(["\n".join(items)] if items else [])])


def _documented(node: Documented, types: dict[str, str]) -> Iterator[str]:
    said, parts = _parts(node)
    yield wrapped(said)
    for title, text in parts.items():
        match title:
            case "Args" | "Attributes":
                if title == "Attributes" and "Args" in parts:
                    yield "Attributes:"
                known = types if title == "Args" or "Args" not in parts else {}
                yield "\n".join(_item(f"`{name}`{_typed(known.get(name))}", what) for name, what in _items(text))
            case "Raises":
                yield "Raises:"
                listed = ((f"`{'`, `'.join(names.split(', '))}`", what) for names, what in _items(text))
                yield "\n".join(_item(names, what) for names, what in listed)
            case "Returns":
                begins = text[0].lower() if re.match(r"(A|An|The) ", text) else text[0]
                yield wrapped(f"Returns: {begins}{text[1:]}")
            case _:
                yield from _example(text)


def _example(text: str) -> Iterator[str]:
    if text.startswith("```"):
        yield text
        return
    for part in text.split("\n\n"):
        yield f"```pycon\n{part}\n```" if part.startswith(">>>") else wrapped(part)


# Docstrings


def _parts(node: Documented) -> tuple[str, dict[str, str]]:
    """Return the beginning of a docstring, and its sections by their titles."""
    head, *rest = SECTION.split(ast.get_docstring(node) or "")
    return head.strip(), {
        title: textwrap.dedent(text.strip("\n")).strip() for title, text in zip(rest[::2], rest[1::2], strict=True)
    }


def _items(text: str) -> Iterator[tuple[str, str]]:
    for item in re.split(r"\n(?! )", text) if text else []:
        name, _, what = item.partition(": ")
        yield name, " ".join(what.split())


def _item(name: str, what: str) -> str:
    text = linked(f"{name}: {what}" if what else name)
    return _filled(text, "- ", "  ")


def _typed(kind: str | None) -> str:
    return f" (`{kind}`)" if kind else ""


def wrapped(text: str) -> str:
    """Return the paragraphs of a text in lines of the page's width; what isn't a paragraph stays."""
    parts = text.split("\n\n")
    kept = ("- ", "```")
    return "\n\n".join(part if part.startswith(kept) else _filled(" ".join(linked(part).split())) for part in parts)


def _filled(text: str, first: str = "", others: str = "") -> str:
    wrapper = textwrap.TextWrapper(
        WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(text)


def linked(text: str) -> str:
    """Return the text with links to the pages that it names."""
    return re.sub(r"docs/([\w-]+)\.md", r"[\1](../\1.md)", text)


# What is read


def _place(module: str, name: str) -> str:
    """Return the module to import a name from, the shortest that has it."""
    return "ojs_nats" if name in exported("ojs_nats") and "operations" not in module else module


def _methods(kind: ast.ClassDef) -> Iterator[Function]:
    for node in kind.body:
        if not isinstance(node, Function) or is_overload(node):
            continue
        if not node.name.startswith("_") or (node.name == "__call__" and "next" not in _types(node)):
            yield node


def _function(kind: ast.ClassDef, name: str) -> Function | None:
    return next((node for node in kind.body if isinstance(node, Function) and node.name == name), None)


def _fields(kind: ast.ClassDef) -> dict[str, str]:
    return {
        node.target.id: _valued(ast.unparse(node.annotation), node.value)
        for node in kind.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_")
    }


def _valued(kind: str, default: ast.expr | None) -> str:
    return kind if default is None or isinstance(default, ast.Call) else f"{kind} = {ast.unparse(default)}"


def _defaults(function: Function) -> dict[str, str]:
    """Return the types of the arguments that have a default, with it."""
    given = function.args
    ordered = [*given.posonlyargs, *given.args]
    pairs: list[tuple[ast.arg, ast.expr | None]] = [*zip(ordered[::-1], given.defaults[::-1], strict=False)]
    pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return {each.arg: _valued(ast.unparse(each.annotation), value) for each, value in pairs if each.annotation is not None}


def _types(function: Function) -> dict[str, str]:
    given = function.args
    stars = [each for each in (given.vararg, given.kwarg) if each is not None]
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *stars]
    return {each.arg: ast.unparse(each.annotation) for each in every if each.annotation is not None}


def _signature(function: Function, name: str) -> str:
    arguments = ast.unparse(function.args)
    arguments = re.sub(r"^self(, /)?(, )?", "", arguments)
    arguments = re.sub(r"(?<=[\w\]])=(?=\S)", " = ", arguments)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns is not None else ""
    awaited = isinstance(function, ast.AsyncFunctionDef) and not returns.startswith(" -> Async")
    begins = "async " if awaited else ""
    line = f"{begins}{name}({arguments}){returns}"
    if len(line) > WIDTH:
        parts = ",\n".join(f"    {part}" for part in _split(arguments))
        line = f"{begins}{name}(\n{parts},\n){returns}"
    return f"```text\n{line}\n```"


def _split(arguments: str) -> list[str]:
    """Return the arguments of a signature one by one."""
    found, depth = [""], 0
    for each in arguments:
        depth += (each in "[({") - (each in "])}")
        if each == "," and depth == 0:
            found.append("")
        else:
            found[-1] += each
    return [part.strip() for part in found]


def _is_property(function: Function) -> bool:
    return any(ast.unparse(each) in {"property", "cached_property"} for each in function.decorator_list)


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    keep(WRITTEN, page())

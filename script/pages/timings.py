"""The reference of all durations, for the documentation.

`python -m script.pages.timings > docs/reference/timings.md` renews it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields

from ojs_link.timings import Timings

ROOT: Final = Path(__file__).parents[2]
_SPANS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def structs() -> Iterator[type[Timings]]:
    """Return every struct of durations in the product, in the order of their modules."""
    for top in ("shared", "services"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if "Timings, frozen=True" in path.read_text(encoding="utf-8"):
                module = import_module(".".join(path.relative_to(ROOT / top).with_suffix("").parts))
                found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Timings)]
                yield from (one for one in found if one.__module__ == module.__name__)


def meanings(struct: type[Timings]) -> dict[str, str]:
    """Return what stands under each member of a struct; nothing for one that says nothing."""
    (tree,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target)
            found[name] = ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = " ".join(str(node.value.value).split())
    return {name: said for name, said in found.items() if name in struct.__struct_fields__}


def reference() -> str:
    """The page in Markdown, made from the structs."""
    sections = "\n".join(map(_section, structs()))
    return f"""\
# Timings

How long everything waits, is kept, or is relied upon: one table for each component, with the values of
its struct. Only tests give a component others. What an operator may set is among the
[settings](settings.md). An order (≤) is asserted where the struct is made; of the usual values alone
where tests shorten one of the two.

{sections}
This page is made by `python -m script.pages.timings`.
"""


def _section(struct: type[Timings]) -> str:
    said = meanings(struct)
    rows = [f"| `{one.name}` | {_value(one.name, one.default)} | {said[one.name]} |" for one in fields(struct)]
    orders = [f"- `{shorter}` ≤ `{longer}`: {reason}." for shorter, longer, reason in (*struct.order, *struct.usual)]
    about = " ".join((struct.__doc__ or "").split())
    lines = [f"## {struct.__name__}", "", f"{about} (`{struct.__module__}`)", ""]
    lines += ["| Name | Value | Meaning |", "|---|---|---|", *rows, "", *([*orders, ""] if orders else [])]
    return "\n".join(lines)


def _value(name: str, value: Any) -> str:
    if isinstance(value, Timings):
        return f"[{type(value).__name__}](#{type(value).__name__.lower()})"
    unit = name.rpartition("_")[2]
    if unit not in ("s", "ms"):
        return "none" if value == () else f"{value:,}"
    text = ", ".join(f"{one:,g}" if one < 1 else f"{one:,.10g}" for one in (value if isinstance(value, tuple) else (value,)))
    seconds = 0 if isinstance(value, tuple) else value / (1_000 if unit == "ms" else 1)
    span = next((f" ({seconds / length:g} {span})" for length, span in _SPANS if seconds and not seconds % length), "")
    return f"{text} {unit}{span}"


if __name__ == "__main__":
    sys.stdout.write(reference())

"""Drawings of the imports between packages, for the documentation.

`python -m script.pages.imports > docs/reference/imports.md` renews it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[2]
Arrows = Mapping[str, frozenset[str]]
"""The names that each name imports, itself left out."""


def packages(root: Path = ROOT) -> list[str]:
    """Return the packages below `shared` and `services`."""
    return sorted(found.parent.name for top in ("shared", "services") for found in (root / top).glob("*/__init__.py"))


def arrows(graph: grimp.ImportGraph, name: Callable[[str], str | None]) -> Arrows:
    """Return the imports between groups of modules.

    Args:
        graph: The imports of all modules.
        name: Gives the group of a module, None for a module outside of the drawing.
    """
    found: dict[str, set[str]] = {}
    for module in sorted(graph.modules):
        if (here := name(module)) is not None:
            there = {name(other) for other in graph.find_modules_directly_imported_by(module)}
            found.setdefault(here, set()).update(one for one in there if one is not None and one != here)
    return {here: frozenset(there) for here, there in found.items()}


def reduced(drawn: Arrows) -> Arrows:
    """Return the arrows without those that a way through others implies. Arrows of a circle stay."""
    return {here: frozenset(one for one in there if not _around(drawn, here, one)) for here, there in drawn.items()}


def _around(drawn: Arrows, here: str, there: str) -> bool:
    """Whether a way leads from one name to another that isn't the arrow between both."""
    seen: set[str] = {here}
    rest = [one for one in drawn[here] if one != there]
    while rest:
        one = rest.pop()
        if one == there:
            return True
        if one not in seen:
            seen.add(one)
            rest.extend(drawn.get(one, ()))
    return False


def mermaid(drawn: Arrows) -> str:
    """Return arrows as a flowchart."""
    return "\n".join(["```mermaid", "flowchart TD", *_lines(drawn), "```"])


def _lines(drawn: Arrows) -> Iterator[str]:
    for here, there in sorted(drawn.items()):
        yield from (f"    {here} --> {one}" for one in sorted(there))
        if not there:
            yield f"    {here}"


def page() -> str:
    """Return the page in Markdown."""
    every = packages()
    graph = grimp.build_graph(every[0], *every[1:], cache_dir=None)
    rooms = arrows(graph, _feature)
    alone = "\n".join(f"- `{name}`" for name, there in sorted(rooms.items()) if not there)
    pairs = {name: there for name, there in rooms.items() if there}
    return f"""\
# Imports

Who imports whom, drawn from the code. An arrow that a way through others implies is left out.
[Architecture](../architecture.md#layers) says what belongs into each layer.

## Packages

{mermaid(reduced(arrows(graph, lambda module: module.partition(".")[0])))}

## Folders of the engine

{mermaid(reduced(arrows(graph, lambda module: _part(module, "ojs_engine"))))}

## Features

Features that import no other one:

{alone}

{mermaid(pairs) if pairs else "No feature imports another one."}
"""


def _feature(module: str) -> str | None:
    """Return the feature that a module belongs to."""
    name = _part(module, "ojs_features")
    return None if name in {"all", "context", "plug", "startup"} else name


def _part(module: str, package: str) -> str | None:
    """Return the folder or file of a package that a module belongs to."""
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] or None if top == package else None


if __name__ == "__main__":
    sys.stdout.write(page())

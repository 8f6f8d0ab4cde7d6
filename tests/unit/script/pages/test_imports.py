from __future__ import annotations

from pathlib import Path

import grimp

from script.pages.imports import arrows, mermaid, page, reduced

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "imports.md"


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m script.pages.imports > docs/reference/imports.md"


def test_groups_of_modules_import_each_other() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a.one", "b.one"), ("a.one", "a.two"), ("b.one", "c.one"), ("a.two", "other")):
        graph.add_import(importer=importer, imported=imported)
    found = arrows(graph, lambda module: None if module == "other" else module.partition(".")[0])
    assert found == {"a": {"b"}, "b": {"c"}, "c": set()}


def test_an_arrow_that_a_way_implies_is_left_out_and_a_circle_is_not() -> None:
    drawn = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset("")}
    assert reduced(drawn) == {"a": {"b"}, "b": {"c"}, "c": frozenset()}
    circle = {"a": frozenset("b"), "b": frozenset("a")}
    assert reduced(circle) == circle


def test_a_flowchart_has_names_without_arrows() -> None:
    assert mermaid({"a": frozenset("b"), "b": frozenset()}).splitlines() == [
        "```mermaid",
        "flowchart TD",
        "    a --> b",
        "    b",
        "```",
    ]

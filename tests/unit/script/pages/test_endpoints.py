from __future__ import annotations

import re
from pathlib import Path

from script.pages.endpoints import INSTEAD, own_description, reference, specification

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "endpoints.md"


def test_the_page_says_what_is_served_now() -> None:
    renewed = "run: python -m script.pages.endpoints > docs/reference/endpoints.md"
    assert PAGE.read_text(encoding="utf-8") == reference(own_description()), renewed


def test_every_operation_of_the_specification_is_served_or_says_what_there_is_for_it() -> None:
    _, _, page = reference(own_description()).partition("## Of the specification")
    table, _, beyond = page.partition("## Beyond it")
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    operations = specification().operations
    assert [row.split("`")[1] for row in rows] == [name for name, _, _ in operations]
    assert {row.split("`")[1] for row in rows if "| no; " in row} == set(INSTEAD)
    assert f"{len(rows) - len(INSTEAD)} of {len(rows)} operations are served" in table
    more = {line.split("`")[1] for line in beyond.splitlines() if line.startswith("| `")}
    assert more.isdisjoint(f"{method} {path}" for _, method, path in operations)


def test_operations_of_the_specification_have_its_ids() -> None:
    paths = {re.sub(r"\{\w+\}", "{}", path): methods for path, methods in own_description()["paths"].items()}
    for name, method, path in specification().operations:
        if name not in INSTEAD:
            assert paths[re.sub(r"\{\w+\}", "{}", path)][method.lower()]["operationId"] == name


def test_an_operation_that_is_no_longer_served_shows() -> None:
    described = own_description()
    del described["paths"]["/ojs/v1/jobs/batch"]
    INSTEAD["createJobBatch"] = "single pushes"
    try:
        assert "| `createJobBatch` | `POST /ojs/v1/jobs/batch` | no; single pushes |" in reference(described)
    finally:
        del INSTEAD["createJobBatch"]


def test_what_is_there_in_test_mode_only_is_left_out() -> None:
    described = own_description()
    described["paths"]["/ojs/v1/x"] = {"get": {"summary": "X", "tags": ["System"], "x-test-mode-only": True}}
    assert "/ojs/v1/x" not in reference(described)


def test_each_operation_beyond_the_specification_is_listed_once() -> None:
    _, _, beyond = reference(own_description()).partition("## Beyond it")
    rows = [line for line in beyond.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in row.replace(",", "|").split("|")[1:2]]
    assert len(names) == len(set(names))
    assert any("POST /ojs/v1/workers/fail" in row and "POST /ojs/v1/jobs/{job_id}/fail" in row for row in rows)

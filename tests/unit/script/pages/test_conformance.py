from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from conformance.verdicts import Ran, differences
from script.pages.conformance import Conformance, conformance, page
from script.pages.endpoints import own_description

DOCS = Path(__file__).parents[4] / "docs"
KNOWN = conformance()


def test_the_page_says_what_is_known() -> None:
    renewed = "run: python -m script.pages.conformance > docs/conformance.md"
    assert (DOCS / "conformance.md").read_text(encoding="utf-8") == page(KNOWN), renewed


def test_each_document_is_listed_once_and_its_page_is_there() -> None:
    names = [document.name for document in KNOWN.documents]
    assert len(names) == len(set(names)) == 55
    for document in KNOWN.documents:
        assert (DOCS / document.page).is_file() or not document.page, document.name


def test_what_is_missing_in_part_is_said() -> None:
    for document in KNOWN.documents:
        assert document.lacks or document.status != "in part", document.name
        assert document.status == "served" or not document.extension, document.name


def test_operations_that_are_named_are_described_and_those_that_are_absent_are_not() -> None:
    described = {f"{method.upper()} {path}" for path, methods in own_description()["paths"].items() for method in methods}
    for document in KNOWN.documents:
        assert set(document.operations) <= described, document.name
        assert described.isdisjoint(document.absent), document.name
        assert document.absent or document.status != "not served" or document.lacks or not document.suites, document.name


def test_each_folder_has_as_many_cases_as_it_names_and_more() -> None:
    assert {entry.suite for entry in KNOWN.failing} <= set(KNOWN.suites.cases)
    cases = [(entry.suite, case) for entry in KNOWN.failing for case in entry.cases]
    assert len(cases) == len(set(cases))
    for suite, number in KNOWN.suites.cases.items():
        assert 0 <= KNOWN.failures(suite) <= number
        assert KNOWN.passed(suite) == number - KNOWN.failures(suite)


@pytest.fixture
def known() -> Conformance:
    """One case of one folder is listed as failing."""
    return replace(KNOWN, failing=(replace(KNOWN.failing[0], suite="level-0-core", cases=("listed",)),))


def test_a_verdict_that_differs_from_the_page_is_told(known: Conformance) -> None:
    cases = [
        Ran(file="level-0-core/a/listed.json", passed=True),
        Ran(file="level-0-core/a/other.json", passed=False),
        Ran(file="level-1-reliable/listed.json", passed=True),
    ]
    assert differences(cases, known) == [
        "level-0-core/a/listed.json passes, and is listed as failing",
        "level-0-core/a/other.json fails, and isn't listed",
    ]
    agreeing = [Ran(file="level-0-core/a/listed.json", passed=False), Ran(file="level-0-core/a/other.json", passed=True)]
    assert differences(agreeing, known) == []

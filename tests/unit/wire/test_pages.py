from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.wire.members import members
from ojs_engine.wire.pages import Page, pagination, parse_page


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, Page(20, number=1)),
        ({"per_page": "100", "page": "3"}, Page(100, offset=200, number=3)),
        ({"per_page": "101"}, Page(100, number=1)),
        ({"limit": "150"}, Page(150, number=1)),
        ({"limit": "900", "cursor": "c"}, Page(200, "c")),
        ({"limit": "0"}, Page(1, number=1)),
    ],
)
def test_the_admin_api_counts_pages(query: dict[str, str], expected: Page) -> None:
    assert parse_page(query, numbered=True) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, Page(50)),
        ({"per_page": "150", "page": "2"}, Page(150, offset=150, number=2)),
        ({"offset": "7", "limit": "5"}, Page(5, offset=7)),
    ],
)
def test_other_lists_do_if_they_are_asked_to(query: dict[str, str], expected: Page) -> None:
    assert parse_page(query) == expected


def test_a_page_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(OjsError) as refused:
        parse_page({"per_page": "many"})
    assert refused.value.details["field"] == "per_page"


@pytest.mark.parametrize(
    ("query", "field"),
    [({"offset": "5001"}, "offset"), ({"page": "252", "per_page": "20"}, "page"), ({"page": "9999999999"}, "page")],
)
def test_a_page_that_is_too_deep_is_not_taken_for_another(query: dict[str, str], field: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_page(query)
    assert refused.value.details["field"] == field
    assert parse_page({"offset": "5000"}).offset == parse_page({"page": "251", "per_page": "20"}).offset == 5_000


def test_what_is_left_out_is_not_known() -> None:
    shown = members(pagination(Page(2, number=1), None, None))
    assert shown == {
        "limit": 2,
        "offset": 0,
        "has_more": False,
        "page": 1,
        "per_page": 2,
    }

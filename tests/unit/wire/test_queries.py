from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.wire.pages import parse_page
from ojs_engine.wire.queries import parse_queries


def test_parameters_are_read_as_browsers_write_them() -> None:
    found = parse_queries("queue=a+b&type=%C3%A9&empty=&bare&x=1=2&%63=d")
    assert found == {"queue": "a b", "type": "é", "empty": "", "bare": "", "x": "1=2", "c": "d"}
    assert found.doubled == set()
    assert parse_queries("") == {}


def test_values_of_one_name_are_put_together_and_the_name_is_known() -> None:
    found = parse_queries("types=a,b&limit=1&types=c&types=")
    assert (found, found.doubled) == ({"types": "a,b,c,", "limit": "1"}, {"types"})


@pytest.mark.parametrize("text", ["a=%E9", "%FF=1", "a=%ED%A0%80", "&".join(["a=1"] * 101)])
def test_what_is_no_text_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(OjsError, match="is a query string in UTF-8 of at most 100 members") as refused:
        parse_queries(text, "OJS-Parameters")
    assert refused.value.details["field"] == "OJS-Parameters"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("page=2&cursor=x", "page"),
        ("page=1&offset=10", "page"),
        ("limit=10&per_page=20", "per_page"),
        ("limit=10&per_page=10", None),
        ("page=2&per_page=10", None),
        ("page=&cursor=x", None),
        ("page=1&offset=", None),
        ("limit=&per_page=20", None),
    ],
)
def test_a_page_begins_in_one_place_and_has_one_size(text: str, field: str | None) -> None:
    if field is None:
        parse_page(parse_queries(text))
        return
    with pytest.raises(OjsError, match="leave one of both out") as refused:
        parse_page(parse_queries(text))
    assert refused.value.details["field"] == field

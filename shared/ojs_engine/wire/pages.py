"""Paging of lists: what a client asks for in the query string, and the `pagination` member (ojs-http-binding §17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from ojs_api import pages as contract
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number

DEFAULT_PAGE: Final = contract.DEFAULT_PAGE
MAX_PAGE: Final = contract.MAX_PAGE
ADMIN_PAGE: Final = contract.ADMIN_PAGE
MAX_NUMBERED: Final = contract.MAX_NUMBERED
MAX_OFFSET: Final = contract.MAX_OFFSET
_LARGEST: Final = 10**9


Pagination = contract.Pagination


class Page(Struct, frozen=True):
    """`number` is set when the client counts pages (`page`, `per_page`); it then gets them counted in the answer, too."""

    limit: int = DEFAULT_PAGE
    cursor: str | None = None
    offset: int = 0
    number: int | None = None


def parse_page(query: Mapping[str, str], *, numbered: bool = False, default: int | None = None) -> Page:
    """`limit`, `cursor` and `offset`, or `page` and `per_page` (JS SDK, admin UI). More than the largest page is that page.

    Raises invalid_request for what begins deeper than `MAX_OFFSET`: a page that is no deeper would be taken for that one.

    `numbered` is for lists that count pages unless a cursor or an offset is given.
    """
    standard = (ADMIN_PAGE if numbered else DEFAULT_PAGE) if default is None else default
    check_paging(query)
    limit = _number(query, "limit", min(_number(query, "per_page", standard), MAX_NUMBERED if numbered else MAX_PAGE))
    limit = min(max(limit, 1), MAX_PAGE)
    if "page" in query or (numbered and "cursor" not in query and "offset" not in query):
        number = max(_number(query, "page", 1), 1)
        return Page(limit, None, _reachable("page", (number - 1) * limit), number)
    return Page(limit, query.get("cursor") or None, _reachable("offset", _number(query, "offset", 0)))


def check_paging(query: Mapping[str, str]) -> None:
    """Refuse two ways to say where a page begins, or how large it is. Raises invalid_request."""
    if query.get("page") and (other := next((name for name in ("cursor", "offset") if query.get(name)), None)):
        raise invalid("page", f"page counts in place of {other}: leave one of both out")
    if (limit := query.get("limit")) and (size := query.get("per_page")) and limit != size:
        raise invalid("per_page", f"per_page is {shown(size)} and limit {shown(limit)}: leave one of both out")


def check_cursor(page: Page, fits: Callable[[str], bool], made_by: str) -> None:
    """Raise invalid_request for a cursor of another making: the list would begin at its first page without a word."""
    if page.cursor is not None and not fits(page.cursor):
        raise invalid("cursor", f"cursor must be the next_cursor of {made_by}, not {shown(page.cursor)}")


def pagination(page: Page, total: int | None, next_cursor: str | None, *, more: bool | None = None) -> Pagination:
    """The member `pagination` of a list; without `total` where it is not known. There is `more` where there is a cursor, unless
    it is given.
    """
    counted = {} if page.number is None else {"page": page.number, "per_page": page.limit}
    more = next_cursor is not None if more is None else more
    return Pagination(limit=page.limit, offset=page.offset, has_more=more, total=total, next_cursor=next_cursor, **counted)


def _reachable(name: str, offset: int) -> int:
    if offset > MAX_OFFSET:
        raise invalid(name, f"{name} passes over {offset:,} items; the limit is {MAX_OFFSET:,}: go on with cursor from there")
    return offset


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if not text:
        return default
    number = whole_number(text, 10)
    if number is None:
        raise invalid(name, f"{name} must be a whole number of 0 or more, not {shown(text)}")
    return min(number, _LARGEST)

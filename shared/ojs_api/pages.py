"""Lists in pages: what says which page is asked for, and where a page is in its list."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from ojs_api.members import Count
from ojs_api.operations import Parameter

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 200
ADMIN_PAGE: Final = 20
"""What the admin API lists unless it is told (ojs-admin-api §7.1)."""
MAX_NUMBERED: Final = 100
"""The most that `per_page` gets there; `limit` gets `MAX_PAGE` everywhere."""
MAX_OFFSET: Final = 5_000
"""The deepest that a page may begin."""


def paged(standard: int, most: int) -> tuple[Parameter, ...]:
    """Return the parameters of a list whose pages have `standard` items, and at most `most` where pages are counted."""
    plain = {"default": standard}
    size = Annotated[int, Meta(ge=1, le=MAX_PAGE, extra_json_schema=plain)]
    counted = Annotated[int, Meta(ge=1, le=most, extra_json_schema=plain)]
    return (
        Parameter("limit", size, "More counts as the most."),
        Parameter("cursor", str, "`next_cursor` of the page before."),
        Parameter("offset", Annotated[int, Meta(ge=0, le=MAX_OFFSET)], "How many to pass over."),
        Parameter(
            "page",
            Annotated[int, Meta(ge=1)],
            f"Counts pages in place of `cursor` and `offset`, to {MAX_OFFSET:,} items deep.",
        ),
        Parameter("per_page", counted, "More counts as the most."),
    )


PAGED: Final = paged(DEFAULT_PAGE, MAX_PAGE)
NUMBERED: Final = paged(ADMIN_PAGE, MAX_NUMBERED)
"""Of lists that count pages."""


class Pagination(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a page is in its list. `page` and `per_page` are for those who count pages."""

    limit: Count
    offset: Count
    has_more: bool
    total: (
        Annotated[Count, Meta(description="Exact. Left out where more than 10,000 would have to be looked through.")] | None
    ) = None
    next_cursor: Annotated[str, Meta(description="Goes into `cursor` for the next page.")] | None = None
    page: Count | None = None
    per_page: Count | None = None


class Indexed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of answers that come from the projector's index."""

    partial: (
        Annotated[bool, Meta(description="The index is being built anew: what is there is right, but not all is there.")] | None
    ) = None
    index_progress: Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})] | None = None

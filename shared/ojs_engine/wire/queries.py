"""The parameters of a request that aren't of its path, as a query string has them."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from ojs_engine.base.errors import invalid

_MOST: Final = 100


class Queries(dict[str, str]):
    """Parameters by their names. Values of one name are joined by commas, as in lists; `doubled` has such names."""

    def __init__(self) -> None:
        super().__init__()
        self.doubled: set[str] = set()


def parse_queries(text: str, field: str = "query") -> Queries:
    """Return the parameters of a query string.

    Raises invalid_request, about `field`, for more than `_MOST` and for what isn't UTF-8.
    """
    found = Queries()
    if not text:
        return found
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST, errors="strict")
    except ValueError:
        message = f"{field} is a query string in UTF-8 of at most {_MOST} members (job_id=…&limit=10)"
        raise invalid(field, message) from None
    for name, value in pairs:
        if name in found:
            found.doubled.add(name)
            found[name] += f",{value}"
        else:
            found[name] = value
    return found

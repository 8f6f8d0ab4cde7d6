"""The parameters of a request that aren't of its path, as a query string has them."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

from ojs_core.base.errors import invalid

_MOST: Final = 100


def parse_queries(text: str, field: str = "query") -> dict[str, str]:
    """Return the parameters of a query string; of several with one name the first.

    Raises invalid_request, about `field`, for more than `_MOST` and for what isn't UTF-8.
    """
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST, errors="strict")
    except ValueError:
        message = f"{field} is a query string in UTF-8 of at most {_MOST} members (job_id=…&limit=10)"
        raise invalid(field, message) from None
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found

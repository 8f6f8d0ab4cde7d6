"""Headers whose bytes aren't UTF-8: what is read in their place, and which of them a request is refused for.

Bytes that aren't UTF-8 arrive as halves of surrogate pairs, which neither JSON nor a hash takes. So they are
replaced before the header is read, and code that goes by its value asks whether that was necessary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

from ojs_engine.base.errors import OjsError, invalid

ALL_READABLE: Final[frozenset[str]] = frozenset()


def readable(value: str) -> str:
    """Return a text that was decoded with `surrogateescape`, with replacement characters for what isn't UTF-8."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def readable_headers(headers: CIMultiDictProxy[str]) -> tuple[CIMultiDictProxy[str], frozenset[str]]:
    """Return headers that are text, and the names of those that weren't, in small letters."""
    if all(map(str.isascii, headers.values())):
        return headers, ALL_READABLE
    unreadable = frozenset(name.lower() for name, value in headers.items() if readable(value) != value)
    if not unreadable:
        return headers, ALL_READABLE
    return CIMultiDictProxy(CIMultiDict((name, readable(value)) for name, value in headers.items())), unreadable


def require_readable(unreadable: Collection[str], names: Iterable[str]) -> None:
    """Refuse a request for a header that it is decided by. Raises invalid_request, which names it."""
    for name in names:
        if name.lower() in unreadable:
            raise unreadable_header(str(name))  # a plain one, which answers can hold


def unreadable_header(name: str) -> OjsError:
    """Return the error of a header that counts and isn't UTF-8."""
    return invalid(name, f"the header {name} is not valid UTF-8; leave it out, or send it as text")

"""What a list of jobs is searched by, as the query string says it (docs/lists.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ojs_core.base.errors import invalid

MAX_MEMBERS: Final = 8
MAX_TEXT: Final = 200
META: Final = "meta."
"""The beginning of the names of parameters for members of `meta`."""
_HAS_WORD: Final = re.compile(r"\w").search


def meta_members(query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """`meta.<key>=<value>`, each of which a job has to have. Raises invalid_request."""
    found = [(name, name[len(META) :], value) for name, value in query.items() if name.startswith(META)]
    if len(found) > MAX_MEMBERS:
        raise invalid(META[:-1], f"a list is searched by up to {MAX_MEMBERS} members of meta, not {len(found)}; leave some out")
    for name, key, _ in found:
        if not key:
            raise invalid(name, "meta. needs the name of a member, as in meta.tenant=acme")
    return tuple((key, value) for _, key, value in found)


def search_text(text: str | None) -> str | None:
    """`text`: words that are all in a job's arguments. Raises invalid_request."""
    if not text:
        return None
    if len(text) > MAX_TEXT:
        raise invalid("text", f"text must be at most {MAX_TEXT} characters, not {len(text)}")
    if _HAS_WORD(text) is None:
        raise invalid("text", "text must have at least one letter or digit; jobs are found by whole words of their arguments")
    return text

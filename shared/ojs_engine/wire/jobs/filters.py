"""What a list of jobs is searched by, as the query string says it (docs/lists.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ojs_engine.base.errors import invalid

MAX_MEMBERS: Final = 8
META: Final = "meta."
"""The beginning of the names of parameters for members of `meta`."""


def meta_members(query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """`meta.<key>=<value>`, each of which a job has to have. Raises invalid_request."""
    found = [(name, name[len(META) :], value) for name, value in query.items() if name.startswith(META)]
    if len(found) > MAX_MEMBERS:
        raise invalid(META[:-1], f"a list is searched by up to {MAX_MEMBERS} members of meta, not {len(found)}; leave some out")
    for name, key, _ in found:
        if not key:
            raise invalid(name, "meta. needs the name of a member, as in meta.tenant=acme")
    return tuple((key, value) for _, key, value in found)

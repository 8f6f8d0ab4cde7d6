"""What a list of jobs is searched by, as the query string says it (docs/lists.md)."""

from __future__ import annotations

from collections.abc import Mapping

from ojs_api.jobs import META, MOST_META
from ojs_engine.base.errors import invalid


def meta_members(query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """`meta.<key>=<value>`, each of which a job has to have. Raises invalid_request."""
    found = [(name, name[len(META) :], value) for name, value in query.items() if name.startswith(META)]
    if len(found) > MOST_META:
        raise invalid(META[:-1], f"a list is searched by up to {MOST_META} members of meta, not {len(found)}; leave some out")
    for name, key, _ in found:
        if not key:
            raise invalid(name, "meta. needs the name of a member, as in meta.tenant=acme")
    return tuple((key, value) for _, key, value in found)

"""The reference of roles and permissions, for the documentation.

`python -m ojs_command.access_reference > docs/reference/access.md` renews it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ojs_core.access.permissions import MEANINGS, PERMISSIONS, ROLES, Need
from ojs_gateway.openapi.document import OperationPlace, places
from ojs_gateway.routes import PARTS


def reference() -> str:
    """The page in Markdown, made from the routes."""
    roles = [role for role in ROLES if role != "custom"]
    head = f"| Permission | It lets | {' | '.join(roles)} |\n|---|---|{'---|' * len(roles)}"
    rows = "\n".join(
        f"| `{one}` | {MEANINGS[one]} | {' | '.join('yes' if one in ROLES[role] else '' for role in roles)} |"
        for one in PERMISSIONS
    )
    needed = "\n\n".join(_needed(need, about) for need, about in _sections())
    return f"""\
# Roles and permissions

A key has one role. A `custom` key names its permissions. [Security](../security.md) says how keys are made.

{head}
{rows}

What each operation needs stands beside its path in the code, and nowhere else; this page is made from there. It is the same
over HTTP and NATS, and on all paths of an operation.

{needed}

This page is made by `python -m ojs_command.access_reference`.
"""


def _sections() -> Iterator[tuple[Need, str]]:
    yield "nothing", "Nothing: open to everybody"
    yield "key", "Any key"
    for permission in PERMISSIONS:
        yield permission, f"`{permission}`"


def _needed(need: Need, title: str) -> str:
    found = [list(places(route)) for part in PARTS for route in part.routes if route.need == need]
    rows = "\n".join(f"| `{named[0].operation_id}` | {', '.join(map(_place, named))} |" for named in found)
    return f"## {title}\n\n| Operation | Paths |\n|---|---|\n{rows}"


def _place(place: OperationPlace) -> str:
    return f"`{place.method} {place.path}`"


if __name__ == "__main__":
    sys.stdout.write(reference())

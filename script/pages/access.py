"""The reference of roles and permissions, for the documentation.

`python -m script.pages.access > docs/reference/access.md` renews it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ojs_engine.access.permissions import MEANINGS, PERMISSIONS, ROLES, Need
from ojs_engine.api.route import Route
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import OperationPlace, places
from ojs_gateway.routes import parts


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

## Effects that come later

| Permission | Later | In whose name |
|---|---|---|
| `enqueue` | delayed jobs, retries, and steps and callbacks of workflows run | the jobs' own: they stay |
| `configure`, `read` | a [webhook](../webhooks.md) gets events | the key's: as it sees them, while it lives |
| `configure`, `enqueue` | a [cron entry](../cron.md) pushes jobs | the entry's: `keys revoke` names it |
| `configure` | settings of queues, limits, pools and schemas hold for all jobs | the system's |
| `control` | a cron entry or a dead letter makes a job, as it was written | the job's own |
| `control`, `enqueue` | a dead letter runs with another queue, arguments or metadata | the job's own |
| `work` | a job that was handed out comes back when its lease ends | the job's own |

{needed}

This page is made by `python -m script.pages.access`.
"""


def _sections() -> Iterator[tuple[Need, str]]:
    yield "nothing", "Nothing: open to everybody"
    yield "key", "Any key"
    for permission in PERMISSIONS:
        yield permission, f"`{permission}`"


def _needed(need: Need, title: str) -> str:
    found = [(route, list(places(route))) for part in parts(FEATURES) for route in part.routes if route.need == need]
    rows = "\n".join(
        f"| `{named[0].operation_id}`{_besides(route)} | {', '.join(map(_place, named))} |" for route, named in found
    )
    return f"## {title}\n\n| Operation | Paths |\n|---|---|\n{rows}"


def _besides(route: Route) -> str:
    return "".join(f", and `{one}`" for one in route.besides)


def _place(place: OperationPlace) -> str:
    return f"`{place.method} {place.path}`"


if __name__ == "__main__":
    sys.stdout.write(reference())

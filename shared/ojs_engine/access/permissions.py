"""Eight permissions, and the roles that bundle them."""

from __future__ import annotations

from typing import Final

from ojs_api import operations, words

Permission = operations.Permission
Need = operations.Need
Role = words.Role
PERMISSIONS: Final = operations.PERMISSIONS
MEANINGS: Final[dict[Permission, str]] = {
    "enqueue": "push jobs and create workflows",
    "work": "fetch jobs, settle them, send heartbeats, progress and checkpoints",
    "read": "see jobs, queues, workers, events and statistics, without what jobs carry",
    "payloads": "see what jobs carry: arguments, results, metadata, messages of errors, checkpoints",
    "control": "cancel, retry, reprioritise, pause, resume and trigger; direct workers",
    "configure": "change queues, cron entries, limits, pools, schemas and webhooks",
    "destroy": "delete and purge",
    "admin": "keys, maintenance, reset",
}
ROLES: Final[dict[Role, frozenset[Permission]]] = {
    "producer": frozenset({"enqueue"}),
    "worker": frozenset({"work"}),
    "viewer": frozenset({"read"}),
    "operator": frozenset({"enqueue", "read", "payloads", "control"}),
    "admin": frozenset(PERMISSIONS),
    "custom": frozenset(),
}
"""What each role may. A `custom` key names its permissions itself."""

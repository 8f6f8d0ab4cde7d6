"""What new jobs must pass."""

from __future__ import annotations

from typing import NamedTuple

from ojs_core.store.capacity.capacity import Capacity
from ojs_core.store.capacity.storage_room import StorageRoom
from ojs_core.store.queues.queues import Queues
from ojs_core.store.rate_limits.permits import Permits
from ojs_core.store.unique.unique import Uniqueness


class Guards(NamedTuple):
    """Whether there is storage, what queues say of their jobs, how many may wait, which keys are limited, who is unique."""

    room: StorageRoom
    queues: Queues
    capacity: Capacity
    permits: Permits
    unique: Uniqueness

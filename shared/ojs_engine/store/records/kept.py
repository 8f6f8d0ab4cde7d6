"""How long stored things are kept that leave by themselves."""

from __future__ import annotations

from ojs_link.timings import Timings


class KeptTimings(Timings, frozen=True, kw_only=True):
    """The times after which NATS removes small records, in seconds from their last write."""

    deleted_s: int = 3_600
    """For a record that says that its queue, pool, schema or subscription was deleted, or was removed."""
    worker_s: int = 3_600
    """For what is known of a worker, after its last heartbeat."""
    limit_s: int = 30 * 86_400
    """For a limit that is not used, unless an operator's override of it is in force."""
    request_s: int = 25 * 3_600
    """For the answer to a request with a key: the specification asks for a day; the hour more is for clocks."""

"""Who says in a request about a running job that it holds it."""

from __future__ import annotations

from typing import Any, Final

from ojs_engine.base.fields import integer, short_text
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.transitions import JobHolder

_MOST: Final = 2**53 - 1


def holder_of(worker_id: Any, attempt: Any, limits: PayloadLimits) -> JobHolder:
    """Of the members `worker_id` and `attempt`, either of which may be left out. Raises invalid_request."""
    return JobHolder(
        None if worker_id is None else short_text(worker_id, "worker_id", limits),
        None if attempt is None else integer(attempt, "attempt", 1, _MOST),
    )

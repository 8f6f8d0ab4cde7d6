"""Headers of pushes: how full their queue is (ojs-backpressure §7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ojs_engine.api.job_extras import Headers
from ojs_engine.base.errors import OjsError

if TYPE_CHECKING:
    from ojs_engine.store.store import Store


def pressure_headers(store: Store, queues: Iterable[str]) -> Headers:
    """Warning headers for the fullest of the queues that have come to their threshold; none if no queue has."""
    found = [pressure for queue in dict.fromkeys(queues) if (pressure := store.capacity.pressure(queue)) is not None]
    pressed = [pressure for pressure in found if pressure.ratio >= pressure.threshold]
    if not pressed:
        return ()
    fullest = max(pressed, key=lambda pressure: pressure.ratio)
    return (
        ("X-OJS-Queue-Depth", str(fullest.depth)),
        ("X-OJS-Queue-Bound", str(fullest.bound)),
        ("X-OJS-Queue-Pressure", f"{min(fullest.ratio, 1.0):.2f}"),
    )


def refusal_headers(errors: Iterable[OjsError | None]) -> Headers:
    """For an answer about several things, some of which can't be done now: when to ask for those again."""
    seconds = max((error.retry_after or 0 for error in errors if error is not None and error.retryable), default=0)
    return (("Retry-After", str(seconds)),) if seconds else ()

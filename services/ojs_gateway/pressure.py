"""Headers of pushes that say how full their queue is (ojs-backpressure §7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ojs_core.base.errors import OjsError

if TYPE_CHECKING:
    from ojs_core.store.store import Store

Headers = tuple[tuple[str, str], ...]


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
    """For an answer about several jobs, some of which a full queue refused: when to send those again."""
    found = (error.retry_after for error in errors if error is not None and error.code == "queue_full")
    seconds = next((one for one in found if one is not None), None)
    return () if seconds is None else (("Retry-After", str(seconds)),)

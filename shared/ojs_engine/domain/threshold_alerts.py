"""When a limit begins and ceases to hold jobs up, and when a bounded queue fills and empties; pure (docs/adr/139).

What was announced last of a limit or a bound says how it stands for all processes: `rate_limit.exceeded`,
`rate_limit.released`, `backpressure.warning`, `backpressure.cleared` and `queue.full` are announced where that is news.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

SPACING_MS: Final = 1_000
"""Between the last announcement of a limit, or bound, and one that says it has been reached, at least."""

AlertLevel = Literal["calm", "exceeded", "warned", "full"]
"""`exceeded`: a limit holds jobs up. `warned` and `full` are a bounded queue's, which is full until it is calm again."""

_OF_LIMITS: Final[Mapping[str, AlertLevel]] = {"rate_limit.exceeded": "exceeded", "rate_limit.released": "calm"}
_OF_BOUNDS: Final[Mapping[str, AlertLevel]] = {
    "backpressure.warning": "warned",
    "queue.full": "full",
    "backpressure.cleared": "calm",
}
ALERT_TYPES: Final = (*_OF_LIMITS, *_OF_BOUNDS)


class Threshold(NamedTuple):
    """The limit of a key, or, where `queue` is given, that of a queue or its bound: it may be reached."""

    name: str
    """A key, or a queue: the subject of the events."""
    queue: str | None = None
    """The queue that they are filed under, None for a key's."""
    bound: bool = False

    @property
    def levels(self) -> Mapping[str, AlertLevel]:
        """The types of its events, and how it stands after each."""
        return _OF_BOUNDS if self.bound else _OF_LIMITS


class Announced(NamedTuple):
    """The last announcement of a threshold: how it stood then."""

    level: AlertLevel = "calm"
    at: int = 0
    """Server time, Unix ms."""
    sequence: int = 0
    """Its place in the event stream; 0 if nothing was announced."""
    strategy: str | None = None
    """The part of a limit that held jobs up."""


Alerts = list[tuple[str, dict[str, Any]]]
"""Events to announce, in order: type and data of each."""


class QueueBound(NamedTuple):
    """How full a queue is. `threshold` is the share of `bound` from which it is nearly full (ojs-backpressure §6.2)."""

    queue: str
    depth: int
    bound: int
    threshold: float


def level_of(found: QueueBound, before: AlertLevel) -> AlertLevel:
    """Return how a bounded queue stands that stood at `before`."""
    if found.depth >= found.bound:
        return "full"
    if found.depth < found.threshold * found.bound:
        return "calm"
    return "warned" if before == "calm" else before


def pressed(last: Announced, found: QueueBound, now: int) -> Alerts:
    """Return what is news of a bounded queue as it was found."""
    level = level_of(found, last.level)
    if level == last.level or _too_soon(last, now):
        return []
    types = ["backpressure.cleared"] if level == "calm" else ["backpressure.warning"] if last.level == "calm" else []
    if level == "full":
        types.append("queue.full")
    return [(event_type, {"queue": found.queue, "depth": found.depth, "bound": found.bound}) for event_type in types]


def exceeded(last: Announced, limit: Threshold, hit: dict[str, Any], now: int) -> Alerts:
    """Return what is news of a limit that holds a job up. `hit`: its `strategy`, `limit` and `current`."""
    if last.level == "exceeded" or _too_soon(last, now):
        return []
    return [("rate_limit.exceeded", _of_limit(limit) | hit)]


def released(last: Announced, limit: Threshold, job_id: str | None) -> Alerts:
    """Return what is news of a limit that no job waits for any more; the last that did was `job_id`."""
    if last.level == "calm":
        return []
    job = {} if job_id is None else {"job_id": job_id}
    return [("rate_limit.released", _of_limit(limit) | {"strategy": last.strategy} | job)]


def _too_soon(last: Announced, now: int) -> bool:
    return last.level == "calm" and last.sequence > 0 and now - last.at < SPACING_MS


def _of_limit(limit: Threshold) -> dict[str, Any]:
    return {"key": limit.name} if limit.queue is None else {"key": f"queue:{limit.queue}", "queue": limit.queue}

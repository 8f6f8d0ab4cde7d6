"""When a limit begins and ceases to hold jobs up, and when a bounded queue fills and empties; pure (docs/adr/021).

One record for each limit and each bounded queue says how it stands and logs its last changes. The log is what
`rate_limit.exceeded`, `rate_limit.released`, `backpressure.warning`, `backpressure.cleared` and `queue.full` are told from:
a change is one compare-and-swap, so it is told once, however many gateways saw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ojs_core.base.numbers import At, Whole
from ojs_core.domain.transitions.result import Moment

SPACING_MS: Final = 1_000
"""Between two times that one limit, or bound, is said to have been reached, at least."""
_KEPT: Final = 16

AlertLevel = Literal["calm", "exceeded", "warned", "full"]
"""`exceeded`: a limit holds jobs up. `warned` and `full` are a bounded queue's, which stays full until it is calm again."""


class Crossed(Struct, frozen=True, array_like=True):
    """One entry of the log: an event in the making. `n` counts from 1, `at` is Unix ms."""

    n: Whole
    at: At
    event: str
    data: dict[str, Any]


class AlertRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `crossing.<scope>`: `key.<key>` and `queue.<queue>` for limits, `bound.<queue>` for bounds."""

    name: str
    """What the events are about: a key, or a queue."""
    queue: str | None = None
    """The queue that they are filed under, None for a key's."""
    created_at: At
    level: AlertLevel = "calm"
    log: tuple[Crossed, ...] = ()
    op: str = ""


class QueueBound(NamedTuple):
    """How full a queue is. `threshold` is the share of `bound` from which it is nearly full (ojs-backpressure §6.2)."""

    queue: str
    depth: int
    bound: int
    threshold: float


def level_of(found: QueueBound, before: AlertLevel) -> AlertLevel:
    """How a bounded queue stands that stood at `before`."""
    if found.depth >= found.bound:
        return "full"
    if found.depth < found.threshold * found.bound:
        return "calm"
    return "warned" if before == "calm" else before


def pressed(old: AlertRecord | None, found: QueueBound, moment: Moment) -> AlertRecord | None:
    """A bounded queue as it was found; None if that is nothing new, or too soon to be told."""
    before = "calm" if old is None else old.level
    level = level_of(found, before)
    data = {"queue": found.queue, "depth": found.depth, "bound": found.bound}
    news: list[tuple[str, dict[str, Any]]] = []
    if level == "calm":
        news.append(("backpressure.cleared", data))
    elif before == "calm":
        news.append(("backpressure.warning", data))
    if level == "full":
        news.append(("queue.full", data))
    return _crossed(old, AlertRecord(name=found.queue, queue=found.queue, created_at=moment.now), level, news, moment)


def exceeded(old: AlertRecord | None, name: str, queue: str | None, hit: dict[str, Any], moment: Moment) -> AlertRecord | None:
    """A limit holds a job up. `hit`: its `strategy`, `limit` and `current`; as `pressed`."""
    new = AlertRecord(name=name, queue=queue, created_at=moment.now)
    return _crossed(old, new, "exceeded", [("rate_limit.exceeded", _of_limit(name, queue) | hit)], moment)


def released(old: AlertRecord | None, job_id: str | None, moment: Moment) -> AlertRecord | None:
    """No job waits for a limit any more; the last that did was `job_id`. As `pressed`."""
    if old is None or not old.log:
        return None
    data = _of_limit(old.name, old.queue) | {"strategy": old.log[-1].data.get("strategy")}
    if job_id is not None:
        data["job_id"] = job_id
    return _crossed(old, old, "calm", [("rate_limit.released", data)], moment)


def _of_limit(name: str, queue: str | None) -> dict[str, Any]:
    return {"key": name} if queue is None else {"key": f"queue:{queue}", "queue": queue}


def _crossed(
    old: AlertRecord | None, new: AlertRecord, level: AlertLevel, news: Sequence[tuple[str, dict[str, Any]]], moment: Moment
) -> AlertRecord | None:
    found = new if old is None else old
    if found.level == level:
        return None
    last = found.log[-1] if found.log else None
    if found.level == "calm" and last is not None and moment.now - last.at < SPACING_MS:
        return None
    first = 1 if last is None else last.n + 1
    fresh = [Crossed(first + place, moment.now, event, data) for place, (event, data) in enumerate(news)]
    return replace(found, level=level, log=(*found.log, *fresh)[-_KEPT:], op=moment.op)

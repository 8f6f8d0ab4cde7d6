"""Queues that an operator may have to see to: by as many rows as there are busy queues, never by the jobs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from heapq import nlargest
from typing import Final

import msgspec

from ojs_engine.domain.job import State
from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_index.asking.counting import WINDOWS
from ojs_index.asking.messages import Concerns, ConcernsAsk, QueueFacts
from ojs_index.reading.waiting import first_waiting, oldest_available
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.numbers import ALL
from ojs_index.sqlite.starts import SECOND_MS

_MOST: Final = 50
"""Queues of each kind in one answer."""
_EXPLAINED: Final = 10
"""Queues whose oldest job is named, so that the reason why it waits can be found."""


def concerns(model: Model, ask: ConcernsAsk, now: int) -> Concerns:
    """Tell of up to `_MOST` queues of each kind, the worst of it."""
    db = model.db
    paused = _available(db, ask.paused)
    oldest = oldest_available(db)
    ended = model.counter.ended(now)
    longest = nlargest(_MOST, oldest.keys() - frozenset(ask.paused), key=lambda queue: -oldest[queue])
    names = {
        *nlargest(_MOST, paused, key=lambda queue: paused[queue]),
        *longest,
        *nlargest(_MOST, ended, key=lambda queue: ended[queue][1]),
    }
    listed = msgspec.json.encode(sorted(names)).decode()
    available = _available(db, names)
    among = "IN (SELECT value FROM json_each(?))"
    last = dict(db.execute(f"SELECT queue, max(second) FROM starts WHERE queue {among} GROUP BY 1", (listed,)))
    named = db.execute(
        "SELECT DISTINCT value FROM workers, json_each(CAST(record AS TEXT), '$.queues') "
        f"WHERE seen_at >= ? AND state = 'running' AND value {among}",
        (now - LIVENESS_MS, listed),
    )
    served = {queue for (queue,) in named}
    recent = (now - WINDOWS["5m"]) // SECOND_MS
    [known] = db.execute("SELECT count(*) FROM queues").fetchone()
    return Concerns(
        queues=[
            QueueFacts(
                name=queue,
                available=available.get(queue, 0),
                oldest_at=oldest.get(queue),
                oldest_id=_oldest(db, queue) if queue in longest[:_EXPLAINED] else None,
                served=queue in served or last.get(queue, 0) >= recent,
                last_at=last[queue] * SECOND_MS if queue in last else None,
                completed=ended.get(queue, (0, 0))[0],
                failed=ended.get(queue, (0, 0))[1],
            )
            for queue in sorted(names)
        ],
        known=known,
        partial=model.partial,
        progress=model.progress,
    )


def _oldest(db: sqlite3.Connection, queue: str) -> str | None:
    first = min(first_waiting(db, queue), key=lambda waits: waits.since, default=None)
    return None if first is None else first.id


def _available(db: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return how many jobs are available in those of these queues that have any."""
    found = db.execute(
        "SELECT queue, n FROM counts WHERE queue IN (SELECT value FROM json_each(?)) AND type = ? AND state = ? AND n > 0",
        (msgspec.json.encode(sorted(names)).decode(), ALL, State.AVAILABLE.value),
    )
    return dict(found.fetchall())

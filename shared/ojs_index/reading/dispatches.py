"""What was handed out of each queue lately, and what waits there (ojs-fair-scheduling §10.2)."""

from __future__ import annotations

from typing import Final

from ojs_engine.domain.job import State
from ojs_index.asking.messages import Dispatches, DispatchesAsk, DispatchesOfQueue
from ojs_index.reading.waiting import oldest_available
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.numbers import counts_of_queues
from ojs_index.sqlite.starts import SECOND_MS, WINDOW_S

_MOST: Final = 1_000
"""Queues in one answer, those with the most dispatches."""


def dispatches(model: Model, ask: DispatchesAsk, now: int) -> Dispatches:
    """Queues that have jobs to hand out or with workers, or that handed some out within the window, by name."""
    db = model.db
    since = now // SECOND_MS - WINDOW_S + 1
    lately = {
        queue: (number, wait_ms, last)
        for queue, number, wait_ms, last in db.execute(
            "SELECT queue, coalesce(sum(number) FILTER (WHERE second >= :since), 0), "
            "coalesce(sum(wait_ms) FILTER (WHERE second >= :since), 0), max(second) FROM starts GROUP BY queue",
            {"since": since},
        )
    }
    standing: dict[str, tuple[int, int]] = {}
    for (queue, state), n in counts_of_queues(db).items():
        if state in (State.ACTIVE, State.AVAILABLE):
            active, available = standing.get(queue, (0, 0))
            standing[queue] = (active + n, available) if state == State.ACTIVE else (active, available + n)
    nothing = (0, 0, 0)
    names = {*standing, *ask.also, *(queue for queue, found in lately.items() if found[0])}
    largest = sorted(names, key=lambda queue: (-lately.get(queue, nothing)[0], queue))[:_MOST]
    oldest = oldest_available(db)
    return Dispatches(
        queues=[
            DispatchesOfQueue(
                name=queue,
                number=lately.get(queue, nothing)[0],
                wait_ms=lately.get(queue, nothing)[1],
                last_at=lately[queue][2] * SECOND_MS if queue in lately else None,
                active=standing.get(queue, (0, 0))[0],
                available=standing.get(queue, (0, 0))[1],
                oldest_at=oldest.get(queue),
            )
            for queue in sorted(largest)
        ],
        total=sum(found[0] for found in lately.values()),
        partial=model.partial,
        progress=model.progress,
    )

"""Dead letters beyond the number that a queue keeps: the oldest are deleted (ojs-dead-letter §5, §8; docs/adr/020).

The index says which they are, the leader's record whether that still holds. Those beyond their age leave by their
record's TTL, which is nobody's task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from ojs_engine.base.errors import unless_moved_on
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import DEFAULT_QUEUE
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from ojs_index.asking.client import Barrier
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.numbers import dead_of_queues
from ojs_index.sqlite.watermark import Watermark
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_LOOK: Final = 100
"""Dead letters that one look at the index leads to; then it is looked at again."""
_LOOKS: Final = 10
"""Looks in one round."""
_AT_ONCE: Final = 20


class PruningTimings(Timings, frozen=True, kw_only=True):
    """When dead letters are pruned."""

    round_ms: int = 10_000
    """Rounds begin at multiples of this, so that each projector knows when the next one is due, whoever's it is."""
    fresh_s: float = 2.0
    """How long a look counts. A process that was stopped meanwhile, and whose role another has, deletes nothing when
    it goes on.
    """
    soon_s: float = 1.0
    """Until the next round if this one has left something over."""
    reach_s: float = 2.0
    """How long a round waits until the index has what the round before has deleted."""


class _Surplus(NamedTuple):
    """One dead letter too many, as the index has it."""

    id: str
    discarded_at: int


def next_round(now: int, round_ms: int) -> int:
    """Return when the next round is due (Unix ms)."""
    return (now // round_ms + 1) * round_ms


class Pruner:
    """One projector's part: it acts while `leading` says so and its index is whole. `max_count` is what a queue keeps
    that doesn't say otherwise; 0 for any number.
    """

    def __init__(
        self,
        store: Store,
        model: Model,
        reached: Watermark,
        leading: Callable[[], bool],
        max_count: int,
        timings: PruningTimings,
    ) -> None:
        self._timings = timings
        self._store = store
        self._model = model
        self._reached = reached
        self._leading = leading
        self._barrier = Barrier(store)
        self._max_count = max_count
        self._more = False
        """Whether the last round has left something over."""

    async def run(self) -> None:
        """One round when it is time for it."""
        now = self._store.clock.now()
        await asyncio.sleep(self._timings.soon_s if self._more else (next_round(now, self._timings.round_ms) - now) / 1_000)
        self._more = False
        self._more = await self.look()

    async def look(self) -> bool:
        """One round; whether it has left something over. Raises OjsError backend_unavailable."""
        for _ in range(_LOOKS):
            if not self._leading() or self._model.partial:
                return False
            await self._store.queues.settings(DEFAULT_QUEUE)
            if self._surplus() is None or await self._store.queues.wait_for_release():
                return False
            # Everything that was deleted or retried before now is known, by whomever.
            sequence = await self._barrier.sequence()
            until = asyncio.get_running_loop().time() + self._timings.fresh_s
            if not await self._reached.until(sequence, self._timings.reach_s):
                return True
            surplus = self._surplus()
            if surplus is None:
                return False
            queue, found = surplus
            if not await self._delete(queue, found, until):
                return True
        return True

    def _surplus(self) -> tuple[str, list[_Surplus]] | None:
        """A queue that has too many, and the oldest of them; by the numbers that the index keeps, not by counting."""
        for queue, number in dead_of_queues(self._model.db).items():
            own = self._store.queues.config(queue).dead_letter_max
            kept = self._max_count if own is None else own
            if kept and number > kept:
                found = self._model.db.execute(
                    "SELECT id, finished_at FROM jobs WHERE dead_letter = 1 AND queue = ? ORDER BY finished_at, id LIMIT ?",
                    (queue, min(number - kept, _LOOK)),
                )
                return queue, [_Surplus(*row) for row in found]
        return None

    async def _delete(self, queue: str, surplus: list[_Surplus], until: float) -> bool:
        """Delete what the index named, unless it has changed since; whether there was time for all."""
        outcomes = await in_portions(surplus, lambda one: self._delete_one(one, until), _AT_ONCE)
        done = outcomes.count(True)
        if done:
            metrics.PRUNED.labels(queue).inc(done)
            log.info("dead letters pruned", queue=queue, count=done)
        return None not in outcomes

    async def _delete_one(self, one: _Surplus, until: float) -> bool | None:
        """Whether it was deleted; None if there was no time."""
        change = self._store.jobs.change(one.id, lambda job, moment: self._decide(one, job, moment, until))
        try:
            return await unless_moved_on(change)
        except _TooLateError:
            return None

    def _decide(self, one: _Surplus, job: Job, moment: Moment, until: float) -> Transition:
        if asyncio.get_running_loop().time() > until or not self._leading():
            raise _TooLateError
        return transitions.prune(job, one.discarded_at, moment)


class _TooLateError(Exception):
    """What the index said is too old to act on."""

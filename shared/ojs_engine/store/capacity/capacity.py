"""Bounded queues: no more than `max_size` jobs of a queue wait in `available` because of pushes.

Whoever wants to push takes places first: one message `ojs.ready.<queue>.seat.<number>`, stored only if nothing has
been added to the queue's ready subjects since they were counted (a compare-and-swap over the wildcard). The push
itself then goes its usual way, and the places are given back once its tokens are there. So the bound holds exactly
for any number of gateways and any kind of push. Retries, requeues and the jobs of workflows take no places and are
never refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, queue_full
from ojs_engine.base.lru import Lru
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.threshold_alerts import QueueBound
from ojs_engine.domain.transitions.effects import StaleToken
from ojs_engine.jetstream.api import delete_unheard, put_if
from ojs_engine.jetstream.contents import message, subjects_of
from ojs_engine.store.capacity.stale_tokens import Live, StaleTokens, available_at
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.backoff import contended, step_back
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.threshold_alerts import ThresholdAlerts
from ojs_engine.telemetry import metrics
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_LOOKED_AT: Final = 128
"""Tokens among which the oldest jobs are found, at most; of a few, `_SPARE` more than are wanted, at first."""
_SPARE: Final = 7
_WARNING: Final = 0.8
_PUSHED_TO: Final = 10_000
"""Bounded queues whose last depth this process remembers."""


Check = Callable[[bool], Awaitable[list[Job] | None]]
"""Asked once when a queue is full, before jobs are dropped (True) or a push is refused. Returns the jobs of the answer
if the push needs no place, else None.
"""


class Pressure(NamedTuple):
    """How full a bounded queue was when this process last pushed to it."""

    depth: int
    bound: int
    threshold: float

    @property
    def ratio(self) -> float:
        return self.depth / self.bound


class _Seat(NamedTuple):
    """The sequence of the message that holds the places, and how many tokens there will be."""

    sequence: int
    depth: int


class CapacityTimings(Timings, frozen=True, kw_only=True):
    """How long places of bounded queues are held, and waited for."""

    wait_s: float = 2.0
    """How long places that others have taken are waited for."""
    seat_ms: int = 10_000
    """Places that are older were taken by somebody who died."""
    pause_s: float = 0.005
    """The pause between two looks for a place while others' pushes are under way."""


class _Standing(NamedTuple):
    """What the ready subjects of a queue hold: the last sequence, tokens, and places taken by number of messages."""

    sequence: int
    tokens: int
    seats: int


class Capacity:
    """Takes places in bounded queues; one at a time per queue within a process, since they exclude each other anyway."""

    def __init__(
        self, bucket: Bucket, queues: Queues, stale_tokens: StaleTokens, alerts: ThresholdAlerts, timings: CapacityTimings
    ) -> None:
        self._timings = timings
        self._nats = bucket.nats
        self._committer = bucket.committer
        self._queues = queues
        self._stale_tokens = stale_tokens
        self._alerts = alerts
        self._clock = bucket.clock
        self._writes = bucket.writes
        self._config = bucket.config
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._pressure: Lru[Pressure] = Lru(_PUSHED_TO)
        self._left: dict[str, list[Job]] = {}
        """By queue, jobs as they were whose tokens are to be taken out."""
        self._clearing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def pressure(self, queue: str) -> Pressure | None:
        """None if the queue has no bound, or this process hasn't pushed to it."""
        return self._pressure.get(queue) if self._queues.bound(queue) else None

    async def fetched(self, queue: str, ready: int) -> None:
        """Note that a fetch has left so many tokens, apart from those that are put aside for their keys."""
        if self._queues.bound(queue):
            aside = await self._stale_tokens.held(queue)  # by this fetch as well: then `ready` counts it, too
            await self.observe(queue, (await self._holds(queue))[0] if aside else ready)

    async def observe(self, queue: str, depth: int) -> None:
        """Note that a queue holds `depth` tokens, if it is bounded: it may be nearly full or full, or not any more."""
        bound = self._queues.bound(queue)
        if not bound:
            return
        await self._alerts.pressed(QueueBound(queue, max(depth, 0), bound, self._threshold(queue)))

    @asynccontextmanager
    async def places(self, queue: str, number: int, check: Check | None = None) -> AsyncIterator[list[Job] | None]:
        """Hold places for the time of a push; without a bound that costs nothing. Yield the answer of `check`: with
        one, no place is held. Raises OjsError queue_full, or as `check`.
        """
        bound = self._queues.bound(queue)
        if not bound or not number:
            yield None
            return
        async with self._turns.setdefault(queue, asyncio.Lock()):
            try:
                taken = await self._take(queue, number, bound, check)
            except OjsError as error:
                if error.code == "queue_full":
                    await self.observe(queue, bound)
                raise
            if isinstance(taken, _Seat):
                try:
                    yield None
                finally:
                    # If that is lost, a full queue's next pusher finds the seat.
                    delete_unheard(self._nats, self._config.ready_stream, taken.sequence)
                await self.observe(queue, taken.depth)
                return
        yield taken

    @asynccontextmanager
    async def places_for(self, drafts: Iterable[Job], check: Check | None = None) -> AsyncIterator[list[Job] | None]:
        """Hold places for all jobs that enter their queues at once, or for none. As `places`."""
        now = self._clock.now()
        wanted = Counter(draft.queue for draft in drafts if transitions.waits_at_once(draft, now))
        instead: list[Job] | None = None
        async with AsyncExitStack() as held:
            for queue in sorted(wanted):  # in one order for all, or two batches would wait for each other
                instead = await held.enter_async_context(self.places(queue, wanted[queue], check))
                if instead is not None:
                    break
            yield instead

    async def _take(self, queue: str, number: int, bound: int, check: Check | None) -> _Seat | list[Job]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        conflicts = 0
        while loop.time() < began + self._writes.budget_s:
            standing = await self._count(queue)
            self._remember(queue, standing.tokens, bound)
            if standing.tokens + standing.seats + number <= bound:
                seat = await self._sit(queue, number, standing.sequence)
                if seat is not None:
                    depth = standing.tokens + number
                    self._remember(queue, depth, bound)
                    return _Seat(seat, depth)
                conflicts += 1  # who waits for others' places is not in conflict with them, and looks again soon
                await step_back(self._clock, conflicts, self._writes)
            elif standing.seats and standing.tokens + number <= bound and loop.time() < began + self._timings.wait_s:
                await self._stale_tokens.clear_seats(queue, self._clock.now() - self._timings.seat_ms)
                await asyncio.sleep(self._timings.pause_s)  # others' pushes are under way, and may fail
            else:
                if check is not None:
                    instead = await check(self._policy(queue) == "drop_oldest")
                    if instead is not None:
                        return instead
                    check = None
                # A place may be one that was just given back, whose token counts already: it is waited for before it counts.
                excess = standing.tokens + number - bound
                wanted = excess if excess > 0 else excess + standing.seats
                if number > bound or not await self._make_room(queue, wanted):
                    metrics.rejected(queue)
                    raise queue_full(queue, standing.tokens, bound, self._policy(queue), wanted=number)
        raise contended(f"what waits in the bounded queue {queue!r}")

    def _policy(self, queue: str) -> str:
        config = self._queues.config(queue)
        return config.overflow_policy or "reject"

    def _remember(self, queue: str, depth: int, bound: int) -> None:
        self._pressure.put(queue, Pressure(depth, bound, self._threshold(queue)), 1)

    def _threshold(self, queue: str) -> float:
        threshold = self._queues.config(queue).warning_threshold
        return _WARNING if threshold is None else threshold

    # Counting and sitting down

    async def _count(self, queue: str) -> _Standing:
        """The sequence first: what is added after it makes the swap fail."""
        last_of = {"last_by_subj": self._config.ready_of_queue(queue)}
        last = await message(self._nats, self._config.ready_stream, last_of, "tokens")
        tokens, seats = await self._holds(queue)
        return _Standing(0 if last is None else last.seq, tokens, seats)

    async def _holds(self, queue: str) -> tuple[int, int]:
        """How many tokens there are, those included that are put aside for their keys, and how many places are taken.

        In this order: one that is put aside meanwhile counts twice, one that is let go makes the swap fail.
        """
        found = await subjects_of(self._nats, self._config.ready_stream, self._config.ready_of_queue(queue))
        tokens = seats = 0
        for subject, messages in found.items():
            size = self._config.seat_size(subject)
            tokens += 0 if size else messages
            seats += size * messages
        return tokens + await self._stale_tokens.held(queue), seats

    async def _sit(self, queue: str, number: int, sequence: int) -> int | None:
        """None if somebody else was faster."""
        seat, everything = self._config.seat(queue, number), self._config.ready_of_queue(queue)
        return await put_if(self._nats, seat, b"", sequence, "a place in a queue", of=everything)

    # Making room

    async def stale_tokens(self, jobs: Sequence[Job]) -> None:
        """Take the tokens of jobs out that have left their bounded queues otherwise than by a fetch.

        Nothing fails by it: a token that stays is found when the queue seems full.
        """
        try:
            for job in jobs:
                await self._queues.settings(job.queue)
                if self._queues.bound(job.queue):
                    self._left.setdefault(job.queue, []).append(job)
            for queue in dict.fromkeys(job.queue for job in jobs):
                await self._take_out(queue)
        except OjsError as error:
            log.debug("tokens of jobs that are gone stay for now", reason=error.message)

    async def _take_out(self, queue: str) -> None:
        """What is left while one waits for its turn goes with the one before, so many together cost little more than one."""
        if queue not in self._left and queue not in self._clearing:
            return
        async with self._clearing.setdefault(queue, asyncio.Lock()):
            jobs = self._left.pop(queue, [])
            if jobs and await self._stale_tokens.take_out(queue, jobs):
                await self.observe(queue, (await self._holds(queue))[0])

    async def _make_room(self, queue: str, wanted: int) -> bool:
        """Delete tokens that stand for nothing any more, else drop the oldest jobs where the queue says so; whether any."""
        if await self._stale_tokens.sweep(queue):
            return True
        return self._policy(queue) == "drop_oldest" and await self._drop_oldest(queue, wanted)

    async def _drop_oldest(self, queue: str, wanted: int) -> bool:
        """Some of the oldest may be just fetched, or on their way, so more are looked at if those few make no room."""
        made = 0
        for most in (min(wanted + _SPARE, _LOOKED_AT), _LOOKED_AT):
            look = await self._stale_tokens.oldest(queue, most)
            made += look.deleted
            for token, stored in sorted(look.live, key=_age):
                if made >= wanted:
                    break
                if stored.job is not None and await self._drop(stored.job, stored.sequence):
                    await self._stale_tokens.delete(token)
                    made += 1
            if made:
                break
        return made > 0

    async def _drop(self, job: Job, sequence: int) -> bool:
        moment = self._clock.moment()
        dropped = transitions.drop(job, "overflow", moment)
        others = tuple(effect for effect in dropped.effects if not isinstance(effect, StaleToken))  # its token is known
        try:
            await self._committer.commit(replace(dropped, effects=others), sequence, moment.op)
        except Conflict:  # it is fetched or cancelled just now
            return False
        metrics.dropped(job.queue)
        log.info("job dropped to make room", job_id=job.id, queue=job.queue)
        return True


def _age(live: Live) -> int:
    return 0 if live.stored.job is None else available_at(live.stored.job)

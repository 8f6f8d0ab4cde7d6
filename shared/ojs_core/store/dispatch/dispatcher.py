"""Hand-out: which queue, which priority, which token is next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final, Literal

import structlog

from ojs_core.base.errors import OjsError
from ojs_core.base.lru import Lru
from ojs_core.base.timings import Timings
from ojs_core.domain.handlers import Handled
from ojs_core.domain.job import Job
from ojs_core.domain.starvation import StarvationClock
from ojs_core.jetstream.subjects import lane_of
from ojs_core.store.capacity.capacity import Capacity
from ojs_core.store.dispatch.claims import Claims, ClaimTimings, Wanted
from ojs_core.store.dispatch.head_tokens import TokenTimings
from ojs_core.store.dispatch.queue_consumers import ConsumerTimings, QueueConsumers
from ojs_core.store.dispatch.requeuer import Requeuer
from ojs_core.store.dispatch.skipped_queues import SkippedQueues
from ojs_core.store.dispatch.token_parking import TokenParking
from ojs_core.store.dispatch.token_reader import TokenReader
from ojs_core.store.dispatch.wakeups import Wakeups, WakeupTimings
from ojs_core.store.gates import StartGate
from ojs_core.store.jobs.jobs import Jobs
from ojs_core.store.queues.fair_pools import FairPools, Plan
from ojs_core.store.queues.queues import Queues
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.tokens import priority_of
from ojs_core.telemetry import metrics

log = structlog.get_logger(__name__)

_FRUITLESS_PULLS: Final = 100
_PATIENT_PULLS: Final = 2
"""Pulls of nothing but blocked tokens after which they are put aside many at a time."""
_FEW_UNFIT: Final = 8
_MANY_UNFIT: Final = 64
"""Tokens that are taken together while their jobs are for other workers: the more, the more of them are met."""
_ROTATED: Final = 1_000
"""Queues that rotate their priorities whose waits this process remembers."""
_STOPPED: Final = 10_000
"""Queues of which this process remembers that their gates stopped them."""


class DispatchTimings(Timings, frozen=True, kw_only=True):
    """The times of fetching, and of its parts."""

    fallback_look_s: float = 1.0
    """How often a fetch that waits looks though nothing has woken it."""
    further_looks_s: tuple[float, ...] = (0.004, 0.02)
    """A wake may come before its token can be pulled: a look in vain is repeated, each so long after the last."""
    patience_s: float = 0.02
    """How long a fetch waits for blocked tokens to be put aside before it checks the next priority."""
    cleared_s: float = 1.0
    """How long a fetch that doesn't wait for jobs waits for that if there is nothing else."""
    slow_s: float = 1.0
    """A queue that took this long to fail took long; after two of them the fetch asks no further ones."""
    close_s: float = 1.0
    """How long looks of cancelled fetches are waited for when the process stops."""
    consumers: ConsumerTimings = ConsumerTimings()
    """Durable consumers."""
    tokens: TokenTimings = TokenTimings()
    """Reading tokens."""
    claims: ClaimTimings = ClaimTimings()
    """Judging them."""
    wakeups: WakeupTimings = WakeupTimings()
    """Hearing of them."""


Looked = Literal["whole", "part", "over"]
"""What of a queue has been looked at: everything, or what blocked tokens leave to be had while they are put aside; or there is
no use in going on.
"""


GivenUp = Callable[[], Awaitable[bool]]


async def nobody_gives_up() -> bool:
    """Who waits, waits to the end."""
    return False


class Dispatcher:
    """Fetching: priorities from high to low, first come first served within one, queues left to right."""

    def __init__(
        self,
        bucket: Bucket,
        queues: Queues,
        capacity: Capacity,
        jobs: Jobs,
        pools: FairPools,
        gate: StartGate | None,
        timings: DispatchTimings,
    ) -> None:
        self._timings = timings
        self._queues = queues
        self._pools = pools
        self._gate = gate
        self._capacity = capacity
        self._clock = bucket.clock
        self._consumers = QueueConsumers(bucket, queues, timings.consumers)
        self.wakeups = Wakeups(bucket, timings.wakeups)
        self._reader = TokenReader(bucket, self._consumers, queues, self.wakeups, timings.tokens)
        self._requeuer = Requeuer(jobs)
        self._claims = Claims(bucket, self._reader, jobs, queues, gate, self._requeuer, self.wakeups, timings.claims)
        self._parking: TokenParking | None = None
        if gate is not None:
            self._parking = TokenParking(gate, self._reader, self._claims, self.wakeups, bucket.config)
        self._starvation: Lru[StarvationClock[int]] = Lru(_ROTATED)
        self._stopped: Lru[bool] = Lru(_STOPPED)
        """Queues that this process has seen stopped by their gates, and not empty since."""
        self._looks: set[asyncio.Task[list[Job]]] = set()
        queues.resumed.append(self.wakeups.wake_queue)

    async def fetch(
        self,
        queues: Sequence[str],
        count: int,
        worker: str | None,
        lease_ms: int | None,
        wait_ms: int,
        pool: str | None = None,
        given_up: GivenUp = nobody_gives_up,
        handled: Handled | None = None,
    ) -> list[Job]:
        """Claim up to `count` jobs; waits up to `wait_ms` for the first. Returned jobs are active and stored as such.

        `given_up` is asked once a second meanwhile, and says that nobody waits any longer. `pool` is the worker's, without
        which it gets nothing from queues of isolated pools; `handled` what it can run, without which it gets whatever there is.

        A fetch that is cancelled ends at once, and what it has claimed by then, or is just claiming, is given back.
        """
        return self._unended(await self._fetch(queues, Wanted(count, worker, lease_ms, handled), wait_ms, pool, given_up))

    async def _fetch(
        self, queues: Sequence[str], wanted: Wanted, wait_ms: int, pool: str | None, given_up: GivenUp
    ) -> list[Job]:
        if wait_ms <= 0 or self.wakeups.closed:
            await self.wakeups.listen(queues)
            jobs = await self._whole_look(queues, wanted, pool, last=True)
            if not jobs and self._parking is not None and await self._parking.settled(queues, self._timings.cleared_s):
                jobs = await self._whole_look(queues, wanted, pool, last=True)
            return jobs
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        waiter = await self.wakeups.join(queues, None if wanted.handled is None else wanted.takes)
        pauses: Iterator[float] = iter(())
        try:
            while True:
                if waiter.woken:
                    pauses = iter(self._timings.further_looks_s)
                waiter.clear()
                jobs = await self._whole_look(queues, wanted, pool)
                left = deadline - loop.time()
                if jobs or left <= 0 or self.wakeups.closed:
                    return jobs
                await waiter.wait(min(left, next(pauses, self._timings.fallback_look_s)))
                while not waiter.woken and self.wakeups.empty(queues) and (left := deadline - loop.time()) > 0:
                    if await given_up():
                        return []
                    await waiter.wait(min(left, self._timings.fallback_look_s))
                if await given_up():
                    return []
        finally:
            await self.wakeups.leave(waiter)

    def _unended(self, jobs: list[Job]) -> list[Job]:
        """Jobs whose leases hold: after a long pause of this process others may have what it has claimed."""
        now = self._clock.now()
        unended = [job for job in jobs if (job.visible_until or 0) > now]
        if len(unended) < len(jobs):
            log.warning("jobs were not handed out: their leases ended before the answer", jobs=len(jobs) - len(unended))
        return unended

    @contextmanager
    def returning(self, jobs: Sequence[Job]) -> Iterator[set[str]]:
        """Give back those of claimed jobs whose ids are in the set when the block ends, however it ends.

        All are at first; whoever hands a job on takes it out.
        """
        undelivered = {job.id for job in jobs}
        try:
            yield undelivered
        finally:
            self.take_back([job for job in jobs if job.id in undelivered])

    def take_back(self, jobs: Iterable[Job], reason: str = "its fetch was not answered") -> None:
        """Give back claimed jobs that nobody has."""
        for job in jobs:
            self._requeuer.give_back(job, reason)

    def fail(self, job: Job, reason: str) -> None:
        """End the attempt of a claimed job that can't be handed out, as its worker would; tried until it succeeds."""
        self._requeuer.give_back(job, reason, failed=True)

    async def close(self) -> None:
        """Let those who wait go, and finish what is being given back as far as NATS allows it now."""
        self.wakeups.wake_all()
        if self._looks:
            await asyncio.wait(self._looks, timeout=self._timings.close_s)
        if self._parking is not None:
            await self._parking.close()
        await self._requeuer.close()

    # Looking

    async def _whole_look(self, queues: Sequence[str], wanted: Wanted, pool: str | None, *, last: bool = False) -> list[Job]:
        """A look that goes on to its end even if the fetch is cancelled: a claim in flight can't be called back."""
        look = asyncio.create_task(self._look(queues, wanted, pool, last=last), name="look")
        try:
            return await asyncio.shield(look)
        except asyncio.CancelledError:
            self._looks.add(look)
            look.add_done_callback(self._abandoned)
            raise

    def _abandoned(self, look: asyncio.Task[list[Job]]) -> None:
        self._looks.discard(look)
        if look.cancelled() or look.exception() is not None:
            return  # what it claimed was given back, or nothing was
        for job in look.result():
            self._requeuer.give_back(job, "its fetch was cancelled")

    async def _look(self, queues: Sequence[str], wanted: Wanted, pool: str | None, *, last: bool) -> list[Job]:
        """The jobs that are to be had. Raises OjsError only if none of the queues can be served.

        The `last` look of a fetch asks the stream if it finds nothing: a push may have been answered by another process whose
        token is still to be heard of here. What is claimed goes out, since nobody else knows of it; the rest of the tokens
        come back by themselves.
        """
        taken: list[Job] = []
        queues = await self._pools.open_to(queues, pool)
        plan = await self._pools.plan(queues, wanted.most)
        began = asyncio.get_running_loop().time()
        with self._requeuer.unless_handed_on(taken):
            skipped = await self._asked(self._reader.learn, [queue for queue in queues if not self._is_sure(queue, began)])
            await self._look_at(queues, skipped, plan, taken, wanted)
            if last and not taken and (doubtful := [queue for queue in queues if not self._is_told(queue, began)]):
                skipped = await self._asked(self._reader.subjects, doubtful)
                await self._look_at(queues, skipped, plan, taken, wanted)
        skipped.judge(found=bool(taken))
        return taken

    async def _asked(self, ask: Callable[[str], Awaitable[Any]], queues: Sequence[str]) -> SkippedQueues:
        """Ask about queues, all at once; those about which there was no answer."""
        skipped = SkippedQueues(self._timings.slow_s)
        answers = await asyncio.gather(*map(ask, queues), return_exceptions=True) if queues else []
        for queue, answer in zip(queues, answers, strict=True):
            if isinstance(answer, OjsError):
                skipped.queues[queue] = answer
            elif isinstance(answer, BaseException):
                raise answer
        return skipped

    def _is_sure(self, queue: str, now: float) -> bool:
        known = self.wakeups.ready(queue)
        return known is not None and known.sure(now)

    def _is_told(self, queue: str, since: float) -> bool:
        known = self.wakeups.ready(queue)
        return known is not None and known.asked_at >= since

    async def _look_at(
        self, queues: Sequence[str], skipped: SkippedQueues, plan: Plan | None, taken: list[Job], wanted: Wanted
    ) -> None:
        """Adds to `taken` what the queues have."""
        if plan is not None:
            await self._look_fairly(plan, skipped, taken, wanted)
            return
        for queue in queues:
            if queue in skipped.queues:
                continue
            with skipped.skipping(queue):
                taken += await self._look_into(queue, wanted.but(wanted.most - len(taken)))
            if len(taken) >= wanted.most or skipped.enough:
                break

    async def _look_fairly(self, plan: Plan, skipped: SkippedQueues, taken: list[Job], wanted: Wanted) -> None:
        """First each queue's share, then the rest from whichever has more; adds to `taken`."""
        given = dict.fromkeys(plan.shares, 0)
        emptied: list[str] = []
        try:
            for shares in (plan.shares, dict.fromkeys(plan.shares, wanted.most)):
                for queue, share in shares.items():
                    part = wanted.but(min(share, wanted.most - len(taken)))
                    if part.most <= 0 or queue in emptied or queue in skipped.queues or skipped.enough:
                        continue
                    with skipped.skipping(queue):
                        found = await self._look_into(queue, part)
                        taken += found
                        given[queue] += len(found)
                        if len(found) < part.most:
                            emptied.append(queue)
        finally:
            plan.served(given, emptied)

    async def _look_into(self, queue: str, wanted: Wanted) -> list[Job]:
        """What one queue has, unless it is paused, until its gate stops it."""
        subjects = self._known(queue)
        if subjects is not None and not subjects:
            return []
        if await self._queues.held(queue):
            return []
        gate = self._queues.gate(queue)
        if gate is not None:
            room = await gate.room(queue)
            if room.announce is not None:
                if not self._stopped.get(queue) and await self._reader.subjects(queue):
                    await room.announce()
                    self._stopped.put(queue, True, 1)
                return []
            wanted = wanted.but(min(wanted.most, room.number))
        ready: dict[str, int] | None = None
        if subjects is None:
            ready = await self._reader.subjects(queue)
            subjects = list(ready)
        takes = subjects if wanted.handled is None else [subject for subject in subjects if wanted.takes(subject)]
        taken: list[Job] = []
        rotation_ms = self._queues.config(queue).rotation_ms
        try:
            with self._requeuer.unless_handed_on(taken):
                if rotation_ms:
                    outcome = await self._look_in_turn(queue, takes, rotation_ms, taken, wanted)
                else:
                    outcome = await self._look_through(queue, takes, taken, wanted)
                whole = outcome == "whole" and len(takes) == len(subjects)
                if whole and len(taken) < wanted.most and self._stopped.get(queue):
                    await self._emptied(queue, taken[-1].id if taken else None)
                if ready is not None:
                    await self._capacity.fetched(queue, sum(ready.values()) - len(taken))
        except OjsError:
            if not taken:
                raise
        return taken

    async def _emptied(self, queue: str, last: str | None) -> None:
        """Say that a queue has no more jobs which its gate has stopped; the last was `last`."""
        self._stopped.drop(queue)
        if self._gate is not None:
            await self._gate.emptied(queue, last)

    def _known(self, queue: str) -> list[str] | None:
        """The ready subjects that may have tokens to give, as far as that is known without asking the stream.

        None if it isn't, or if more is needed than that: for a queue that is bounded or stopped by its gate, or whose
        priorities take turns.
        """
        config = self._queues.config(queue)
        if config.max_size or config.rotation_ms or self._stopped.get(queue):
            return None
        known = self.wakeups.ready(queue)
        now = asyncio.get_running_loop().time()
        return known.giving(now) if known is not None and known.sure(now) else None

    async def _look_through(self, queue: str, subjects: Sequence[str], taken: list[Job], wanted: Wanted) -> Looked:
        """Claim from one subject after the other until `taken` has as many jobs as are wanted."""
        whole = True
        alike = [list(lanes) for _, lanes in groupby(subjects, lambda one: (priority_of(one), lane_of(one) == "front"))]
        for place, lanes in enumerate(alike, 1):
            outcome = await self._look_along(queue, lanes, taken, wanted, before_others=place < len(alike))
            if outcome == "over":
                return "over"
            whole = whole and outcome == "whole"
        return "whole" if whole else "part"

    async def _look_along(
        self, queue: str, lanes: Sequence[str], taken: list[Job], wanted: Wanted, *, before_others: bool
    ) -> Looked:
        """The same for lanes of one priority, merged by age."""
        left = self._usable(lanes)
        whole = len(left) == len(lanes)
        after: dict[str, int] = {}
        pulls = fruitless = least = 0
        while left and len(taken) < wanted.most:
            number = max(wanted.most - len(taken), least)
            subject, number, end = await self._reader.next_run(left, number, after)
            pulled = await self._reader.pull(subject, queue, number, before_others=before_others)
            pulls += 1
            if not pulled:
                left.remove(subject)
                continue
            tokens = pulled
            if len(left) > 1:
                tokens = [token for token in pulled if token.sequence < end]
                too_soon = [token for token in pulled if token.sequence >= end]
                self._claims.put_back(too_soon)
                after[subject] = max(token.sequence for token in tokens) if tokens else too_soon[0].sequence - 1
                if not tokens:
                    continue
            claimed = await self._claims.claim(queue, tokens, wanted.but(wanted.most - len(taken)))
            taken += claimed.jobs.values()
            least = min(max(2 * number, _FEW_UNFIT), _MANY_UNFIT) if claimed.unfit else 0
            if claimed.stopped:
                self._stopped.put(queue, True, 1)
                return "over"
            if not claimed.jobs and pulls >= _FRUITLESS_PULLS:
                return "over"
            if len(tokens) == len(pulled) < number:  # that was all
                left.remove(subject)
                continue
            if claimed.jobs or claimed.unfit or not claimed.stood:
                continue
            fruitless += 1
            if taken:  # who has something isn't kept waiting while the jobs of a limited key step aside
                left.remove(subject)
                whole = False
            elif fruitless >= _PATIENT_PULLS and self._parking is not None:
                self._parking.begin(queue, subject)
                usable = self._parking.usable(left)
                if not usable:
                    await self._parking.done(subject, self._timings.patience_s)
                    usable = self._parking.usable(left)
                whole, left = whole and len(usable) == len(left), usable
        return "whole" if whole else "part"

    def _usable(self, lanes: Sequence[str]) -> list[str]:
        parking = self._parking
        return list(lanes) if parking is None or not parking.busy else parking.usable(lanes)

    async def _look_in_turn(
        self,
        queue: str,
        subjects: Sequence[str],
        rotation_ms: int,
        taken: list[Job],
        wanted: Wanted,
    ) -> Looked:
        """The same, but priorities that were passed over for the queue's rotation interval come first, with one job each."""
        turns = self._starvation.get(queue)
        if turns is None:
            turns = StarvationClock()
            self._starvation.put(queue, turns, 1)
        now = self._clock.now()
        heads = {priority: list(alike) for priority, alike in groupby(subjects, priority_of)}
        turns.keep(heads)
        tried: list[int] = []
        try:
            for priority in turns.overdue(sorted(heads, reverse=True), rotation_ms, now):
                if len(taken) >= wanted.most:
                    break
                tried.append(priority)
                before = len(taken)
                going = await self._look_through(queue, heads[priority], taken, wanted.but(before + 1))
                if len(taken) > before:
                    if priority != max(heads):
                        metrics.starved(queue)
                elif going == "over":
                    return going
            return await self._look_through(queue, subjects, taken, wanted)
        finally:
            turns.had({*tried, *(job.priority for job in taken)}, now)

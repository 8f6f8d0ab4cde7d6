"""Hand-out: which queue, which priority, which token is next (architecture §5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ojs_nats import metrics
from ojs_nats.errors import OjsError
from ojs_nats.job import Job
from ojs_nats.store.bounds import Bounds
from ojs_nats.store.claims import Claims
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer
from ojs_nats.store.durables import Durables
from ojs_nats.store.gate import Gate
from ojs_nats.store.jobs import Jobs
from ojs_nats.store.link import Link
from ojs_nats.store.lru import Lru
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.pools import Plan, Pools
from ojs_nats.store.pulls import Pulls, priority_of
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records
from ojs_nats.store.returns import Returns
from ojs_nats.store.wake import Wakes
from ojs_nats.turns import Turns

__all__ = ["Handout"]

_FALLBACK_LOOK_S: Final = 1.0
_SECOND_LOOK_S: Final = 0.02
"""A wake may come before its token can be pulled, so a look that it led to in vain is repeated once."""
_FRUITLESS_PULLS: Final = 100
_ROTATED: Final = 1_000
"""Queues that rotate their priorities whose waits this process remembers."""


class Handout:
    """Fetching: priorities from high to low, first come first served within one, queues left to right."""

    def __init__(
        self,
        bulk: Link,
        jobs: Jobs,
        records: Records,
        committer: Committer,
        clock: ServerClock,
        queues: Queues,
        pools: Pools,
        gate: Gate,
        bounds: Bounds,
        config: StoreConfig,
    ) -> None:
        self._queues = queues
        self._pools = pools
        self._gate = gate
        self._bounds = bounds
        self._clock = clock
        self._durables = Durables(bulk, queues, clock, config)
        self._pulls = Pulls(bulk, self._durables, config)
        self._returns = Returns(jobs)
        self.wakes = Wakes(bulk, config)
        self._claims = Claims(bulk, jobs, records, committer, clock, queues, gate, self._returns, self.wakes)
        self._turns: Lru[Turns[int]] = Lru(_ROTATED)
        self._looks: set[asyncio.Task[list[Job]]] = set()
        queues.went_on = self.wakes.wake_queue

    async def fetch(
        self,
        queues: Sequence[str],
        count: int,
        worker: str | None,
        lease_ms: int | None,
        wait_ms: int,
        pool: str | None = None,
    ) -> list[Job]:
        """Claim up to `count` jobs; waits up to `wait_ms` for the first. Returned jobs are active and stored as such.

        `pool` is the worker's, without which it gets nothing from queues of isolated pools.

        A fetch that is cancelled ends at once, and what it has claimed by then, or is just claiming, is given back.
        """
        if wait_ms <= 0 or self.wakes.closed:
            return await self._whole_look(queues, count, worker, lease_ms, pool)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        waiter = await self.wakes.join(queues)
        try:
            while True:
                woken = waiter.woken
                waiter.clear()
                jobs = await self._whole_look(queues, count, worker, lease_ms, pool)
                left = deadline - loop.time()
                if jobs or left <= 0 or self.wakes.closed:
                    return jobs
                await waiter.wait(min(left, _SECOND_LOOK_S if woken else _FALLBACK_LOOK_S))
        finally:
            await self.wakes.leave(waiter)

    def give_back(self, job: Job, reason: str) -> None:
        """Make a claimed job available again whose fetcher is gone before it heard of it; tried until it succeeds."""
        self._returns.give_back(job, reason)

    async def close(self) -> None:
        """Let those who wait go, and finish what is being given back as far as NATS allows it now."""
        self.wakes.wake_all()
        if self._looks:
            await asyncio.wait(self._looks, timeout=1.0)
        await self._returns.close()

    # Looking

    async def _whole_look(
        self, queues: Sequence[str], count: int, worker: str | None, lease_ms: int | None, pool: str | None
    ) -> list[Job]:
        """A look that goes on to its end even if the fetch is cancelled: a claim in flight can't be called back."""
        look = asyncio.create_task(self._look(queues, count, worker, lease_ms, pool), name="look")
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
            self._returns.give_back(job, "its fetch was cancelled")

    async def _look(
        self, queues: Sequence[str], count: int, worker: str | None, lease_ms: int | None, pool: str | None
    ) -> list[Job]:
        taken: list[Job] = []
        queues = await self._pools.open_to(queues, pool)
        plan = await self._pools.plan(queues, count)
        try:
            if plan is not None:
                await self._look_fairly(plan, taken, count, worker, lease_ms)
                return taken
            for queue in queues:
                taken += await self._look_into(queue, count - len(taken), worker, lease_ms)
                if len(taken) >= count:
                    return taken
        except OjsError:
            if not taken:
                raise
            # What is claimed goes out, since nobody else knows of it; the rest of the tokens come back by themselves.
        return taken

    async def _look_fairly(self, plan: Plan, taken: list[Job], count: int, worker: str | None, lease_ms: int | None) -> None:
        """First each queue's share, then the rest from whichever has more; adds to `taken`."""
        given = dict.fromkeys(plan.shares, 0)
        emptied: list[str] = []
        try:
            for shares in (plan.shares, dict.fromkeys(plan.shares, count)):
                for queue, share in shares.items():
                    wanted = min(share, count - len(taken))
                    if wanted <= 0 or queue in emptied:
                        continue
                    found = await self._look_into(queue, wanted, worker, lease_ms)
                    taken += found
                    given[queue] += len(found)
                    if len(found) < wanted:
                        emptied.append(queue)
        finally:
            plan.served(given, emptied)

    async def _look_into(self, queue: str, count: int, worker: str | None, lease_ms: int | None) -> list[Job]:
        """What one queue has, unless it is paused, until its own limit stops it."""
        if await self._queues.held(queue):
            return []
        room = await self._gate.room(queue)
        if room.hit is not None:
            if not self._gate.known_stopped(queue) and await self._pulls.subjects(queue):
                await self._gate.stopped(queue, room.hit)
            return []
        count = min(count, room.number)
        ready = await self._pulls.subjects(queue)
        subjects = list(ready)
        taken: list[Job] = []
        rotation_ms = self._queues.config(queue).rotation_ms
        try:
            if rotation_ms:
                whole = await self._look_in_turn(queue, subjects, rotation_ms, taken, count, worker, lease_ms)
            else:
                whole = await self._look_through(queue, subjects, taken, count, worker, lease_ms)
            if whole and len(taken) < count:
                await self._gate.emptied(queue, taken[-1].id if taken else None)
            await self._bounds.fetched(queue, sum(ready.values()) - len(taken))
        except OjsError:
            if not taken:
                raise
        return taken

    async def _look_through(
        self, queue: str, subjects: Sequence[str], taken: list[Job], count: int, worker: str | None, lease_ms: int | None
    ) -> bool:
        """Claim from one subject after the other until `taken` has `count` jobs; whether there is any use in going on."""
        pulls = 0
        for subject in subjects:
            while len(taken) < count and (tokens := await self._pulls.pull(subject, queue, count - len(taken))):
                claimed = await self._claims.claim(queue, tokens, worker, lease_ms)
                taken += claimed.jobs.values()
                pulls += 1
                # Whoever has something isn't kept waiting while the jobs of a limited key step aside one by one.
                if claimed.stopped or (not claimed.jobs and (pulls >= _FRUITLESS_PULLS or (taken and claimed.stood))):
                    return False
        return True

    async def _look_in_turn(
        self,
        queue: str,
        subjects: Sequence[str],
        rotation_ms: int,
        taken: list[Job],
        count: int,
        worker: str | None,
        lease_ms: int | None,
    ) -> bool:
        """The same, but priorities that were passed over for the queue's rotation interval come first, with one job each."""
        turns = self._turns.get(queue)
        if turns is None:
            turns = Turns()
            self._turns.put(queue, turns, 1)
        now = self._clock.now()
        heads = {priority_of(subject): subject for subject in reversed(subjects)}
        turns.keep(heads)
        tried: list[int] = []
        try:
            for priority in turns.overdue(sorted(heads, reverse=True), rotation_ms, now):
                if len(taken) >= count:
                    break
                tried.append(priority)
                before = len(taken)
                going = await self._look_through(queue, [heads[priority]], taken, before + 1, worker, lease_ms)
                if len(taken) > before:
                    if priority != max(heads):
                        metrics.starved(queue)
                elif not going:
                    return False
            return await self._look_through(queue, subjects, taken, count, worker, lease_ms)
        finally:
            turns.had({*tried, *(job.priority for job in taken)}, now)

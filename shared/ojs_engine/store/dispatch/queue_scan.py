"""The scan of one queue: priorities from high to low, first come first served within one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Final, Literal

from ojs_engine.base.errors import OjsError
from ojs_engine.base.lru import Lru
from ojs_engine.domain.job import Job
from ojs_engine.domain.starvation import StarvationClock
from ojs_engine.jetstream.subjects import lane_of
from ojs_engine.store.capacity.capacity import Capacity
from ojs_engine.store.dispatch.claims import Claims
from ojs_engine.store.dispatch.lanes import MergedLanes
from ojs_engine.store.dispatch.ready_stream import ReadyStream
from ojs_engine.store.dispatch.request import FetchRequest
from ojs_engine.store.dispatch.requeuer import Requeuer
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.dispatch.token_parking import TokenParking
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.gates import QueueGate, StartGate
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import priority_of
from ojs_engine.telemetry import metrics

_FRUITLESS_PULLS: Final = 100
_PATIENT_PULLS: Final = 2
"""Pulls of nothing but blocked tokens after which they are held many at a time."""
_FEW: Final = 8
_MANY: Final = 64
"""Tokens that are taken together while their jobs are for other workers: the more, the more of them are met."""
_ROTATED: Final = 1_000
"""Queues that rotate their priorities whose waits this process remembers."""
_STOPPED: Final = 10_000
"""Queues of which this process remembers that their gates stopped them."""

Scanned = Literal["whole", "part", "over"]
"""How much of a queue was scanned: everything; or what blocked tokens leave to be had while they are being held; or it
is of no use to go on.
"""


class QueueScan:
    """Claims what one queue has."""

    def __init__(
        self,
        bucket: Bucket,
        queues: Queues,
        capacity: Capacity,
        gate: StartGate | None,
        stream: ReadyStream,
        reader: TokenReader,
        claims: Claims,
        parking: TokenParking | None,
        requeuer: Requeuer,
        wakeups: Wakeups,
        timings: DispatchTimings,
    ) -> None:
        self._queues = queues
        self._capacity = capacity
        self._clock = bucket.clock
        self._gate = gate
        self._stream = stream
        self._reader = reader
        self._claims = claims
        self._parking = parking
        self._requeuer = requeuer
        self._wakeups = wakeups
        self._timings = timings
        self._starvation: Lru[StarvationClock[int]] = Lru(_ROTATED)
        self._stopped: Lru[bool] = Lru(_STOPPED)
        """Queues that this process has seen stopped by their gates, and not empty since."""

    async def jobs(self, queue: str, request: FetchRequest) -> list[Job]:
        """Claim what a queue has, unless it is paused, until its gate stops it. Raises OjsError if that brings nothing."""
        subjects = self._known(queue)
        if subjects is not None and not subjects:
            return []
        if await self._queues.held(queue):
            return []
        if (gate := self._queues.gate(queue)) is not None:
            request = request.but(min(request.most, await self._room(gate, queue)))
            if request.most <= 0:
                return []
        ready: dict[str, int] | None = None
        if subjects is None:
            ready = await self._stream.subjects(queue)
            subjects = list(ready)
        takes = subjects if request.handled is None else [subject for subject in subjects if request.takes(subject)]
        taken: list[Job] = []
        rotation_ms = self._queues.config(queue).rotation_ms
        try:
            with self._requeuer.unless_handed_on(taken):
                if rotation_ms:
                    scanned = await self._rotate(queue, takes, rotation_ms, taken, request)
                else:
                    scanned = await self._scan_priorities(queue, takes, taken, request)
                whole = scanned == "whole" and len(takes) == len(subjects)
                if whole and len(taken) < request.most and self._stopped.get(queue):
                    await self._emptied(queue, taken[-1].id if taken else None)
                if ready is not None:
                    await self._capacity.fetched(queue, sum(ready.values()) - len(taken))
        except OjsError:
            if not taken:
                raise
        return taken

    async def _room(self, gate: QueueGate, queue: str) -> int:
        """Return how many jobs the queue's gate lets start. If it lets none and some wait, say so where that is news."""
        room = await gate.room(queue)
        if room.announce is None:
            return room.number
        if not self._stopped.get(queue) and await self._stream.subjects(queue):
            await room.announce()
            self._stopped.put(queue, True, 1)
        return 0

    async def _emptied(self, queue: str, last: str | None) -> None:
        """Say that a queue has no more jobs which its gate has stopped; the last was `last`."""
        self._stopped.drop(queue)
        if self._gate is not None:
            await self._gate.emptied(queue, last)

    def _known(self, queue: str) -> list[str] | None:
        """Return the ready subjects that may have tokens to give, as far as that is known without asking the stream.

        None if it isn't, or if more is needed than that: for a queue that is bounded or stopped by its gate, or whose
        priorities take turns.
        """
        config = self._queues.config(queue)
        if config.max_size or config.rotation_ms or self._stopped.get(queue):
            return None
        known = self._wakeups.ready(queue)
        now = asyncio.get_running_loop().time()
        return known.giving(now) if known is not None and known.sure(now) else None

    async def _scan_priorities(self, queue: str, subjects: Sequence[str], taken: list[Job], request: FetchRequest) -> Scanned:
        """Claim from one priority after the other until `taken` has as many jobs as are wanted."""
        whole = True
        alike = [list(lanes) for _, lanes in groupby(subjects, lambda one: (priority_of(one), lane_of(one) == "front"))]
        for place, lanes in enumerate(alike, 1):
            scanned = await self._take_from(queue, lanes, taken, request, before_others=place < len(alike))
            if scanned == "over":
                return "over"
            whole = whole and scanned == "whole"
        return "whole" if whole else "part"

    async def _take_from(
        self, queue: str, lanes: Sequence[str], taken: list[Job], request: FetchRequest, *, before_others: bool
    ) -> Scanned:
        """Claim from the lanes of one priority."""
        parking = self._parking
        usable = lanes if parking is None or not parking.busy else parking.usable(lanes)
        merged = MergedLanes(self._stream, self._reader, queue, usable, before_others=before_others)
        whole = len(usable) == len(lanes)
        fruitless = least = 0
        while len(taken) < request.most:
            run = await merged.next(max(request.most - len(taken), least))
            if run is None:
                break
            claimed = await self._claims.claim(queue, run.tokens, request.but(request.most - len(taken)))
            taken += claimed.jobs.values()
            least = min(max(2 * run.asked, _FEW), _MANY) if claimed.for_other_workers else 0
            if claimed.stopped:
                self._stopped.put(queue, True, 1)
                return "over"
            if not claimed.jobs and merged.pulls >= _FRUITLESS_PULLS:
                return "over"
            if run.end:
                merged.left.remove(run.lane)
                continue
            if claimed.jobs or claimed.for_other_workers or not claimed.found_live:
                continue
            fruitless += 1
            if taken:  # who has something isn't kept waiting while blocked jobs step aside
                merged.left.remove(run.lane)
                whole = False
            elif fruitless >= _PATIENT_PULLS and parking is not None:
                whole = await self._park(parking, queue, run.lane, merged) and whole
        return "whole" if whole else "part"

    async def _park(self, parking: TokenParking, queue: str, lane: str, merged: MergedLanes) -> bool:
        """Have blocked tokens at the head of a lane held, and go on with the other lanes. Return whether all are left."""
        parking.begin(queue, lane)
        usable = parking.usable(merged.left)
        if not usable:
            await parking.done(lane, self._timings.patience_s)
            usable = parking.usable(merged.left)
        all_left = len(usable) == len(merged.left)
        merged.left = usable
        return all_left

    async def _rotate(
        self,
        queue: str,
        subjects: Sequence[str],
        rotation_ms: int,
        taken: list[Job],
        request: FetchRequest,
    ) -> Scanned:
        """Scan all priorities, but first those that were passed over for the rotation interval, with one job each."""
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
                if len(taken) >= request.most:
                    break
                tried.append(priority)
                before = len(taken)
                scanned = await self._scan_priorities(queue, heads[priority], taken, request.but(before + 1))
                if len(taken) > before:
                    if priority != max(heads):
                        metrics.starved(queue)
                elif scanned == "over":
                    return scanned
            return await self._scan_priorities(queue, subjects, taken, request)
        finally:
            turns.had({*tried, *(job.priority for job in taken)}, now)

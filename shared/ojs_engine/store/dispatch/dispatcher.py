"""Fetching: request -> order of queues -> scan of one -> admission -> claim, with the wait around it, and giving back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from ojs_engine.domain.handlers import Handled
from ojs_engine.domain.job import Job
from ojs_engine.store.capacity.capacity import Capacity
from ojs_engine.store.dispatch.admission import Admissions
from ojs_engine.store.dispatch.claims import Claims
from ojs_engine.store.dispatch.in_hand import TokensInHand
from ojs_engine.store.dispatch.order import QueueScans
from ojs_engine.store.dispatch.queue_consumers import QueueConsumers
from ojs_engine.store.dispatch.queue_scan import QueueScan
from ojs_engine.store.dispatch.ready_stream import ReadyStream
from ojs_engine.store.dispatch.request import FetchRequest, GivenUp, never_given_up
from ojs_engine.store.dispatch.requeuer import Requeuer
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.dispatch.token_parking import TokenParking
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.dispatch.waiting import FetchWait
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.gates import QueueOrder, StartGate
from ojs_engine.store.jobs.jobs import Jobs
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket

log = structlog.get_logger(__name__)


class Dispatcher:
    """Hands jobs to those who fetch them."""

    def __init__(
        self,
        bucket: Bucket,
        queues: Queues,
        capacity: Capacity,
        jobs: Jobs,
        order: QueueOrder | None,
        gate: StartGate | None,
        timings: DispatchTimings,
    ) -> None:
        self._clock = bucket.clock
        self.wakeups = wakeups = Wakeups(bucket, timings.wakeups)
        self.consumers = QueueConsumers(bucket, queues, timings.consumers)
        self.reader = reader = TokenReader(bucket, self.consumers, queues, wakeups, timings.tokens)
        self.stream = stream = ReadyStream(bucket, wakeups, timings.tokens)
        self._requeuer = requeuer = Requeuer(jobs)
        in_hand = TokensInHand(bucket, reader, queues, gate, timings.claims)
        admissions = Admissions(bucket, reader, in_hand, jobs, queues, gate, wakeups)
        claims = Claims(bucket, in_hand, admissions, jobs, gate, requeuer, timings.claims)
        self._parking = parking = None if gate is None else TokenParking(bucket, gate, reader, in_hand, wakeups)
        scan = QueueScan(bucket, queues, capacity, gate, stream, reader, claims, parking, requeuer, wakeups, timings)
        self.scans = QueueScans(order, scan, stream, wakeups, requeuer, timings)
        self._wait = FetchWait(self.scans, wakeups, parking, timings)
        queues.resumed.append(wakeups.wake_queue)

    async def fetch(
        self,
        queues: Sequence[str],
        count: int,
        worker: str | None,
        lease_ms: int | None,
        wait_ms: int,
        pool: str | None = None,
        given_up: GivenUp = never_given_up,
        handled: Handled | None = None,
    ) -> list[Job]:
        """Claim up to `count` jobs; waits up to `wait_ms` for the first. Returned jobs are active and stored as such.

        `given_up` is asked once a second meanwhile, and says that the client has left. `pool` is what the worker
        names for the order of queues; `handled` what it can run, without which it gets any job.

        A fetch that is cancelled ends at once, and what it has claimed by then, or is just claiming, is given back.
        """
        request = FetchRequest(queues, count, worker, lease_ms, handled, pool)
        if wait_ms <= 0 or self.wakeups.closed:
            return self._unended(await self._wait.at_once(request))
        deadline = asyncio.get_running_loop().time() + wait_ms / 1_000
        return self._unended(await self._wait.until(deadline, request, given_up))

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

        All are at first; a caller takes out each job that it hands on.
        """
        undelivered = {job.id for job in jobs}
        try:
            yield undelivered
        finally:
            self.take_back([job for job in jobs if job.id in undelivered])

    def take_back(self, jobs: Iterable[Job], reason: str = "its fetch was not answered") -> None:
        """Give back claimed jobs that no worker has."""
        for job in jobs:
            self._requeuer.give_back(job, reason)

    def fail(self, job: Job, reason: str) -> None:
        """End the attempt of a claimed job that can't be handed out, as its worker would; tried until it succeeds."""
        self._requeuer.give_back(job, reason, failed=True)

    async def close(self) -> None:
        """Let those who wait go, and finish what is being given back as far as NATS allows it now."""
        self.wakeups.wake_all()
        await self.scans.close()
        if self._parking is not None:
            await self._parking.close()
        await self._requeuer.close()

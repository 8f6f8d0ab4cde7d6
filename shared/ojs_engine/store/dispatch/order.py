"""In which order the queues of a fetch are scanned: from left to right, or as the order of a feature shares it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.store.dispatch.queue_scan import QueueScan
from ojs_engine.store.dispatch.ready_stream import ReadyStream
from ojs_engine.store.dispatch.request import FetchRequest
from ojs_engine.store.dispatch.requeuer import Requeuer
from ojs_engine.store.dispatch.skipped_queues import SkippedQueues
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.gates import FetchPlan, QueueOrder


class QueueScans:
    """Scans of all queues of a fetch."""

    def __init__(
        self,
        order: QueueOrder | None,
        queue_scan: QueueScan,
        stream: ReadyStream,
        wakeups: Wakeups,
        requeuer: Requeuer,
        timings: DispatchTimings,
    ) -> None:
        self._order = order
        self._queue_scan = queue_scan
        self._stream = stream
        self._wakeups = wakeups
        self._requeuer = requeuer
        self._timings = timings
        self._abandoned: set[asyncio.Task[list[Job]]] = set()

    async def shielded(self, request: FetchRequest, *, last: bool = False) -> list[Job]:
        """Scan to the end even if the fetch is cancelled: a claim in flight can't be called back.

        The `last` scan of a fetch asks the stream if it finds nothing: another process may have answered a push whose
        token is still to be heard of here. Raises OjsError only if none of the queues can be served.
        """
        scan = asyncio.create_task(self.scan(request, last=last), name="scan")
        try:
            return await asyncio.shield(scan)
        except asyncio.CancelledError:
            self._abandoned.add(scan)
            scan.add_done_callback(self._give_back)
            raise

    async def close(self) -> None:
        """Wait for the scans of cancelled fetches."""
        if self._abandoned:
            await asyncio.wait(self._abandoned, timeout=self._timings.close_s)

    def _give_back(self, scan: asyncio.Task[list[Job]]) -> None:
        self._abandoned.discard(scan)
        if scan.cancelled() or scan.exception() is not None:
            return  # what it claimed was given back, or nothing was
        for job in scan.result():
            self._requeuer.give_back(job, "its fetch was cancelled")

    async def scan(self, request: FetchRequest, *, last: bool) -> list[Job]:
        """Scan once. Claimed jobs are returned though a queue fails, since no other process knows of them; the other
        tokens come back by themselves.
        """
        taken: list[Job] = []
        queues, plan, order = request.queues, None, self._order
        if order is not None:
            if order.queues is None:
                await order.learn()
            if order.queues and not order.queues.isdisjoint(queues):
                queues = order.open_to(queues, request.pool)
                plan = order.plan(queues, request.most)
        began = asyncio.get_running_loop().time()
        with self._requeuer.unless_handed_on(taken):
            unsure = [queue for queue in queues if not self._is_sure(queue, began)]
            skipped = await self._asked(self._stream.learn, unsure)
            await self._scan_queues(queues, skipped, plan, taken, request)
            if last and not taken and (doubtful := [queue for queue in queues if not self._was_asked(queue, began)]):
                skipped = await self._asked(self._stream.subjects, doubtful)
                await self._scan_queues(queues, skipped, plan, taken, request)
        skipped.judge(found=bool(taken))
        return taken

    async def _asked(self, ask: Callable[[str], Awaitable[Any]], queues: Sequence[str]) -> SkippedQueues:
        """Ask about queues, all at once; skip those about which there was no answer."""
        skipped = SkippedQueues(self._timings.slow_s)
        answers = await asyncio.gather(*map(ask, queues), return_exceptions=True) if queues else []
        for queue, answer in zip(queues, answers, strict=True):
            if isinstance(answer, OjsError):
                skipped.queues[queue] = answer
            elif isinstance(answer, BaseException):
                raise answer
        return skipped

    def _is_sure(self, queue: str, now: float) -> bool:
        known = self._wakeups.ready(queue)
        return known is not None and known.sure(now)

    def _was_asked(self, queue: str, since: float) -> bool:
        known = self._wakeups.ready(queue)
        return known is not None and known.asked_at >= since

    async def _scan_queues(
        self, queues: Sequence[str], skipped: SkippedQueues, plan: FetchPlan | None, taken: list[Job], request: FetchRequest
    ) -> None:
        """Add to `taken` the jobs of the queues."""
        if plan is not None:
            await self._scan_fairly(plan, skipped, taken, request)
            return
        for queue in queues:
            if queue in skipped.queues:
                continue
            with skipped.skipping(queue):
                taken += await self._queue_scan.jobs(queue, request.but(request.most - len(taken)))
            if len(taken) >= request.most or skipped.enough:
                break

    async def _scan_fairly(self, plan: FetchPlan, skipped: SkippedQueues, taken: list[Job], request: FetchRequest) -> None:
        """Add to `taken` first each queue's share, then the rest from each queue that has more."""
        given = dict.fromkeys(plan.shares, 0)
        emptied: list[str] = []
        try:
            for shares in (plan.shares, dict.fromkeys(plan.shares, request.most)):
                for queue, share in shares.items():
                    part = request.but(min(share, request.most - len(taken)))
                    if part.most <= 0 or queue in emptied or queue in skipped.queues or skipped.enough:
                        continue
                    with skipped.skipping(queue):
                        found = await self._queue_scan.jobs(queue, part)
                        taken += found
                        given[queue] += len(found)
                        if len(found) < part.most:
                            emptied.append(queue)
        finally:
            plan.served(given, emptied)

"""The facts around a job that decide why it is where it is."""

from __future__ import annotations

import asyncio

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.operations.finding import Reason
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_features.context import HandlerContext
from ojs_features.findings.reasons import JobFacts
from ojs_index.asking.messages import MAX_PAGE, WorkersAsk
from ojs_index.asking.numbers import Levels


class Surroundings:
    """The facts that decide why a job is where it is."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._why = context.known.reasons
        self._queries = context.queries

    async def facts(self, job: Job, *, whole: bool) -> JobFacts:
        """Gather the facts around a job. `whole` says whether the caller may see all of its queue.

        Without it the facts name neither the jobs before this one nor the workers.
        """
        store, now = self._store, self._store.clock.now()
        if job.terminal:
            return JobFacts(now=now)
        if job.state is State.ACTIVE:
            return JobFacts(now=now, holder=None if job.worker is None else await store.workers.get(job.worker))
        maintenance, restored = await asyncio.gather(store.queues.under_maintenance(), store.queues.restored())
        if job.state is not State.AVAILABLE:
            return JobFacts(now=now, maintenance=maintenance, restored=restored)
        record, blocked = await asyncio.gather(store.queues.get(job.queue), self._blocked(job))
        levels, workers = await asyncio.gather(self._levels(job), self._workers(job)) if whole else ({}, None)
        return JobFacts(
            now=now,
            maintenance=maintenance,
            restored=restored,
            paused=record is not None and record.held,
            blocked=blocked,
            higher=sum(number for priority, number in levels.items() if priority > job.priority),
            beside=max(0, levels.get(job.priority, 0) - 1),
            workers=workers,
        )

    async def _blocked(self, job: Job) -> list[Reason]:
        found = await asyncio.gather(*(why(self._store, job) for why in self._why))
        return [reason for of_feature in found for reason in of_feature]

    async def _levels(self, job: Job) -> dict[int, int]:
        try:
            found = await self._queries.levels(job.queue)
        except OjsError:
            found = Levels(counts={})
        return found.counts

    async def _workers(self, job: Job) -> list[WorkerRecord] | None:
        """Running workers that name its queue, up to a page of them; None if nobody knows."""
        try:
            page = await self._queries.workers(WorkersAsk(state="running", queue=job.queue, limit=MAX_PAGE))
        except OjsError:
            return None
        if page.partial:
            return None
        return [worker.record for worker in page.workers if job.queue in worker.record.queues]

"""Why a job is where it is: gathers what is around it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ojs_core.api.call import Call, Response
from ojs_core.base.errors import OjsError
from ojs_core.base.ids import job_id_of
from ojs_core.domain.job import Job, State
from ojs_core.domain.rate_limits.policy import policy_of, policy_of_queue
from ojs_core.operations.why import JobFacts, LimitHit, reasons
from ojs_core.read.messages import MAX_PAGE, WorkersAsk
from ojs_core.read.numbers import Levels
from ojs_core.store.rate_limits.permits import key_scope, queue_scope
from ojs_core.store.workers.presence import WorkerRecord
from ojs_core.wire.jobs.why import explanation
from ojs_gateway.context import Context


class WhyHandlers:
    """Handlers of /admin/jobs/{id}/why."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._surroundings = Surroundings(context)

    async def read(self, call: Call) -> Response:
        """GET /admin/jobs/{id}/why: without a projector, without what only the index knows."""
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        facts = await self._surroundings.facts(job, whole=call.sees(job.queue))
        return Response(200, explanation(job, reasons(job, replace(facts, hides=call.hides))))


class Surroundings:
    """The facts that decide why a job is where it is."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
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
        record, limits = await asyncio.gather(store.queues.get(job.queue), self._limits(job))
        levels, workers = await asyncio.gather(self._levels(job), self._workers(job)) if whole else ({}, None)
        return JobFacts(
            now=now,
            maintenance=maintenance,
            restored=restored,
            paused=record is not None and record.held,
            limits=limits,
            higher=sum(number for priority, number in levels.items() if priority > job.priority),
            beside=max(0, levels.get(job.priority, 0) - 1),
            workers=workers,
        )

    async def _limits(self, job: Job) -> list[LimitHit]:
        """Those of its key and of its queue that leave no room now."""
        await self._store.queues.settings(job.queue)
        asked, own = policy_of(job), policy_of_queue(self._store.queues.config(job.queue))
        looked = []
        if asked is not None:
            looked.append((asked.key, asked))
        if own is not None:
            looked.append((None, own))
        found = []
        for key, policy in looked:
            room = await self._store.permits.room(queue_scope(job.queue) if key is None else key_scope(key), policy)
            if room.number <= 0 and room.hit is not None:
                found.append(LimitHit(key=key, hit=room.hit, until=room.at))
        return found

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

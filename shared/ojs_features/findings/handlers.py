"""The handlers of findings and reasons: they gather the facts that the rules judge (docs/adr/018)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from ojs_api.findings import Findings
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import job_id_of
from ojs_engine.domain.job import State
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.jetstream.streams import describe, faulty_server
from ojs_engine.operations.finding import SHOWN, Finding, Reason
from ojs_features.context import HandlerContext
from ojs_features.findings import server_rules as server
from ojs_features.findings import work_rules as work
from ojs_features.findings.answers import explanation, findings_answer, unknown, worst_first
from ojs_features.findings.facts import Surroundings
from ojs_features.findings.reasons import reasons
from ojs_features.findings.timings import FindingTimings
from ojs_index.asking.messages import QueueFacts, UnreadableAsk, WorkersAsk
from ojs_runtime.stream_check import streams

_MOST_WORKERS: Final = 200


class FindingHandlers:
    """Handlers of /admin/findings."""

    def __init__(self, context: HandlerContext) -> None:
        self._known = context.known
        self._store = context.store
        self._queries = context.queries
        self._surroundings = Surroundings(context)
        self._timings = context.store.bucket.timings(FindingTimings)
        self._checks: dict[str, Callable[[], Awaitable[Iterable[Finding]]]] = {
            "nats": self._nats,
            "storage": self._storage,
            "streams": self._streams,
            "services": self._services,
            "mixed versions": self._versions,
            "projector": self._projector,
            "records": self._records,
            "lost records": self._lost,
            "maintenance": self._maintenance,
            "queues": self._queues,
            "workers": self._workers,
            **{check.name: partial(check.look, context.store, context.queries) for check in self._known.checks},
            "durability": self._durability,
        }
        self._looking: asyncio.Task[Findings] | None = None
        self._looked_at = 0.0

    async def read(self, _call: Call) -> Response:
        """GET /admin/findings: one look is for all who ask within a second."""
        now = asyncio.get_running_loop().time()
        if self._looking is None or (self._looking.done() and now - self._looked_at >= self._timings.findings_s):
            self._looked_at = now
            self._looking = asyncio.create_task(self._look(), name="findings")
        return Response(200, await asyncio.shield(self._looking))

    async def _look(self) -> Findings:
        found = await asyncio.gather(*(self._one(name, check) for name, check in self._checks.items()))
        listed = worst_first(one for findings in found for one in findings)
        return findings_answer(listed, list(self._checks), self._store.clock.now())

    async def _one(self, name: str, check: Callable[[], Awaitable[Iterable[Finding]]]) -> list[Finding]:
        try:
            return list(await check())
        except OjsError as error:
            return [unknown(name, error.message)]

    async def _nats(self) -> Iterable[Finding]:
        try:
            latency_ms = await self._store.ready()
        except OjsError as error:
            return server.nats(None, error.message, None)
        faulty = faulty_server(self._store.server_version)
        return server.nats(latency_ms, None, self._known.damage(), faulty)

    async def _storage(self) -> Iterable[Finding]:
        room = self._store.room
        return server.storage(room.levels, room.shortage, room.trouble)

    async def _streams(self) -> Iterable[Finding]:
        return streams(await describe(self._store.nats, self._store.config))

    async def _services(self) -> Iterable[Finding]:
        return server.services(self._known.missing(), self._known.without)

    async def _versions(self) -> Iterable[Finding]:
        return server.versions(await self._store.presence.lately())

    async def _projector(self) -> Iterable[Finding]:
        try:
            return server.projector(await self._queries.status(), None)
        except OjsError as error:
            return server.projector(None, error.message)

    async def _records(self) -> Iterable[Finding]:
        return server.records(await self._queries.unreadable(UnreadableAsk(limit=SHOWN)))

    async def _lost(self) -> Iterable[Finding]:
        lost = self._store.watches.lost
        return server.lost(lost.names, lost.missing)

    async def _maintenance(self) -> Iterable[Finding]:
        store = self._store
        return work.maintenance(await store.queues.get(MAINTENANCE), store.clock.now(), store.config.namespace)

    async def _queues(self) -> Iterable[Finding]:
        queues = self._store.queues
        records, intervals, held = await asyncio.gather(queues.all(), self._intervals(), queues.under_maintenance())
        paused = tuple(name for name, record in records.items() if record.held)
        found = await self._queries.concerns(paused)
        now = self._store.clock.now()
        late = work.late(found.queues, paused, intervals, now, held=held)
        causes = await asyncio.gather(*map(self._cause, late))
        named = {queue.name: cause for queue, cause in zip(late, causes, strict=True) if cause is not None}
        return [
            *work.queues(found.queues, paused, intervals, now, held=held, causes=named),
            *server.limits(found.known, self._store.config.busy_queues),
        ]

    async def _intervals(self) -> Mapping[str, int]:
        return {} if self._store.order is None else await self._store.order.intervals()

    async def _cause(self, queue: QueueFacts) -> Reason | None:
        """Return why the oldest job of a queue waits although the queue has workers.

        None where more workers would help, where the index is behind, and where the job can't be read.
        """
        if queue.oldest_id is None:
            return None
        try:
            job = await self._store.jobs.get(queue.oldest_id)
            facts = await self._surroundings.facts(job, whole=True)
        except OjsError:
            return None
        if job.queue != queue.name or job.state is not State.AVAILABLE:
            return None
        return next((reason for reason in reasons(job, facts) if reason.code in work.CAUSES), None)

    async def _workers(self) -> Iterable[Finding]:
        return work.workers(await self._queries.workers(WorkersAsk(state="stale", limit=_MOST_WORKERS)))

    async def _durability(self) -> Iterable[Finding]:
        return server.durability(self._store.config.replicas, test_mode=self._known.test_mode)


class WhyHandlers:
    """Handlers of /admin/jobs/{id}/why."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._surroundings = Surroundings(context)

    async def read(self, call: Call) -> Response:
        """GET /admin/jobs/{id}/why: without a projector, without what only the index knows."""
        job = call.own(await self._store.jobs.get(job_id_of(call.parameters[0])))
        facts = await self._surroundings.facts(job, whole=call.sees(job.queue))
        return Response(200, explanation(job, reasons(job, replace(facts, hides=call.hides))))

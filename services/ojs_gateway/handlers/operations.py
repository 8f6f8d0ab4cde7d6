"""The system as a whole: maintenance, what it is set to, its middleware (ojs-admin-api §12)."""

from __future__ import annotations

from importlib.metadata import version

import structlog

from ojs_engine.api.call import Call, Response
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import maintenance_ended
from ojs_engine.wire.system.maintenance import maintenance_answer, parse_maintenance
from ojs_engine.wire.system.overview import BackendConfig, MiddlewareAnswer, SystemConfig
from ojs_engine.wire.system.services import service_list
from ojs_gateway.context import Context

log = structlog.get_logger(__name__)


class OperationHandlers:
    """Handlers under /admin/system."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits

    async def maintenance(self, _call: Call) -> Response:
        """GET /admin/system/maintenance."""
        record = await self._store.queues.get(MAINTENANCE)
        return Response(200, maintenance_answer(record, self._store.clock.now()))

    async def maintain(self, call: Call) -> Response:
        """POST /admin/system/maintenance `{enabled, reason, duration, estimated_duration}`: once it is answered,
        nothing is fetched from any queue, and nothing that was delayed becomes available.
        """
        queues = self._store.queues
        plan = await call.parsed(
            await call.body(self._limits.max_control_bytes), parse_maintenance, self._store.clock.now(), self._limits
        )
        if plan is None:
            record = await queues.change(MAINTENANCE, maintenance_ended)
        else:
            record = await queues.hold_all(plan)
        log.info("maintenance has ended" if plan is None else "maintenance has begun", reason=plan and plan.reason)
        return Response(200, maintenance_answer(record, self._store.clock.now()))

    async def services(self, _call: Call) -> Response:
        """GET /admin/services: the processes that were heard of within ten seconds."""
        return Response(200, service_list(await self._store.presence.lately()))

    async def config(self, _call: Call) -> Response:
        """GET /admin/system/config: what this gateway is set to; nothing in it is secret."""
        store = self._store
        answer = SystemConfig(
            version=version("ojs-nats-server"),
            backend=BackendConfig(
                type="nats",
                server_version=store.server_version,
                namespace=store.config.namespace,
                replicas=store.config.replicas,
                streams=[store.config.records_stream, store.config.ready_stream, store.config.events_stream],
            ),
            limits=self._limits.sizes(),
            test_mode=self._context.settings.test_mode,
            middleware=[],
        )
        return Response(200, answer)

    async def middleware(self, _call: Call) -> Response:
        """GET /middleware: none. The official admin UI asks for it."""
        return Response(200, MiddlewareAnswer([], []))

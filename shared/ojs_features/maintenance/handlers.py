"""Handlers of maintenance (ojs-admin-api §12)."""

from __future__ import annotations

import structlog

from ojs_engine.api.call import Call, Response
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import maintenance_ended
from ojs_features.context import HandlerContext
from ojs_features.maintenance.answers import maintenance_answer, parse_maintenance

log = structlog.get_logger(__name__)


class MaintenanceHandlers:
    """Handlers of /admin/system/maintenance."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._limits = context.limits

    async def read(self, _call: Call) -> Response:
        """GET /admin/system/maintenance."""
        record = await self._store.queues.get(MAINTENANCE)
        return Response(200, maintenance_answer(record, self._store.clock.now()))

    async def change(self, call: Call) -> Response:
        """POST /admin/system/maintenance `{enabled, reason, duration, estimated_duration}`: once it is answered,
        nothing is fetched from any queue, and nothing that was delayed becomes available.
        """
        plan = await call.parsed(
            await call.body(self._limits.max_control_bytes), parse_maintenance, self._store.clock.now(), self._limits
        )
        if plan is None:
            record = await self._store.queues.change(MAINTENANCE, maintenance_ended)
        else:
            record = await self._store.queues.hold_all(plan)
        log.info("maintenance has ended" if plan is None else "maintenance has begun", reason=plan and plan.reason)
        return Response(200, maintenance_answer(record, self._store.clock.now()))

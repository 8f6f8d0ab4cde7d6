"""What the server says of itself: manifest, health, and the reset of test mode."""

from __future__ import annotations

from functools import partial
from typing import Final

import structlog
from msgspec.structs import replace

from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError, unavailable
from ojs_gateway.answers.debugging import DebugStatus, projector_answer
from ojs_gateway.answers.health import BackendHealth, Liveness, ServicesHealth, health, storage_health
from ojs_gateway.answers.manifest import OJS_VERSION, manifest
from ojs_gateway.answers.overview import ResetAnswer
from ojs_gateway.context import Context
from ojs_gateway.http.compression import SUPPORTED
from ojs_runtime.health import DRAINING

log = structlog.get_logger(__name__)

_VERSION_HEADER: Final = (("X-OJS-Version", OJS_VERSION),)
"""What the CLI's audit looks for there."""


class SystemHandlers:
    """Handlers that are not about one job."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._manifest: tuple[bool, Response] | None = None
        """The answer, and whether it says that keys are asked for."""

    async def manifest(self, _call: Call) -> Response:
        """GET /ojs/manifest. The first time, nats-server is asked for the size of its batches."""
        context = self._context
        asks = context.guard.callers.any
        if self._manifest is not None and self._manifest[0] is asks:
            return self._manifest[1]
        limits, busy = context.limits, self._store.config.busy_queues
        offered = context.extensions.all
        of_features = [name for feature in context.features for name in feature.capabilities]
        prefix = context.settings.path_prefix
        described = partial(
            manifest,
            compression=SUPPORTED,
            extensions=offered,
            of_features=of_features,
            nats=context.nats_api,
            keys=asks,
            prefix=prefix,
        )
        room = await self._store.atomic.room_for(limits.max_batch_jobs)
        if room is None:
            return Response(200, described(limits, busy))
        limits = replace(limits, max_batch_jobs=room)
        answer = Response(200, described(limits, busy))
        self._manifest = asks, answer
        return answer

    async def health(self, _call: Call) -> Response:
        """GET /health, /readyz: 200 while NATS stores what is written, 503 with the reason while it does not, or while the
        gateway drains.

        `degraded` and 200: part of the work waits, which taking this gateway out of service would not help (docs/adr/010).
        """
        room, roles = self._store.room, self._context.roles
        storage = storage_health(room.levels, shortage=room.shortage, trouble=room.trouble is not None)
        services = ServicesHealth(roles.processes, roles.missing)
        try:
            if self._context.draining():
                raise unavailable(DRAINING)
            latency_ms = await self._store.ready()
        except OjsError as error:
            backend = BackendHealth(type="nats", status="unhealthy", error=error.message)
            answer = health(backend, storage, services, self._context.uptime_s)
            return Response(503, answer, (("Retry-After", str(error.retry_after or 1)),))
        backend = BackendHealth(type="nats", status="healthy", latency_ms=round(latency_ms))
        if (damage := self._context.damage.found) is not None:
            backend = replace(backend, status="damaged", error=damage)
        return Response(200, health(backend, storage, services, self._context.uptime_s), _VERSION_HEADER)

    async def alive(self, _call: Call) -> Response:
        """GET /healthz: the process runs, whatever NATS does."""
        return Response(200, Liveness("ok", self._context.uptime_s))

    async def status(self, _call: Call) -> Response:
        """GET /debug/status: also while there is no projector, or NATS is away."""
        roles = self._context.roles
        answer = DebugStatus(
            instance=self._store.instance,
            uptime_seconds=self._context.uptime_s,
            nats_server_version=self._store.server_version,
            services=ServicesHealth(roles.processes, roles.missing),
        )
        try:
            answer.projector = projector_answer(await self._context.queries.status())
        except OjsError as error:
            answer.error = error.message
        return Response(200, answer)

    async def reset(self, _call: Call) -> Response:
        """POST /admin/reset, in test mode only: wipes everything, and answers when every service has forgotten it, too."""
        await self._store.reset(reader.kind for feature in self._context.features for reader in feature.records)
        log.info("everything was reset")
        return Response(200, ResetAnswer(True))

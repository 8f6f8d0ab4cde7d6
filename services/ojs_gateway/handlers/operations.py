"""The system as a whole: its processes, what it is set to, its middleware (ojs-admin-api §12)."""

from __future__ import annotations

from importlib.metadata import version

from ojs_engine.api.call import Call, Response
from ojs_gateway.answers.overview import BackendConfig, MiddlewareAnswer, SystemConfig
from ojs_gateway.answers.services import service_list
from ojs_gateway.context import Context


class OperationHandlers:
    """Handlers under /admin/system."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits

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

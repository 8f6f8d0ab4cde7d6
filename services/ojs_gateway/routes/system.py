"""What the server says of itself."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.route import Other, Parameter, Part, Route
from ojs_engine.api.schema import one_of
from ojs_engine.telemetry import metrics
from ojs_gateway.answers.debugging import DebugStatus
from ojs_gateway.answers.health import Health, Liveness
from ojs_gateway.answers.manifest import Manifest
from ojs_gateway.answers.overview import MiddlewareAnswer, ResetAnswer, SystemConfig, SystemMetrics
from ojs_gateway.answers.services import ServiceList
from ojs_gateway.handlers.metrics import MetricHandlers
from ojs_gateway.handlers.operations import OperationHandlers
from ojs_gateway.handlers.system import SystemHandlers

_EXPOSITION: Final = Other(metrics.CONTENT_TYPE, "In the text format of Prometheus.")

SYSTEM: Final = Part(
    "System",
    "What the server is and how it is",
    (
        Route(
            SystemHandlers,
            SystemHandlers.manifest,
            ("GET /ojs/manifest getManifest",),
            "nothing",
            "Read what the server supports",
            {200: Manifest},
            absolute=True,
        ),
        Route(
            SystemHandlers,
            SystemHandlers.health,
            ("GET /ojs/v1/health getHealth", "GET /readyz", "GET /health", "GET /ready"),
            "nothing",
            "Read whether the server can work",
            {200: Health, 503: Health},
            "503 while NATS doesn't store what is written. `degraded` with 200: `storage` or `services` say what waits.",
            absolute=True,
        ),
        Route(
            SystemHandlers,
            SystemHandlers.alive,
            ("GET /healthz getLiveness",),
            "nothing",
            "Read whether the process runs",
            {200: Liveness},
            "Whatever NATS does.",
            absolute=True,
        ),
        Route(
            MetricHandlers,
            MetricHandlers.exposition,
            ("GET /metrics getMetrics",),
            "read",
            "Read this process's metrics",
            {200: _EXPOSITION},
            absolute=True,
        ),
        Route(
            MetricHandlers,
            MetricHandlers.summary,
            ("GET /metrics getSystemMetrics",),
            "read",
            "Read a few numbers of the whole system",
            {200: SystemMetrics},
            "`format=prometheus` is `GET /metrics`.",
            query=(Parameter("format", one_of("json", "prometheus")),),
            also=_EXPOSITION,
        ),
        Route(
            SystemHandlers,
            SystemHandlers.status,
            ("GET /debug/status debugStatus",),
            "read",
            "Read how this gateway is",
            {200: DebugStatus},
            "With the other services that it sees, and one projector. It says nothing that is secret.",
        ),
        Route(
            OperationHandlers,
            OperationHandlers.services,
            ("GET /admin/services listServices",),
            "read",
            "List the processes of the system",
            {200: ServiceList},
            "Those that were heard of within ten seconds, by role.",
        ),
        Route(
            OperationHandlers,
            OperationHandlers.config,
            ("GET /admin/system/config getConfig", "GET /admin/config"),
            "read",
            "Read what this gateway is set to",
            {200: SystemConfig},
        ),
        Route(
            OperationHandlers,
            OperationHandlers.middleware,
            ("GET /middleware listMiddleware",),
            "read",
            "List the middleware, of which the server has none",
            {200: MiddlewareAnswer},
            "The outermost first. Workers have their own.",
        ),
        Route(
            SystemHandlers,
            SystemHandlers.reset,
            ("POST /admin/reset resetSystem",),
            "admin",
            "Wipe everything",
            {200: ResetAnswer},
            test_only=True,
        ),
    ),
)

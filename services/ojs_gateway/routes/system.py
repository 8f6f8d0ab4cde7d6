"""What the server says of itself."""

from __future__ import annotations

from typing import Final

from ojs_core.telemetry import metrics
from ojs_core.wire.maintenance import MaintenanceBody
from ojs_core.wire.statistics import AdminStats
from ojs_gateway.handlers.admin import AdminHandlers
from ojs_gateway.handlers.metrics import MetricHandlers
from ojs_gateway.handlers.operations import OperationHandlers
from ojs_gateway.handlers.system import SystemHandlers
from ojs_gateway.handlers.unreadable import UnreadableHandlers
from ojs_gateway.openapi.common import COUNT, NUMBERED_50, OBJECT, PAGED, QUEUE_NAME, SHORT, page_of
from ojs_gateway.openapi.envelope import SECONDS
from ojs_gateway.openapi.route import Other, Parameter, Part, Route
from ojs_gateway.openapi.schema import (
    FLAG,
    TEXT,
    TIME,
    Named,
    Schema,
    body_of,
    list_of,
    map_of,
    number,
    one_of,
    record,
    whole,
)

_ALIVE: Final[dict[str, Schema]] = {"status": {"const": "ok"}, "uptime_seconds": COUNT}
_EXPOSITION: Final = Other(metrics.CONTENT_TYPE, "In the text format of Prometheus.")
_HEALTH: Final = Named(
    "Health",
    record(
        {
            "status": one_of("ok", "degraded"),
            "version": TEXT,
            "uptime_seconds": COUNT,
            "backend": record({"type": TEXT, "status": one_of("healthy", "unhealthy")}, {"latency_ms": COUNT, "error": TEXT}),
            "storage": record(
                {
                    "status": one_of("healthy", "full", "unwritable"),
                    "levels": list_of(
                        record({"of": TEXT, **dict.fromkeys(("used_bytes", "limit_bytes", "reserve_bytes"), COUNT)})
                    ),
                },
                {"error": TEXT},
                about="`full`: new jobs are refused, all else goes on.",
            ),
            "services": record({"processes": map_of(COUNT), "missing": list_of(TEXT)}),
        }
    ),
)
_MANIFEST: Final = Named(
    "Manifest",
    record(
        {
            "specversion": TEXT,
            "ojs_version": TEXT,
            "implementation": record({"name": TEXT, "version": TEXT, "language": TEXT}),
            "conformance_level": whole(0, 4),
            "protocols": list_of(TEXT),
            "backend": TEXT,
            "capabilities": map_of(FLAG),
            "uniqueness": record({"strength": TEXT, "mechanism": TEXT}),
            "extensions": list_of(TEXT),
            "extension_details": map_of(list_of(TEXT)),
            "endpoints": map_of(TEXT),
            "payload_limits": OBJECT,
            "limits": map_of(number()),
        }
    ),
)
_SUMMARY: Final = record(
    {
        **dict.fromkeys(
            (
                "uptime_seconds",
                "jobs_enqueued_total",
                "jobs_completed_total",
                "jobs_failed_total",
                "jobs_active",
                "queues_active",
                "workers_active",
            ),
            COUNT,
        ),
        "avg_latency_ms": number(0),
        "throughput_per_second": number(0),
    }
)

_MAINTENANCE: Final = Named(
    "Maintenance",
    record(
        {"enabled": FLAG, "maintenance": FLAG},
        {"reason": TEXT, **dict.fromkeys(("started_at", "enabled_at", "ends_at", "estimated_end"), TIME)},
    ),
)
_CONFIG: Final = record(
    {
        "version": TEXT,
        "backend": record({"type": TEXT, "server_version": TEXT, "replicas": COUNT, "streams": list_of(TEXT)}),
        "limits": map_of(number()),
        "test_mode": FLAG,
        "middleware": list_of(TEXT),
    }
)
_MIDDLEWARE: Final = record({"name": TEXT, "phase": TEXT, "order": COUNT})

_UNREADABLE: Final = Named(
    "UnreadableRecord",
    record({"kind": TEXT, "key": TEXT, "sequence": COUNT, "stored_at": TIME, "size": COUNT, "problem": TEXT}),
)

SYSTEM: Final = Part(
    "System",
    "What the server is and how it is",
    (
        Route(
            SystemHandlers,
            SystemHandlers.manifest,
            ("GET /ojs/manifest getManifest",),
            "Read what the server supports",
            {200: _MANIFEST},
            absolute=True,
        ),
        Route(
            SystemHandlers,
            SystemHandlers.health,
            ("GET /ojs/v1/health getHealth", "GET /readyz", "GET /health", "GET /ready"),
            "Read whether the server can work",
            {200: _HEALTH, 503: _HEALTH},
            "503 while NATS doesn't store what is written. `degraded` with 200: `storage` or `services` say what waits.",
            absolute=True,
        ),
        Route(
            SystemHandlers,
            SystemHandlers.alive,
            ("GET /healthz getLiveness",),
            "Read whether the process runs",
            {200: record(_ALIVE)},
            "Whatever NATS does.",
            absolute=True,
        ),
        Route(
            MetricHandlers,
            MetricHandlers.exposition,
            ("GET /metrics getMetrics",),
            "Read this process's metrics",
            {200: _EXPOSITION},
            absolute=True,
        ),
        Route(
            MetricHandlers,
            MetricHandlers.summary,
            ("GET /metrics getSystemMetrics",),
            "Read a few numbers of the whole system",
            {200: _SUMMARY},
            "`format=prometheus` is `GET /metrics`.",
            query=(Parameter("format", one_of("json", "prometheus")),),
            also=_EXPOSITION,
        ),
        Route(
            AdminHandlers,
            AdminHandlers.stats,
            ("GET /admin/stats adminStats",),
            "Read the system's totals",
            {200: AdminStats},
            query=(
                Parameter("queue", QUEUE_NAME, "Of this queue alone."),
                Parameter("detail", FLAG, "Lists the queues, for the `ojs` CLI."),
                *PAGED,
            ),
            errors=("queue_name_too_long",),
        ),
        Route(
            OperationHandlers,
            OperationHandlers.maintenance,
            ("GET /admin/system/maintenance getMaintenance", "GET /admin/maintenance"),
            "Read whether there is maintenance",
            {200: _MAINTENANCE},
        ),
        Route(
            OperationHandlers,
            OperationHandlers.maintain,
            ("POST /admin/system/maintenance setMaintenance", "POST /admin/maintenance"),
            "Begin or end maintenance",
            {200: _MAINTENANCE},
            "During maintenance nothing is fetched from any queue, and nothing that was delayed becomes available.",
            body=body_of(MaintenanceBody, "enabled", reason=SHORT, duration=SECONDS, estimated_duration=SECONDS),
        ),
        Route(
            OperationHandlers,
            OperationHandlers.config,
            ("GET /admin/system/config getConfig", "GET /admin/config"),
            "Read what this gateway is set to",
            {200: _CONFIG},
        ),
        Route(
            OperationHandlers,
            OperationHandlers.middleware,
            ("GET /middleware listMiddleware",),
            "List the enqueue middleware",
            {200: record({"enqueue": list_of(_MIDDLEWARE), "execution": list_of(_MIDDLEWARE)})},
            "The outermost first. Workers have their own.",
        ),
        Route(
            UnreadableHandlers,
            UnreadableHandlers.list,
            ("GET /admin/unreadable listUnreadableRecords",),
            "List records that can't be read",
            {200: page_of(_UNREADABLE, "records", "items")},
            "Written by hand, or by another version. Each is passed over by itself. Jobs, workflows, workers, cron entries, "
            "unique locks, queues, pools, crossings and statistics are listed; who meets another kind is told its name.",
            query=(Parameter("kind", TEXT, "Of this kind alone."), *NUMBERED_50),
        ),
        Route(
            UnreadableHandlers,
            UnreadableHandlers.remove,
            ("DELETE /admin/unreadable/{kind}/{record} removeUnreadableRecord",),
            "Remove a record that can't be read",
            {200: record({"removed": FLAG, "kind": TEXT, "key": TEXT})},
            "With its timers and results; its name is free again. 409 if it can be read.",
            errors=("not_found", "conflict"),
        ),
        Route(
            SystemHandlers,
            SystemHandlers.reset,
            ("POST /admin/reset resetSystem",),
            "Wipe everything",
            {200: record({"reset": FLAG})},
            test_only=True,
        ),
    ),
)

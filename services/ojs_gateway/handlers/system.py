"""What the server says of itself: manifest, health, and the reset of test mode."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from ojs_core.base.errors import OjsError
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.wire.members import encode
from ojs_gateway.context import Context
from ojs_gateway.http.call import Call, Response
from ojs_gateway.http.compression import SUPPORTED

log = structlog.get_logger(__name__)

_OJS_VERSION: Final = "1.0"
_VERSION_HEADER: Final = (("X-OJS-Version", _OJS_VERSION),)
"""What the CLI's audit looks for there."""
_CONFORMANCE_LEVEL: Final = 4
_UNIQUENESS: Final = "a lock record per fingerprint in JetStream KV, swapped by revision ahead of the job's own record"
_EXTENSIONS: Final = ["admin-api", "bulk-operations", "queue-config"]
_CAPABILITIES: Final = {
    "batch_enqueue": True,
    "cron_jobs": True,
    "dead_letter": True,
    "delayed_jobs": True,
    "job_ttl": True,
    "pause_resume": True,
    "priority_queues": True,
    "rate_limiting": True,
    "schema_validation": False,
    "unique_jobs": True,
    "workflows": True,
}


def manifest(limits: PayloadLimits, busy_queues: int) -> dict[str, Any]:
    """The manifest. `extensions` stays a list of names and capabilities stay booleans: the Go SDK reads nothing else."""
    return {
        "specversion": _OJS_VERSION,
        "ojs_version": _OJS_VERSION,
        "implementation": {"name": "ojs-nats", "version": version("ojs-nats"), "language": "python"},
        "conformance_level": _CONFORMANCE_LEVEL,
        "protocols": ["http"],
        "backend": "nats",
        "capabilities": _CAPABILITIES,
        "uniqueness": {"strength": "strong", "mechanism": _UNIQUENESS},
        "extensions": _EXTENSIONS,
        "extension_details": {"official": _EXTENSIONS, "experimental": []},
        "endpoints": {
            "base_url": "/ojs/v1",
            "manifest": "/ojs/manifest",
            "health": "/ojs/v1/health",
            "openapi": "/ojs/v1/openapi.json",
        },
        "payload_limits": {
            "max_envelope_bytes": limits.max_envelope_bytes,
            "max_meta_bytes": limits.max_meta_bytes,
            "max_queue_name_bytes": limits.max_queue_bytes,
            "max_job_type_bytes": limits.max_type_bytes,
            "supported_compression": SUPPORTED,
            "external_references": True,
            "chunking": False,
        },
        "limits": msgspec.structs.asdict(limits) | {"max_busy_queues": busy_queues},
    }


class SystemHandlers:
    """Handlers that are not about one job."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._manifest: Response | None = None

    async def manifest(self, _call: Call) -> Response:
        """GET /ojs/manifest. The first time, nats-server is asked for the size of its batches."""
        if self._manifest is not None:
            return self._manifest
        limits, busy = self._context.limits, self._store.config.busy_queues
        room = await self._store.atomic.room_for(limits.max_batch_jobs)
        if room is None:
            return Response(200, encode(manifest(limits, busy)))
        self._manifest = Response(200, encode(manifest(replace(limits, max_batch_jobs=room), busy)))
        return self._manifest

    async def health(self, _call: Call) -> Response:
        """GET /health, /readyz: 200 while NATS stores what is written, 503 with the reason while it does not.

        `degraded` and 200: part of the work waits, which taking this gateway out of service would not help (docs/adr/032).
        """
        body: dict[str, Any] = {"status": "ok", "version": _OJS_VERSION, "uptime_seconds": self._context.uptime_s}
        room, roles = self._store.room, self._context.roles
        body["storage"] = {
            "status": "unwritable" if room.trouble else "full" if room.shortage else "healthy",
            "levels": [
                {"of": one.of, "used_bytes": one.used, "limit_bytes": one.limit, "reserve_bytes": one.reserve}
                for one in room.levels
            ],
        }
        body["services"] = {"processes": roles.processes, "missing": roles.missing}
        try:
            latency_ms = await self._store.ready()
        except OjsError as error:
            body |= {"status": "degraded", "backend": {"type": "nats", "status": "unhealthy", "error": error.message}}
            return Response(503, encode(body), (("Retry-After", str(error.retry_after or 1)),))
        if room.shortage:
            body["storage"]["error"] = room.shortage
        if room.shortage or roles.missing:
            body["status"] = "degraded"
        body["backend"] = {"type": "nats", "status": "healthy", "latency_ms": round(latency_ms)}
        return Response(200, encode(body), _VERSION_HEADER)

    async def alive(self, _call: Call) -> Response:
        """GET /healthz: the process runs, whatever NATS does."""
        return Response(200, encode({"status": "ok", "uptime_seconds": self._context.uptime_s}))

    async def reset(self, _call: Call) -> Response:
        """POST /admin/reset, in test mode only: wipes everything, and answers when every service has forgotten it, too."""
        await self._store.reset()
        log.info("everything was reset")
        return Response(200, encode({"reset": True}))

"""What the server says of itself: manifest, health, and the reset of test mode (requirements §21, §25.1)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Final

import msgspec
import structlog
from msgspec.structs import replace

from ojs_gateway.call import Answer, Call
from ojs_gateway.compression import SUPPORTED
from ojs_gateway.context import Context
from ojs_nats.errors import OjsError
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.output import encode

__all__ = ["System", "manifest"]

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


def manifest(limits: Limits) -> dict[str, Any]:
    """The manifest. `extensions` stays a list of names and capabilities stay booleans: the Go SDK reads nothing else (C27)."""
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
        "limits": msgspec.structs.asdict(limits),
    }


class System:
    """Handlers that are not about one job."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._manifest: Answer | None = None

    async def manifest(self, _call: Call) -> Answer:
        """GET /ojs/manifest. The first time, nats-server is asked for the size of its batches."""
        if self._manifest is not None:
            return self._manifest
        limits = self._context.limits
        room = await self._store.atomic.room_for(limits.max_batch_jobs)
        if room is None:
            return Answer(200, encode(manifest(limits)))
        self._manifest = Answer(200, encode(manifest(replace(limits, max_batch_jobs=room))))
        return self._manifest

    async def health(self, _call: Call) -> Answer:
        """GET /health, /readyz: 200 while NATS answers, 503 with the reason while it does not."""
        body: dict[str, Any] = {"status": "ok", "version": _OJS_VERSION, "uptime_seconds": self._context.uptime_s}
        try:
            latency_ms = await self._store.ping()
        except OjsError as error:
            body |= {"status": "degraded", "backend": {"type": "nats", "status": "unhealthy", "error": error.message}}
            return Answer(503, encode(body), (("Retry-After", str(error.retry_after or 1)),))
        body["backend"] = {"type": "nats", "status": "healthy", "latency_ms": round(latency_ms)}
        return Answer(200, encode(body), _VERSION_HEADER)

    async def alive(self, _call: Call) -> Answer:
        """GET /healthz: the process runs, whatever NATS does."""
        return Answer(200, encode({"status": "ok", "uptime_seconds": self._context.uptime_s}))

    async def reset(self, _call: Call) -> Answer:
        """POST /admin/reset, in test mode only: wipes everything, and answers when every service has forgotten it, too."""
        await self._store.reset()
        log.info("everything was reset")
        return Answer(200, encode({"reset": True}))

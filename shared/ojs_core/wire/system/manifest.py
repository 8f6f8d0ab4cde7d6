"""What the server says that it supports."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.wire.members import Count

OJS_VERSION: Final = "1.0"
_CONFORMANCE_LEVEL: Final = 4
_UNIQUENESS: Final = "a lock record per fingerprint in JetStream KV, swapped by revision ahead of the job's own record"
_EXTENSIONS: Final = ("admin-api", "bulk-operations", "queue-config", "realtime", "schema-registry")
_CAPABILITIES: Final = {
    "batch_enqueue": True,
    "cron_jobs": True,
    "dead_letter": True,
    "delayed_jobs": True,
    "job_ttl": True,
    "pause_resume": True,
    "priority_queues": True,
    "rate_limiting": True,
    "schema_validation": True,
    "unique_jobs": True,
    "workflows": True,
}
_ENDPOINTS: Final = {
    "base_url": "/ojs/v1",
    "manifest": "/ojs/manifest",
    "health": "/ojs/v1/health",
    "openapi": "/ojs/v1/openapi.json",
}
_OF_PAYLOADS: Final = ("max_envelope_bytes", "max_meta_bytes", "max_queue_bytes", "max_type_bytes")
"""Limits that stand in `payload_limits`, not in `limits`."""


class Implementation(Struct):
    """Which server this is."""

    name: str
    version: str
    language: str


class UniquenessStrength(Struct):
    """How far a unique job is the only one, and by what."""

    strength: str
    mechanism: str


class PayloadLimitsAnswer(Struct, kw_only=True):
    """How large jobs may be, and how they may come (ojs-payload-limits)."""

    max_envelope_bytes: Count
    max_meta_bytes: Count
    max_queue_name_bytes: Count
    max_job_type_bytes: Count
    supported_compression: Sequence[str]
    external_references: bool
    chunking: bool


class Manifest(Struct, kw_only=True):
    """What the server supports."""

    specversion: str
    implementation: Implementation
    conformance_level: Annotated[int, Meta(ge=0, le=4)]
    protocols: Sequence[str]
    backend: str
    capabilities: dict[str, bool]
    uniqueness: UniquenessStrength
    extensions: Sequence[str]
    endpoints: dict[str, str]
    payload_limits: PayloadLimitsAnswer
    limits: dict[str, float]


def manifest(limits: PayloadLimits, busy_queues: int, compression: Sequence[str]) -> Manifest:
    """The manifest. Extensions are names and capabilities booleans: the Go SDK reads nothing else."""
    sizes = {name: size for name, size in msgspec.structs.asdict(limits).items() if name not in _OF_PAYLOADS}
    return Manifest(
        specversion=OJS_VERSION,
        implementation=Implementation("ojs-nats", version("ojs-nats"), "python"),
        conformance_level=_CONFORMANCE_LEVEL,
        protocols=("http",),
        backend="nats",
        capabilities=_CAPABILITIES,
        uniqueness=UniquenessStrength("strong", _UNIQUENESS),
        extensions=_EXTENSIONS,
        endpoints=_ENDPOINTS,
        payload_limits=PayloadLimitsAnswer(
            max_envelope_bytes=limits.max_envelope_bytes,
            max_meta_bytes=limits.max_meta_bytes,
            max_queue_name_bytes=limits.max_queue_bytes,
            max_job_type_bytes=limits.max_type_bytes,
            supported_compression=compression,
            external_references=True,
            chunking=False,
        ),
        limits=sizes | {"max_busy_queues": busy_queues},
    )

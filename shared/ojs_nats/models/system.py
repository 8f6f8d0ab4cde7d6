"""Answers about the server itself: health, manifest, settings, maintenance, findings, audit."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_api.audit import AuditDetail, AuditEntry, AuditPage
from ojs_api.findings import Finding, Findings
from ojs_api.maintenance import Maintenance, RestoredSystem, UnreadableRecord
from ojs_api.statistics import SystemStats

__all__ = [
    "AuditDetail",
    "AuditEntry",
    "AuditPage",
    "Authentication",
    "BackendConfig",
    "BackendHealth",
    "DebugStatus",
    "DeclaredExtension",
    "DeclaredExtensions",
    "Finding",
    "Findings",
    "Health",
    "Implementation",
    "Maintenance",
    "Manifest",
    "MiddlewareEntry",
    "PayloadLimits",
    "Projector",
    "RestoredSystem",
    "Service",
    "ServicesHealth",
    "StorageHealth",
    "StorageLevel",
    "SystemConfig",
    "SystemStats",
    "UniquenessStrength",
    "UnreadableRecord",
]


class BackendHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of NATS.

    Attributes:
        status: `healthy`, `unhealthy`, or `damaged` if NATS has lost some of what it had stored.
    """

    type: str
    status: str
    latency_ms: int | None = None
    error: str | None = None


class StorageLevel(msgspec.Struct, frozen=True, kw_only=True):
    """A store that may become full.

    Attributes:
        of: Its name.
        reserve_bytes: What is kept free for jobs that are there already.
    """

    of: str
    used_bytes: int
    limit_bytes: int
    reserve_bytes: int


class StorageHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The room that is left.

    Attributes:
        status: With `full`, new jobs are refused, and everything else goes on.
    """

    status: str
    levels: list[StorageLevel]
    error: str | None = None


class ServicesHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of the system.

    Attributes:
        processes: How many there are of each role.
        missing: The roles without any.
    """

    processes: dict[str, int]
    missing: list[str]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The health of the server.

    Attributes:
        status: `ok` or `degraded`.
        version: The version of OJS.
    """

    status: str
    version: str
    uptime_seconds: int
    backend: BackendHealth
    storage: StorageHealth
    services: ServicesHealth


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """The name and version of the server."""

    name: str
    version: str
    language: str


class DeclaredExtension(msgspec.Struct, frozen=True, kw_only=True):
    """An extension that the server supports.

    Attributes:
        version: The version of its document.
    """

    name: str
    uri: str
    version: str


class DeclaredExtensions(msgspec.Struct, frozen=True, kw_only=True):
    """The extensions that the server supports, by tier (ojs-extension-lifecycle §7.1)."""

    official: list[DeclaredExtension]
    experimental: list[DeclaredExtension]


class UniquenessStrength(msgspec.Struct, frozen=True, kw_only=True):
    """A guarantee of uniqueness, and the mechanism that gives it."""

    strength: str
    mechanism: str


class PayloadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of the size and form of jobs (ojs-payload-limits)."""

    max_envelope_bytes: int
    max_meta_bytes: int
    max_queue_name_bytes: int
    max_job_type_bytes: int
    supported_compression: list[str]
    external_references: bool
    chunking: bool


class Authentication(msgspec.Struct, frozen=True):
    """The server's way to identify clients.

    Attributes:
        required: Whether clients have to send a key.
    """

    required: bool
    schemes: list[str] = []


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A description of what the server supports."""

    specversion: str
    implementation: Implementation
    conformance_level: int
    conformance_tier: str
    protocols: list[str]
    backend: str
    capabilities: dict[str, bool]
    unique_job_strength: str
    uniqueness: UniquenessStrength
    schema_validation: bool
    event_delivery: str
    extensions: list[str]
    extension_details: DeclaredExtensions
    endpoints: dict[str, str]
    payload_limits: PayloadLimits
    limits: dict[str, float]
    authentication: Authentication | None = None


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of NATS.

    Attributes:
        namespace: The beginning of all names in NATS. None if the server doesn't say.
    """

    type: str
    server_version: str
    namespace: str | None = None
    """How all names in NATS begin; None of a server that doesn't say."""
    replicas: int
    streams: list[str]


class SystemConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the gateway that answers. None of them is secret."""

    version: str
    backend: BackendConfig
    limits: dict[str, float]
    authentication: Authentication | None = None
    test_mode: bool
    middleware: list[str]


class MiddlewareEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A middleware of the server around pushes."""

    name: str
    phase: str
    order: int


class Projector(msgspec.Struct, frozen=True, kw_only=True):
    """A service that keeps the index of jobs.

    Attributes:
        lag_ms: How far it is behind.
        relaying: Whether it passes events on.
        repaired: How many entries of the index it has repaired, by kind.
    """

    instance: str
    lag_ms: int
    applied: int
    relaying: bool
    relayed: int
    repaired: dict[str, int]


class DebugStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the gateway that answers.

    Attributes:
        error: Why there is no `projector`.
    """

    instance: str
    uptime_seconds: int
    nats_server_version: str
    services: ServicesHealth
    projector: Projector | None = None
    error: str | None = None


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the system.

    Attributes:
        since: When it was started.
        at: When it sent a sign of life last.
        version: None for processes of an old version.
    """

    role: str
    instance: str
    since: datetime
    at: datetime
    version: str | None = None

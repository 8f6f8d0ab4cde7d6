"""The server: what it is, how it is, what it is set to."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ojs_nats.models.statistics import Counts, Percentiles, Throughput, Window


class BackendHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether NATS stores what is written. `damaged`: it does, and has lost some of what it had stored."""

    type: str
    status: str
    latency_ms: int | None = None
    error: str | None = None


class StorageLevel(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that may be full."""

    of: str
    used_bytes: int
    limit_bytes: int
    reserve_bytes: int


class StorageHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is room. `full`: new jobs are refused, all else goes on."""

    status: str
    levels: list[StorageLevel]
    error: str | None = None


class ServicesHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How many processes each role has, and the roles without any."""

    processes: dict[str, int]
    missing: list[str]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the server can work. `version` is that of OJS."""

    status: str
    version: str
    uptime_seconds: int
    backend: BackendHealth
    storage: StorageHealth
    services: ServicesHealth


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """Which server this is."""

    name: str
    version: str
    language: str


class DeclaredExtension(msgspec.Struct, frozen=True, kw_only=True):
    """An extension that the server supports, by the version of its document."""

    name: str
    uri: str
    version: str


class DeclaredExtensions(msgspec.Struct, frozen=True, kw_only=True):
    """The extensions by their tier (ojs-extension-lifecycle §7.1)."""

    official: list[DeclaredExtension]
    experimental: list[DeclaredExtension]


class UniquenessStrength(msgspec.Struct, frozen=True, kw_only=True):
    """How far a unique job is the only one, and by what."""

    strength: str
    mechanism: str


class PayloadLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How large jobs may be, and how they may come (ojs-payload-limits)."""

    max_envelope_bytes: int
    max_meta_bytes: int
    max_queue_name_bytes: int
    max_job_type_bytes: int
    supported_compression: list[str]
    external_references: bool
    chunking: bool


class Authentication(msgspec.Struct, frozen=True):
    """Whether clients have to show a key, and how they do."""

    required: bool
    schemes: list[str] = []


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the server supports."""

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


class SystemStats(msgspec.Struct, frozen=True, kw_only=True):
    """Of jobs that are still stored, of workers that are there, and of this gateway's time."""

    throughput: Throughput
    latency_ms: Percentiles
    run_ms: Percentiles
    queues: int
    workers: int
    workers_stale: int
    jobs: Counts
    dead_letter: int
    windows: dict[str, Window]
    uptime_seconds: int
    oldest_available_at: datetime | None = None
    oldest_available_age_ms: int | None = None


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What nats-server keeps the records in."""

    type: str
    server_version: str
    namespace: str | None = None
    """How all names in NATS begin; None of a server that doesn't say."""
    replicas: int
    streams: list[str]


class SystemConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What this gateway is set to; nothing in it is secret."""

    version: str
    backend: BackendConfig
    limits: dict[str, float]
    authentication: Authentication | None = None
    test_mode: bool
    middleware: list[str]


class RestoredSystem(msgspec.Struct, frozen=True, kw_only=True):
    """The backup's namespace and time, and the time of the restore, of a system that waits for its release."""

    namespace: str
    taken_at: datetime
    restored_at: datetime


class Maintenance(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is maintenance. It ends by itself at `ends_at`; `estimated_end` is what operators expect.

    A system that was restored and waits for its release (`restored`) is under maintenance until it is released.
    """

    maintenance: bool
    reason: str | None = None
    enabled_at: datetime | None = None
    ends_at: datetime | None = None
    estimated_end: datetime | None = None
    restored: RestoredSystem | None = None


class MiddlewareEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A function around every push."""

    name: str
    phase: str
    order: int


class UnreadableRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that can't be read: what its key says it is, and why it can't be. `size` in bytes."""

    kind: str
    key: str
    sequence: int
    stored_at: datetime
    size: int
    problem: str


class Projector(msgspec.Struct, frozen=True, kw_only=True):
    """One projector. `index_progress` is below 1 while its index is built; `lag_ms` is how far it is behind."""

    instance: str
    lag_ms: int
    applied: int
    relaying: bool
    relayed: int
    repaired: dict[str, int]


class DebugStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one gateway: whichever answers. `error` says why there is no `projector`."""

    instance: str
    uptime_seconds: int
    nats_server_version: str
    services: ServicesHealth
    projector: Projector | None = None
    error: str | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong, or to be known: what was seen, what follows, what to do, and where the dashboard shows it."""

    check: str
    severity: str
    message: str
    meaning: str
    remedy: str
    link: str | None = None


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, the worst first. `checks` are the names of all that were made."""

    findings: list[Finding]
    checks: list[str]
    checked_at: datetime


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the system; one of an older version doesn't say its `version`."""

    role: str
    instance: str
    since: datetime
    at: datetime
    version: str | None = None


class AuditDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Details of an entry. `count` is how many acts it stands for, the first of them at `first_at`.

    `operations` and `addresses` are theirs, where they are several.
    """

    operation: str = ""
    permission: str = ""
    target: dict[str, str] = {}
    binding: str = "http"
    principal_id: str = ""
    mechanism: str = ""
    key_prefix: str = ""
    reason: str = ""
    status: int = 0
    user_agent: str = ""
    count: int = 1
    first_at: str = ""
    operations: list[str] = []
    addresses: list[str] = []


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what. `outcome` is `success` or `failure`."""

    id: str
    timestamp: datetime
    event_type: str
    principal: str
    source_ip: str
    correlation_id: str
    outcome: str
    detail: AuditDetail


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries; `after` goes on with what comes later."""

    entries: list[AuditEntry]
    after: str | None = None

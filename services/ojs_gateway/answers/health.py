"""Whether the server can work, as it says itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.domain.storage_room import StorageLevel
from ojs_engine.wire.members import Count
from ojs_gateway.answers.manifest import OJS_VERSION


class BackendHealth(Struct, kw_only=True, omit_defaults=True):
    """Whether NATS stores what is written. `damaged`: it does, and has lost some of what it had stored."""

    type: str
    status: Literal["healthy", "damaged", "unhealthy"]
    latency_ms: Count | UnsetType = UNSET
    error: str | UnsetType = UNSET


class StorageLevelAnswer(Struct):
    """One thing that may be full."""

    of: str
    used_bytes: Count
    limit_bytes: Count
    reserve_bytes: Count


class StorageHealth(Struct, kw_only=True, omit_defaults=True):
    """Whether there is room. `full`: new jobs are refused, all else goes on."""

    status: Literal["healthy", "full", "unwritable"]
    levels: list[StorageLevelAnswer]
    error: str | UnsetType = UNSET


class ServicesHealth(Struct):
    """How many processes each role has, and the roles without any."""

    processes: Mapping[str, Count]
    missing: Sequence[str]


class Health(Struct, kw_only=True):
    """Whether the server can work. `version` is that of OJS."""

    status: Literal["ok", "degraded"]
    version: str
    uptime_seconds: Count
    backend: BackendHealth
    storage: StorageHealth
    services: ServicesHealth


class Liveness(Struct):
    """The process runs."""

    status: Literal["ok"]
    uptime_seconds: Count


def storage_health(levels: Sequence[StorageLevel], *, shortage: str | None, trouble: bool) -> StorageHealth:
    """What is known of the room; with `trouble` nothing can be written."""
    return StorageHealth(
        status="unwritable" if trouble else "full" if shortage else "healthy",
        levels=[StorageLevelAnswer(one.of, one.used, one.limit, one.reserve) for one in levels],
        error=shortage or UNSET,
    )


def health(backend: BackendHealth, storage: StorageHealth, services: ServicesHealth, uptime_s: int) -> Health:
    """`degraded` if NATS is away or has lost something, or if part of the work waits."""
    whole = backend.status == "healthy" and storage.error is UNSET and not services.missing
    return Health(
        status="ok" if whole else "degraded",
        version=OJS_VERSION,
        uptime_seconds=uptime_s,
        backend=backend,
        storage=storage,
        services=services,
    )

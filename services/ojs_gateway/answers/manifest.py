"""What the server says that it supports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct

from ojs_api import words
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.members import Count
from ojs_engine.wire.system.extensions import Extension

OJS_VERSION: Final = "1.0"
_CONFORMANCE_LEVEL: Final = 4
_Strength = Literal["strong", "best_effort"]
_UNIQUENESS: Final[tuple[_Strength, str]] = (
    "strong",
    "a lock record per fingerprint in JetStream KV, swapped by revision ahead of the job's own record",
)
_NO_UNIQUENESS: Final[tuple[_Strength, str]] = ("best_effort", "none: unique jobs are refused")
_CAPABILITIES: Final = {
    "delayed_jobs": True,
    "job_ttl": True,
    "pause_resume": True,
    "priority_queues": True,
}
"""`cron`, `events` and `fair_scheduling` are what the admin UI's menu goes by."""
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


class DeclaredExtension(Struct):
    """An extension that the server supports, by the version of its document."""

    name: str
    uri: str
    version: str


class DeclaredExtensions(Struct):
    """The extensions by their tier (ojs-extension-lifecycle §7.1)."""

    official: Sequence[DeclaredExtension]
    experimental: Sequence[DeclaredExtension]


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


_SCHEMES: Final = ("bearer",)


class Authentication(Struct):
    """How clients show who they are, and whether they have to."""

    required: bool
    schemes: Sequence[str]


class Manifest(Struct, kw_only=True):
    """What the server supports."""

    specversion: str
    implementation: Implementation
    conformance_level: Annotated[int, Meta(ge=0, le=4)]
    conformance_tier: Literal["parser", "runtime", "full"]
    protocols: Sequence[str]
    backend: str
    capabilities: dict[str, bool]
    unique_job_strength: _Strength
    uniqueness: UniquenessStrength
    schema_validation: Annotated[bool, Meta(description="Whether arguments of jobs are held to JSON Schemas.")]
    event_delivery: Annotated[Literal["at_least_once", "best_effort"], Meta(description="ojs-events §9.1.")]
    extensions: Annotated[Sequence[str], Meta(description="Their names, a plain list: the Go SDK reads no other.")]
    extension_details: DeclaredExtensions
    authentication: Authentication
    endpoints: dict[str, str]
    payload_limits: PayloadLimitsAnswer
    limits: dict[str, float]


def manifest(
    limits: PayloadLimits,
    busy_queues: int,
    compression: Sequence[str],
    extensions: Sequence[Extension],
    of_features: Iterable[str] = (),
    *,
    nats: bool,
    keys: bool,
    prefix: str = "",
) -> Manifest:
    """Return the manifest; `nats` says whether the API is offered over NATS, too, `keys` whether it asks for keys.

    `of_features` are capabilities. `prefix` is what clients put before the server's paths.

    Extensions are names and capabilities booleans: the Go SDK reads nothing else.
    """
    named = [*of_features, *(one.capability for one in extensions if one.capability is not None)]
    capabilities = _CAPABILITIES | dict.fromkeys(named, True)
    strength, mechanism = _UNIQUENESS if capabilities.get("unique_jobs") else _NO_UNIQUENESS
    sizes = {name: size for name, size in limits.sizes().items() if name not in _OF_PAYLOADS}
    return Manifest(
        specversion=OJS_VERSION,
        implementation=Implementation("ojs-nats", version("ojs-nats-server"), "python"),
        conformance_level=_CONFORMANCE_LEVEL,
        conformance_tier="runtime",
        protocols=get_args(words.Binding) if nats else ("http",),
        backend="nats",
        capabilities=capabilities,
        unique_job_strength=strength,
        uniqueness=UniquenessStrength(strength, mechanism),
        schema_validation=capabilities.get("schema_validation", False),
        event_delivery="at_least_once",
        extensions=[extension.name for extension in extensions],
        extension_details=DeclaredExtensions(_declared(extensions, "official"), _declared(extensions, "experimental")),
        authentication=Authentication(keys, _SCHEMES),
        endpoints={name: prefix + path for name, path in _ENDPOINTS.items()},
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


def _declared(extensions: Sequence[Extension], tier: str) -> list[DeclaredExtension]:
    return [DeclaredExtension(one.name, one.uri, one.version) for one in extensions if one.tier == tier]

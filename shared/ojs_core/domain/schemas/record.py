"""The record of one version of a job type's schema."""

from __future__ import annotations

from typing import Final, Literal, get_args

from msgspec import Raw, Struct

from ojs_core.base.extensions import Extensions
from ojs_core.base.numbers import At
from ojs_core.domain.versions import Version, parse_version

Mode = Literal["off", "warn", "strict"]
"""What becomes of a job whose arguments don't fit (ojs-schema-registry §7.2): nothing, a warning, a refusal."""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
Compatibility = Literal["semver", "none", "backward", "forward", "full"]
"""What a version is held to with regard to the one before it (docs/adr/047)."""

COMPATIBILITIES: Final[tuple[Compatibility, ...]] = get_args(Compatibility)


class SchemaRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Key `schema.<encoded type>.<version in full>`, with dots encoded. Times are Unix ms; `op` is the last change's."""

    uri: str
    type: str
    version: str
    """As it was sent."""
    number: bool = False
    """Whether it was sent as a number."""
    document: Raw
    """The JSON Schema as it was sent."""
    mode: Mode | None = None
    """None leaves it to the queue."""
    compatibility: Compatibility | None = None
    """None is `semver`."""
    extensions: Extensions = {}
    created_at: At = 0
    updated_at: At = 0
    deleted: bool = False
    op: str = ""

    @property
    def order(self) -> Version:
        return parse_version(self.version)

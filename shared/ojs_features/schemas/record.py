"""The record of one version of a job type's schema."""

from __future__ import annotations

from msgspec import Raw, Struct

from ojs_api.schemas import Compatibility, Mode
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At
from ojs_engine.domain.versions import Version, parse_version


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

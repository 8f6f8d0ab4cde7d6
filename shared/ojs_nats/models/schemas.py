"""Schemas of jobs' arguments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["Schema", "SchemaHead", "SchemaVersion", "ValidationSettings"]


class ValidationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of validation.

    Attributes:
        mode: What happens to arguments that don't fit: `off`, `warn` or `strict`. None means what the queue says.
    """

    mode: str | None = None


class SchemaHead(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a job type's schema, without the document."""

    uri: str
    type: str
    job_type: str
    version: int | str
    validation: ValidationSettings
    compatibility: str
    created_at: datetime


class Schema(SchemaHead, frozen=True, kw_only=True):
    """A version of a job type's schema.

    Attributes:
        schema: The document, as it was sent.
    """

    schema: dict[str, Any]


class SchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a job type's schema, in short."""

    version: int | str
    uri: str
    created_at: datetime
    is_latest: bool

"""Schemas of jobs' arguments."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class ValidationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of jobs that don't fit. Left out, their queue's `schema_validation` says it."""

    mode: str | None = None


class SchemaHead(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a job type's schema."""

    uri: str
    type: str
    job_type: str
    version: int | str
    validation: ValidationSettings
    compatibility: str
    created_at: datetime


class Schema(SchemaHead, frozen=True, kw_only=True):
    """A version of a job type's schema, with the document as it was sent."""

    schema: dict[str, Any]


class SchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a job type's schema."""

    version: int | str
    uri: str
    created_at: datetime
    is_latest: bool

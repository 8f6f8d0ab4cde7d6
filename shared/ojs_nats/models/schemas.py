"""Schemas of jobs' arguments."""

from __future__ import annotations

from ojs_api.schemas import Schema, SchemaHead, SchemaVersion, ValidationSettings

__all__ = ["Schema", "SchemaHead", "SchemaVersion", "ValidationSettings"]

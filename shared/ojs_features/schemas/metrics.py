"""Metrics of schemas."""

from __future__ import annotations

from typing import Final

from ojs_engine.telemetry.metrics import counter

VIOLATIONS: Final = counter(
    "ojs_schema_violations",
    "Jobs whose arguments don't fit their schema: rejected (mode strict), or warned of (mode warn).",
    "queue",
    "outcome",
)

"""Metrics of limits."""

from __future__ import annotations

from typing import Final

from ojs_engine.telemetry.metrics import counter

LIMITED: Final = counter(
    "ojs_rate_limit_exceeded", "Jobs put aside, dropped or rescheduled at a limit, and fetches that it turned away.", "strategy"
)

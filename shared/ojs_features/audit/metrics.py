"""Metrics of the audit."""

from __future__ import annotations

from typing import Final

from ojs_engine.telemetry.metrics import counter, of_gateway

FILL: Final = of_gateway("ojs_audit_fill_ratio", "The share of the entries that the audit may have.")
AGE: Final = of_gateway("ojs_audit_oldest_entry_age_seconds", "Age of the audit's oldest entry.")
PROMISED: Final = of_gateway("ojs_audit_promised_age_seconds", "How long entries are to be kept.")
ENTRIES: Final = counter(
    "ojs_audit_entries",
    "Entries of the audit: stored; late, when the answer could not wait any longer; lost, so that only the log has them.",
    "outcome",
)

"""Metrics of webhooks."""

from __future__ import annotations

from typing import Final

from ojs_engine.telemetry.metrics import REQUEST_S, counter, gauge, histogram

DELIVERIES: Final = counter(
    "ojs_webhook_delivery", "Attempts to deliver an event: success, failed (another follows) or dead.", "event_type", "status"
)
SECONDS: Final = histogram(
    "ojs_webhook_delivery_duration_seconds", "Time until a webhook's target answered, or didn't.", REQUEST_S, "event_type"
)
SUBSCRIPTIONS: Final = gauge("ojs_webhook_subscriptions", "Active subscriptions, as this process knows them.")

"""Statistics over time: what happened in a queue, minute by minute and hour by hour, and how long it took (docs/adr/018)."""

from __future__ import annotations

from ojs_nats.statistics.activity import COUNTED, Activity, count
from ojs_nats.statistics.histogram import ACCURACY, Buckets, Percentiles, bucket_of, percentiles
from ojs_nats.statistics.point import Point
from ojs_nats.statistics.record import HOUR_MS, KEPT_MS, MINUTE_MS, Span, parts_of

__all__ = [
    "ACCURACY",
    "COUNTED",
    "HOUR_MS",
    "KEPT_MS",
    "MINUTE_MS",
    "Activity",
    "Buckets",
    "Percentiles",
    "Point",
    "Span",
    "bucket_of",
    "count",
    "parts_of",
    "percentiles",
]

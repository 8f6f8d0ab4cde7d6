"""Permissions of services on NATS for webhooks."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import ANY, StoreConfig, Wildcard
from ojs_features.webhooks.subjects import Subjects

_KINDS: Final = ("webhook", "target", "delivery")


def _publishes(config: StoreConfig, role: str) -> list[str]:
    """Return what a service publishes beside the records."""
    records, events = config.records_stream, config.events_stream
    if role == "gateway":
        return [f"$JS.API.CONSUMER.DELETE.{events}.*"]  # of subscriptions that are deleted
    if role != "webhooks":
        return []
    subjects, both = Subjects(config), (records, events)
    return [
        subjects.delivery_timer(ANY, ANY),
        f"$JS.API.CONSUMER.CREATE.{records}.*.{subjects.delivery_due(ANY, ANY)}",
        f"$JS.API.CONSUMER.CREATE.{events}.*",
        f"$JS.API.CONSUMER.MSG.NEXT.{events}.*",
        f"$JS.API.CONSUMER.DELETE.{events}.*",
        *(f"$JS.API.CONSUMER.NAMES.{stream}" for stream in both),
        *(f"$JS.API.CONSUMER.INFO.{stream}.*" for stream in both),
        *(f"$JS.ACK.{stream}.*.>" for stream in both),
        f"$JS.API.STREAM.MSG.DELETE.{records}",
        config.event(Wildcard("webhook.*"), ANY, ANY),
        config.events_stored,
    ]


GRANTS: Final = FeatureGrants(writes={"gateway": _KINDS, "webhooks": _KINDS}, publishes=_publishes, roles=("webhooks",))

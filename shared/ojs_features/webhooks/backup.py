"""Webhooks in a backup. A restored subscription goes on behind the event that it has got last."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.event_consumer import consumer_names
from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_engine.store.backup import Counted, FeatureBackup, Kept, Restoring, RevivedRecord
from ojs_engine.store.records.records import Records
from ojs_features.webhooks.subjects import CONSUMER, Subjects
from ojs_features.webhooks.subscriptions import webhook_reader


async def _places(nats: Connection, config: StoreConfig) -> dict[str, int]:
    """Return up to which event each subscription has got them."""
    stream = config.events_stream
    found: dict[str, int] = {}
    for name in await consumer_names(nats, stream, CONSUMER):
        answer = await call(nats, f"CONSUMER.INFO.{stream}.{name}")
        if "error" not in answer:
            found[name.removeprefix(CONSUMER)] = int(answer["ack_floor"]["stream_seq"])
    return found


def _revive(name: str, kept: Kept, restoring: Restoring) -> RevivedRecord | None:
    """Return the record of a subscription as it is restored, None for one that can't be read."""
    found = webhook_reader.read(name, kept.sequence, kept.data)
    if found is None or found.deleted:
        return None if found is None else RevivedRecord(kept.data)
    return RevivedRecord(msgspec.json.encode(replace(found, since=restoring.behind(found.id, found.since))))


async def _active(records: Records, config: StoreConfig) -> int:
    """Count the subscriptions that get events once a restored system is released."""
    name = len(Subjects(config).webhook(""))
    raw = await records.many_raw(await records.subjects(Subjects(config).webhook(ANY)))
    found = (webhook_reader.read(subject[name:], *one) for subject, one in raw.items() if one[1])
    return sum(one is not None and one.active and not one.deleted for one in found)


BACKUP: Final = FeatureBackup(
    hints=frozenset({("timer", "webhook"), ("due", "webhook")}),
    places=_places,
    revive={"webhook": _revive},
    counted={"webhooks": Counted(noun="webhook subscription", kind="webhook", acting=_active)},
)

"""The places where webhooks are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.guard import KeyEnd
from ojs_engine.store.store import Store
from ojs_engine.wire.system.extensions import Extension
from ojs_features.plug import Check, Feature, Process
from ojs_features.webhooks.backup import BACKUP
from ojs_features.webhooks.deliveries import delivery_reader
from ojs_features.webhooks.findings import look
from ojs_features.webhooks.grants import GRANTS
from ojs_features.webhooks.keys import stop_webhooks
from ojs_features.webhooks.metrics import DELIVERIES, SECONDS, SUBSCRIPTIONS
from ojs_features.webhooks.routes import PART
from ojs_features.webhooks.subscriptions import Webhooks, target_reader, webhook_reader
from ojs_index.followed import Followed


async def _wanted(store: Store) -> bool:
    """Return whether there is any subscription. Raises OjsError backend_unavailable."""
    return await store.of(Webhooks).wanted()


WEBHOOKS: Final = Feature(
    name="webhooks",
    parts=(PART,),
    extensions=(Extension("webhooks"),),
    records=(webhook_reader, target_reader, delivery_reader),
    followed=(Followed(reader=webhook_reader),),
    backup=BACKUP,
    grants=GRANTS,
    processes=(Process(role="webhooks", without="webhooks get no events", wanted=_wanted),),
    checks=(Check(name="webhooks", look=look),),
    metrics=(DELIVERIES, SECONDS, SUBSCRIPTIONS),
    key_ends=(KeyEnd(member="webhooks", change=stop_webhooks),),
)

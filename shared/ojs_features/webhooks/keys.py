"""The end of a key in whose name events are sent (docs/adr/072)."""

from __future__ import annotations

from ojs_engine.store.announce import announce
from ojs_engine.store.store import Store
from ojs_features.webhooks.subscriptions import Webhooks


async def stop_webhooks(store: Store, key_id: str) -> list[str]:
    """Pause the subscriptions whose events are brought in the name of a key that has ended, and return their ids."""
    webhooks = store.of(Webhooks)
    found = [one.id for one in await webhooks.all() if one.owner is not None and one.owner.id == key_id]
    for subscription_id in found:
        if await webhooks.pause(subscription_id, "key_ended"):
            data = {"subscription_id": subscription_id, "reason": "key_ended"}
            await announce(store, "webhook.paused", scope="webhook", subject=subscription_id, data=data)
    return found

"""Webhooks and cron entries that a key leaves behind (docs/adr/072)."""

from __future__ import annotations

from ojs_core.store.announce import announce
from ojs_core.store.store import Store


async def stop_webhooks(store: Store, key_id: str) -> list[str]:
    """Pause the subscriptions whose events are brought in the name of a key that has ended, and return their ids."""
    found = [one.id for one in await store.webhooks.all() if one.owner is not None and one.owner.id == key_id]
    for subscription_id in found:
        if await store.webhooks.pause(subscription_id, "key_ended"):
            data = {"subscription_id": subscription_id, "reason": "key_ended"}
            await announce(store, "webhook.paused", scope="webhook", subject=subscription_id, data=data)
    return found


async def crons_of(store: Store, key_id: str) -> list[str]:
    """Return the names of the cron entries that a key registered or changed last."""
    return [cron.name for cron in await store.crons.all() if cron.key == key_id]

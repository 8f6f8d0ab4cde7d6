"""Ending deliveries to a target that wants none, or has taken none for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ojs_api.webhooks import PauseReason
from ojs_engine.store.announce import announce
from ojs_features.webhooks.subscriptions import Webhooks

if TYPE_CHECKING:
    from ojs_engine.store.store import Store

log = structlog.get_logger(__name__)


async def pause(store: Store, subscription_id: str, reason: PauseReason) -> None:
    """Pause a subscription until a client sets it active, and say so once. Raises OjsError not_found, backend_unavailable."""
    if not await store.of(Webhooks).pause(subscription_id, reason):
        return
    log.error("webhook paused", subscription_id=subscription_id, reason=reason)
    data = {"subscription_id": subscription_id, "reason": reason}
    await announce(store, "webhook.paused", scope="webhook", subject=subscription_id, data=data)

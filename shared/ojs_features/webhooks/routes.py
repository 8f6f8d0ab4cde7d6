"""Webhooks (docs/webhooks.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import webhooks as contract
from ojs_engine.api.contract import part_of
from ojs_features.webhooks.dialects import SHAPES
from ojs_features.webhooks.handlers import WebhookHandlers

PART: Final = part_of(
    contract.WEBHOOKS,
    (
        WebhookHandlers,
        {
            contract.CREATE: WebhookHandlers.create,
            contract.LIST: WebhookHandlers.list,
            contract.GET: WebhookHandlers.read,
            contract.UPDATE: WebhookHandlers.change,
            contract.DELETE: WebhookHandlers.delete,
            contract.TEST: WebhookHandlers.test,
            contract.ROTATE: WebhookHandlers.rotate,
            contract.OF_WEBHOOK: WebhookHandlers.of_subscription,
            contract.DELIVERIES: WebhookHandlers.deliveries,
            contract.GET_DELIVERY: WebhookHandlers.delivery,
            contract.RETRY: WebhookHandlers.retry,
        },
    ),
    shapes=SHAPES,
)

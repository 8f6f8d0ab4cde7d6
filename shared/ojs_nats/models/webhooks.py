"""Webhook subscriptions and deliveries."""

from __future__ import annotations

from ojs_api.webhooks import Delivery, RotatedWebhook, Webhook, WebhookFilter, WebhookKey, WebhookTest

__all__ = ["Delivery", "RotatedWebhook", "Webhook", "WebhookFilter", "WebhookKey", "WebhookTest"]

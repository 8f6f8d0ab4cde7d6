"""Webhook subscriptions and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = ["Delivery", "RotatedWebhook", "Webhook", "WebhookFilter", "WebhookKey", "WebhookTest"]


class WebhookFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for events, besides their types."""

    queues: list[str] = []
    job_types: list[str] = []


class WebhookKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key that a subscription belongs to.

    Attributes:
        payloads: Whether events have what jobs carry.
    """

    id: str
    name: str
    payloads: bool


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription to events.

    Attributes:
        secret: The secret that deliveries are signed with. Only the answer to `subscribe` has it.
        success_count: How many attempts succeeded, up to some seconds ago.
        failure_count: How many attempts failed, up to some seconds ago.
        dead_count: How many deliveries were given up.
    """

    id: str
    url: str
    events: list[str]
    metadata: dict[str, Any]
    active: bool
    created_at: datetime
    updated_at: datetime
    success_count: int
    failure_count: int
    dead_count: int
    consecutive_failures: int
    filter: WebhookFilter | None = None
    paused_reason: str | None = None
    key: WebhookKey | None = None
    secret: str | None = None
    old_secret_expires_at: datetime | None = None
    last_delivery_at: datetime | None = None
    last_delivery_status: int | None = None


class RotatedWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with its new secret. For a day, deliveries are signed with both."""

    subscription: Webhook
    secret: str


class WebhookTest(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a subscription's URL to an event of type `webhook.test`."""

    success: bool
    status_code: int
    response_time_ms: int
    response_body: str | None = None
    error: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that didn't succeed at the first attempt.

    Attributes:
        status: `failing`, `delivered`, or `dead` if it was given up.
    """

    id: str
    subscription_id: str
    event_id: str
    event_type: str
    status: str
    attempts: int
    last_status_code: int
    created_at: datetime
    updated_at: datetime
    event: dict[str, Any]
    error: str | None = None
    next_attempt_at: datetime | None = None

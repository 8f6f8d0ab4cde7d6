"""Webhook subscriptions and deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class WebhookFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What an event must match besides its type."""

    queues: list[str] = []
    job_types: list[str] = []


class WebhookKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key in whose name events are brought. Without `payloads` they have nothing that jobs carry."""

    id: str
    name: str
    payloads: bool


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription. Failures are of attempts; `failure_count` and `success_count` may be some seconds behind."""

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
    """A subscription with its new secret; deliveries are signed with the old one, too, for a day."""

    subscription: Webhook
    secret: str


class WebhookTest(msgspec.Struct, frozen=True, kw_only=True):
    """What a target has answered to an event of type `webhook.test`."""

    success: bool
    status_code: int
    response_time_ms: int
    response_body: str | None = None
    error: str | None = None


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event that did not go through at the first attempt."""

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

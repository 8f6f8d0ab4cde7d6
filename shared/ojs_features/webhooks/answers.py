"""Answers about webhooks. Only creation and rotation show a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from ojs_api.webhooks import Delivery, DeliveryPage, Webhook, WebhookFilter, WebhookKey, WebhookPage
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.wire.members import extended, moment, written
from ojs_engine.wire.pages import Page, pagination
from ojs_features.webhooks.records import DeliveryRecord, Subscription, TargetHealth

_DIGITS: Final = 9


def webhook_answer(
    found: Subscription, health: TargetHealth, now: int, *, secret: bool = False, whole_url: bool = True
) -> Webhook:
    """A subscription and how its deliveries go, with its `secret` only on the occasions that show it.

    Without `whole_url` path and query of its URL are masked: many services have their secret there.
    """
    narrowed = WebhookFilter(queues=list(found.queues), job_types=list(found.job_types))
    owner = found.owner
    answer = Webhook(
        id=found.id,
        url=found.url if whole_url else _masked(found.url),
        events=list(found.events),
        filter=narrowed if found.queues or found.job_types else None,
        metadata=written(found.metadata),
        active=found.active,
        paused_reason=found.paused,
        key=None if owner is None else WebhookKey(id=owner.id, name=owner.name, payloads=owner.payloads),
        secret=found.secret if secret else None,
        old_secret_expires_at=moment(found.old_until) if len(found.secrets(now)) > 1 else None,
        created_at=moment(found.created_at),
        updated_at=moment(found.updated_at),
        last_delivery_at=moment(health.last_at or None),
        last_delivery_status=health.last_status or None,
        success_count=health.succeeded,
        failure_count=health.failed,
        dead_count=health.dead,
        consecutive_failures=health.in_a_row,
    )
    whole: Webhook = written(extended(answer, found.extensions))
    return whole


def on_page(every: Sequence[Subscription], asked: Page) -> Sequence[Subscription]:
    """Return the subscriptions of a page. Raises invalid_request."""
    return every[_start(asked) : _start(asked) + asked.limit]


def webhook_page(
    found: Sequence[Subscription],
    health: Mapping[str, TargetHealth],
    asked: Page,
    total: int,
    now: int,
    *,
    whole_url: bool,
) -> WebhookPage:
    """One page of subscriptions; the cursor is the place of the next one."""
    end = _start(asked) + len(found)
    here = [webhook_answer(one, health[one.id], now, whole_url=whole_url) for one in found]
    return WebhookPage(here, total, pagination(asked, total, str(end) if found and end < total else None))


def _masked(url: str) -> str:
    """Return a URL with `***` for what follows its host."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/***" if parts.query or parts.path.strip("/") else url


def _start(asked: Page) -> int:
    """How many to pass over: by the cursor, or by the offset."""
    if asked.cursor is None:
        return asked.offset
    start = whole_number(asked.cursor, _DIGITS)
    if start is None:
        raise invalid("cursor", f"cursor is not one that this list has given: {shown(asked.cursor)}")
    return start


def delivery_page(found: Sequence[DeliveryRecord], asked: Page, total: int | None, more: str | None) -> DeliveryPage:
    """One page of deliveries; the cursor is the last id that was read."""
    return DeliveryPage([delivery_answer(one) for one in found], pagination(asked, total, more))


def delivery_answer(found: DeliveryRecord) -> Delivery:
    """A delivery as it stands."""
    return Delivery(
        id=found.id,
        subscription_id=found.subscription_id,
        event_id=found.event_id,
        event_type=found.event_type,
        status=found.status,
        attempts=found.attempts,
        last_status_code=found.last_status,
        error=found.error or None,
        created_at=moment(found.created_at),
        updated_at=moment(found.updated_at),
        next_attempt_at=moment(found.next_at or None),
        event=written(found.event),
    )

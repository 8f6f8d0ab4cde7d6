"""Answers about webhooks. Only creation and rotation show a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import urlsplit

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.base.times import format_ms
from ojs_engine.wire.members import Count, Extended, JsonObject, OpenStruct, Timestamp, extended, given, timestamp
from ojs_engine.wire.pages import Page, Pagination, pagination
from ojs_features.webhooks.records import DeliveryRecord, DeliveryStatus, PauseReason, Subscription, TargetHealth

_DIGITS: Final = 9

_Secret = Annotated[str, Meta(description="Shown this once.")]


class WebhookFilter(OpenStruct, omit_defaults=True):
    """Conditions that an event must match besides its type."""

    queues: list[str] | UnsetType = UNSET
    job_types: list[str] | UnsetType = UNSET


class WebhookKey(Struct):
    """The key in whose name events are brought. Without `payloads` they have nothing that jobs carry."""

    id: str
    name: str
    payloads: bool


class WebhookAnswer(OpenStruct, kw_only=True):
    """A subscription. Failures are of attempts; `failure_count` and `success_count` may be some seconds behind."""

    id: str
    url: str
    events: list[str]
    filter: WebhookFilter | UnsetType = UNSET
    metadata: JsonObject
    active: bool
    paused_reason: Annotated[PauseReason, Meta(description="Why the server has paused it.")] | UnsetType = UNSET
    key: WebhookKey | UnsetType = UNSET
    secret: _Secret | UnsetType = UNSET
    old_secret_expires_at: Timestamp | UnsetType = UNSET
    created_at: Timestamp
    updated_at: Timestamp
    last_delivery_at: Timestamp | UnsetType = UNSET
    last_delivery_status: Count | UnsetType = UNSET
    success_count: Count
    failure_count: Count
    dead_count: Count
    consecutive_failures: Count


WebhookView = WebhookAnswer | Extended[WebhookAnswer]


class OneWebhook(Struct):
    """The answer about one subscription."""

    subscription: WebhookView


class RotatedWebhook(Struct):
    """A subscription with its new secret; deliveries are signed with the old one, too, for a day."""

    subscription: WebhookView
    secret: _Secret


class WebhookPage(Struct):
    """Subscriptions, the oldest first."""

    subscriptions: list[WebhookView]
    total: Count
    pagination: Pagination


class DeletedWebhook(Struct):
    """The subscription is gone, and its deliveries with it."""

    deleted: bool
    id: str


class WebhookTest(Struct, kw_only=True, omit_defaults=True):
    """The target's answer to an event of type `webhook.test`."""

    success: bool
    status_code: Annotated[int, Meta(ge=0, description="0 if there was no answer.")]
    response_time_ms: Count
    response_body: Annotated[str, Meta(description="Its beginning.")] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class DeliveryAnswer(Struct, kw_only=True):
    """An event that did not go through at the first attempt."""

    id: str
    subscription_id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts: Count
    last_status_code: Annotated[int, Meta(ge=0, description="0 if there was no answer.")]
    error: str | UnsetType = UNSET
    created_at: Timestamp
    updated_at: Timestamp
    next_attempt_at: Timestamp | UnsetType = UNSET
    event: JsonObject


class OneDelivery(Struct):
    """The answer about one delivery."""

    delivery: DeliveryAnswer


class DeliveryPage(Struct):
    """Deliveries, the newest event first."""

    deliveries: list[DeliveryAnswer]
    pagination: Pagination


def webhook_answer(
    found: Subscription, health: TargetHealth, now: int, *, secret: bool = False, whole_url: bool = True
) -> WebhookView:
    """A subscription and how its deliveries go, with its `secret` only on the occasions that show it.

    Without `whole_url` path and query of its URL are masked: many services have their secret there.
    """
    narrowed = WebhookFilter(list(found.queues) or UNSET, list(found.job_types) or UNSET)
    answer = WebhookAnswer(
        id=found.id,
        url=found.url if whole_url else _masked(found.url),
        events=list(found.events),
        filter=narrowed if found.queues or found.job_types else UNSET,
        metadata=found.metadata,
        active=found.active,
        paused_reason=given(found.paused),
        key=UNSET if found.owner is None else WebhookKey(found.owner.id, found.owner.name, found.owner.payloads),
        secret=found.secret if secret else UNSET,
        old_secret_expires_at=format_ms(found.old_until) if len(found.secrets(now)) > 1 else UNSET,
        created_at=format_ms(found.created_at),
        updated_at=format_ms(found.updated_at),
        last_delivery_at=timestamp(health.last_at or None),
        last_delivery_status=health.last_status or UNSET,
        success_count=health.succeeded,
        failure_count=health.failed,
        dead_count=health.dead,
        consecutive_failures=health.in_a_row,
    )
    return extended(answer, found.extensions)


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


def delivery_answer(found: DeliveryRecord) -> DeliveryAnswer:
    """A delivery as it stands."""
    return DeliveryAnswer(
        id=found.id,
        subscription_id=found.subscription_id,
        event_id=found.event_id,
        event_type=found.event_type,
        status=found.status,
        attempts=found.attempts,
        last_status_code=found.last_status,
        error=found.error or UNSET,
        created_at=format_ms(found.created_at),
        updated_at=format_ms(found.updated_at),
        next_attempt_at=timestamp(found.next_at or None),
        event=found.event,
    )

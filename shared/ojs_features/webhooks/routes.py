"""Webhooks (docs/webhooks.md)."""

from __future__ import annotations

from typing import Final, get_args

from ojs_engine.api.common import OBJECT, PAGED, QUEUE_NAME, SHORT
from ojs_engine.api.route import Parameter, Part, Route
from ojs_engine.api.schema import FLAG, Schema, list_of, one_of, record, text
from ojs_features.webhooks.answers import (
    DeletedWebhook,
    DeliveryPage,
    OneDelivery,
    OneWebhook,
    RotatedWebhook,
    WebhookPage,
    WebhookTest,
)
from ojs_features.webhooks.dialects import SHAPES
from ojs_features.webhooks.handlers import WebhookHandlers
from ojs_features.webhooks.records import DeliveryStatus
from ojs_features.webhooks.requests import MAX_NAMES, MAX_PATTERNS, MAX_SECRET, MAX_URL

_URL: Final = text("https, unless the server allows http.", most=MAX_URL)
_EVENTS: Final = list_of(text(), 1, MAX_PATTERNS, "Types, wildcards such as job.*, or * for all.")
_REST: Final[dict[str, Schema]] = {
    "filter": record({}, {"queues": list_of(QUEUE_NAME, most=MAX_NAMES), "job_types": list_of(SHORT, most=MAX_NAMES)}),
    "metadata": OBJECT,
    "active": FLAG,
}
_SECRET: Final = text("Made by the server if it is left out.", most=MAX_SECRET)
_ONE: Final = "/webhooks/subscriptions/{subscription}"
_DELIVERY: Final = "/webhooks/deliveries/{delivery}"
_KNOWN: Final = ("not_found", "invalid_request")
_STATUS: Final = Parameter("status", one_of(*get_args(DeliveryStatus)))

PART: Final = Part(
    "Webhooks",
    "Events brought to URLs",
    (
        Route(
            WebhookHandlers,
            WebhookHandlers.create,
            ("POST /webhooks/subscriptions createWebhookSubscription",),
            "configure",
            "Subscribe a URL to events",
            {201: OneWebhook},
            "The secret that deliveries are signed with is in this answer and in no later one.",
            body=record({"url": _URL, "events": _EVENTS}, {**_REST, "secret": _SECRET}),
            errors=("conflict", "metadata_too_large", "storage_full"),
            besides=("read",),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.list,
            ("GET /webhooks/subscriptions listWebhookSubscriptions",),
            "read",
            "List subscriptions",
            {200: WebhookPage},
            query=PAGED,
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.read,
            (f"GET {_ONE} getWebhookSubscription",),
            "read",
            "Read a subscription",
            {200: OneWebhook},
            errors=_KNOWN,
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.change,
            (f"PATCH {_ONE} updateWebhookSubscription", f"PUT {_ONE}"),
            "configure",
            "Change, pause or resume a subscription",
            {200: OneWebhook},
            "What is sent is changed; `active` pauses and resumes. Events that come meanwhile are delivered afterwards.",
            body=record({}, {"url": _URL, "events": _EVENTS, **_REST}),
            errors=("not_found", "conflict", "metadata_too_large", "storage_full"),
            besides=("read",),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.delete,
            (f"DELETE {_ONE} deleteWebhookSubscription",),
            "configure",
            "Delete a subscription",
            {200: DeletedWebhook},
            errors=(*_KNOWN, "conflict"),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.test,
            (f"POST {_ONE}/test testWebhookSubscription",),
            "configure",
            "Send an event of type webhook.test",
            {200: WebhookTest},
            "Waits for the target, up to 30 s.",
            errors=_KNOWN,
            besides=("read",),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.rotate,
            (f"POST {_ONE}/rotate-secret rotateWebhookSecret",),
            "configure",
            "Have a new secret",
            {200: RotatedWebhook},
            "Deliveries are signed with both secrets for 24 hours.",
            errors=(*_KNOWN, "conflict", "storage_full"),
            besides=("read",),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.of_subscription,
            (f"GET {_ONE}/deliveries listSubscriptionDeliveries",),
            "read",
            "List deliveries of a subscription that did not go through at once",
            {200: DeliveryPage},
            query=(_STATUS, *PAGED),
            errors=_KNOWN,
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.deliveries,
            ("GET /webhooks/deliveries listWebhookDeliveries",),
            "read",
            "List deliveries that did not go through at once",
            {200: DeliveryPage},
            "Kept for seven days: of each subscription up to 500 that are not tried again.",
            query=(Parameter("subscription_id", SHORT), _STATUS, *PAGED),
            errors=("invalid_request",),
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.delivery,
            (f"GET {_DELIVERY} getWebhookDelivery",),
            "read",
            "Read a delivery",
            {200: OneDelivery},
            errors=_KNOWN,
        ),
        Route(
            WebhookHandlers,
            WebhookHandlers.retry,
            (f"POST {_DELIVERY}/retry retryWebhookDelivery",),
            "control",
            "Try a dead delivery again",
            {200: OneDelivery},
            "One attempt, whose outcome is in the answer.",
            errors=(*_KNOWN, "conflict", "storage_full"),
        ),
    ),
    SHAPES,
)

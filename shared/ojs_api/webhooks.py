"""Webhooks: subscriptions that bring events to URLs, and their deliveries (docs/webhooks.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from ojs_api.members import (
    SECRET,
    Count,
    Ignored,
    JsonObject,
    Moment,
    OpenAnswer,
    QueueName,
    Text,
    Undecoded,
    one_of,
    wanted,
)
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import PAGED, Pagination
from ojs_api.words import DeliveryStatus

PauseReason = Literal["failing", "gone", "key_ended"]
MAX_URL: Final = 2_048
MAX_PATTERNS: Final = 50
MAX_NAMES: Final = 100
MIN_SECRET: Final = 8
MAX_SECRET: Final = 256

_Url = Annotated[
    str,
    Meta(max_length=MAX_URL, description="https, unless the server allows http."),
    wanted(f"an absolute URL of at most {MAX_URL} characters"),
]
_Events = Annotated[
    list[str],
    Meta(min_length=1, max_length=MAX_PATTERNS, description="Types, wildcards such as job.*, or * for all."),
    wanted(f"a list of 1 to {MAX_PATTERNS} event types such as job.completed, job.* or *"),
]
_Queues = Annotated[list[QueueName], Meta(max_length=MAX_NAMES), wanted(f"a list of at most {MAX_NAMES} names of queues")]
_Types = Annotated[list[Text], Meta(max_length=MAX_NAMES), wanted(f"a list of at most {MAX_NAMES} job types")]
_GivenSecret = Annotated[
    str,
    Meta(min_length=MIN_SECRET, max_length=MAX_SECRET, description="Made by the server if it is left out."),
    wanted(f"{MIN_SECRET} to {MAX_SECRET} printable ASCII characters without blanks"),
    SECRET,
]
_Metadata = Annotated[dict[str, Undecoded], Meta(extra_json_schema={"type": "object", "additionalProperties": True})]
_ShownSecret = Annotated[str, Meta(description="Shown this once.")]
_Answered = Annotated[int, Meta(extra_json_schema={"minimum": 0}, description="0 if there was no answer.")]


class Narrowed(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Conditions that an event must match besides its type."""

    queues: _Queues | None = None
    job_types: _Types | None = None


class CreateWebhook(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A new subscription."""

    url: _Url
    events: _Events
    filter: Narrowed | None = None
    metadata: _Metadata | None = None
    active: bool | None = None
    secret: _GivenSecret | None = None


class UpdateWebhook(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The members to change."""

    url: _Url | None = None
    events: _Events | None = None
    filter: Narrowed | None = None
    metadata: _Metadata | None = None
    active: bool | None = None
    # Set by the server alone, and ignored, so that an answer can be sent back
    id: Ignored = None
    paused_reason: Ignored = None
    key: Ignored = None
    old_secret_expires_at: Ignored = None
    created_at: Ignored = None
    updated_at: Ignored = None
    last_delivery_at: Ignored = None
    last_delivery_status: Ignored = None
    success_count: Ignored = None
    failure_count: Ignored = None
    dead_count: Ignored = None
    consecutive_failures: Ignored = None


class WebhookFilter(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions that an event must match besides its type."""

    queues: list[str] = field(default_factory=list)
    job_types: list[str] = field(default_factory=list)


class WebhookKey(Struct, frozen=True, kw_only=True):
    """The key in whose name events are brought. Without `payloads` they have nothing that jobs carry."""

    id: str
    name: str
    payloads: bool


class Webhook(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """A subscription. Failures are of attempts; `failure_count` and `success_count` may be some seconds behind."""

    id: str
    url: str
    events: list[str]
    filter: WebhookFilter | None = None
    metadata: JsonObject
    active: bool
    paused_reason: Annotated[str, Meta(description="Why the server has paused it."), one_of(PauseReason)] | None = None
    key: WebhookKey | None = None
    secret: _ShownSecret | None = None
    old_secret_expires_at: Moment | None = None
    created_at: Moment
    updated_at: Moment
    last_delivery_at: Moment | None = None
    last_delivery_status: Count | None = None
    success_count: Count
    failure_count: Count
    dead_count: Count
    consecutive_failures: Count


class OneWebhook(Struct, frozen=True):
    """The answer about one subscription."""

    subscription: Webhook


class RotatedWebhook(Struct, frozen=True):
    """A subscription with its new secret; deliveries are signed with the old one, too, for a day."""

    subscription: Webhook
    secret: _ShownSecret


class WebhookPage(Struct, frozen=True):
    """Subscriptions, the oldest first."""

    subscriptions: list[Webhook]
    total: Count
    pagination: Pagination


class DeletedWebhook(Struct, frozen=True):
    """The subscription is gone, and its deliveries with it."""

    deleted: bool
    id: str


class WebhookTest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The target's answer to an event of type `webhook.test`."""

    success: bool
    status_code: _Answered
    response_time_ms: Count
    response_body: Annotated[str, Meta(description="Its beginning.")] | None = None
    error: str | None = None


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event that did not go through at the first attempt. It is `dead` if it was given up."""

    id: str
    subscription_id: str
    event_id: str
    event_type: str
    status: Annotated[str, one_of(DeliveryStatus)]
    attempts: Count
    last_status_code: _Answered
    error: str | None = None
    created_at: Moment
    updated_at: Moment
    next_attempt_at: Moment | None = None
    event: JsonObject


class OneDelivery(Struct, frozen=True):
    """The answer about one delivery."""

    delivery: Delivery


class DeliveryPage(Struct, frozen=True):
    """Deliveries, the newest event first."""

    deliveries: list[Delivery]
    pagination: Pagination


_ONE: Final = "/webhooks/subscriptions/{subscription}"
_DELIVERY: Final = "/webhooks/deliveries/{delivery}"
_KNOWN: Final = ("not_found", "invalid_request")
_STATUS: Final = Parameter("status", DeliveryStatus)

# fmt: off
CREATE: Final = Operation(
    "createWebhookSubscription", "POST /webhooks/subscriptions", "configure", "Subscribe a URL to events",
    {201: OneWebhook}, "The secret that deliveries are signed with is in this answer and in no later one.",
    body=CreateWebhook, errors=("conflict", "metadata_too_large", "storage_full"), besides=("read",),
)
LIST: Final = Operation(
    "listWebhookSubscriptions", "GET /webhooks/subscriptions", "read", "List subscriptions",
    {200: WebhookPage}, query=PAGED,
)
GET: Final = Operation(
    "getWebhookSubscription", f"GET {_ONE}", "read", "Read a subscription", {200: OneWebhook}, errors=_KNOWN,
)
UPDATE: Final = Operation(
    "updateWebhookSubscription", f"PATCH {_ONE}", "configure", "Change, pause or resume a subscription",
    {200: OneWebhook},
    "What is sent is changed; `active` pauses and resumes. Events that come meanwhile are delivered afterwards.",
    also=(f"PUT {_ONE}",), body=UpdateWebhook,
    errors=("not_found", "conflict", "metadata_too_large", "storage_full"), besides=("read",),
)
DELETE: Final = Operation(
    "deleteWebhookSubscription", f"DELETE {_ONE}", "configure", "Delete a subscription",
    {200: DeletedWebhook}, errors=(*_KNOWN, "conflict"),
)
TEST: Final = Operation(
    "testWebhookSubscription", f"POST {_ONE}/test", "configure", "Send an event of type webhook.test",
    {200: WebhookTest}, "Waits for the target, up to 30 s.", errors=_KNOWN, besides=("read",),
)
ROTATE: Final = Operation(
    "rotateWebhookSecret", f"POST {_ONE}/rotate-secret", "configure", "Have a new secret",
    {200: RotatedWebhook}, "Deliveries are signed with both secrets for 24 hours.",
    errors=(*_KNOWN, "conflict", "storage_full"), besides=("read",),
)
OF_WEBHOOK: Final = Operation(
    "listSubscriptionDeliveries", f"GET {_ONE}/deliveries", "read",
    "List deliveries of a subscription that did not go through at once",
    {200: DeliveryPage}, query=(_STATUS, *PAGED), errors=_KNOWN,
)
DELIVERIES: Final = Operation(
    "listWebhookDeliveries", "GET /webhooks/deliveries", "read", "List deliveries that did not go through at once",
    {200: DeliveryPage}, "Kept for seven days: of each subscription up to 500 that are not tried again.",
    query=(Parameter("subscription_id", Annotated[str, Meta(min_length=1, max_length=255)]), _STATUS, *PAGED),
    errors=("invalid_request",),
)
GET_DELIVERY: Final = Operation(
    "getWebhookDelivery", f"GET {_DELIVERY}", "read", "Read a delivery", {200: OneDelivery}, errors=_KNOWN,
)
RETRY: Final = Operation(
    "retryWebhookDelivery", f"POST {_DELIVERY}/retry", "control", "Try a dead delivery again",
    {200: OneDelivery}, "One attempt, whose outcome is in the answer.", errors=(*_KNOWN, "conflict", "storage_full"),
)
WEBHOOKS: Final = Subject(
    "Webhooks", "Events brought to URLs",
    (CREATE, LIST, GET, UPDATE, DELETE, TEST, ROTATE, OF_WEBHOOK, DELIVERIES, GET_DELIVERY, RETRY),
)

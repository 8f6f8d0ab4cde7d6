"""Webhooks: events brought to URLs (docs/webhooks.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from ojs_nats._operations import Operation, Request
from ojs_nats.models.webhooks import Delivery, RotatedWebhook, Webhook, WebhookTest
from ojs_nats.operations.subject import Subject, body, parameters

_BASE: Final = "/webhooks/subscriptions"
_CREATE: Final = Operation("createWebhookSubscription", "POST", _BASE)
_LIST: Final = Operation("listWebhookSubscriptions", "GET", _BASE)
_GET: Final = Operation("getWebhookSubscription", "GET", _BASE + "/{subscription}")
_UPDATE: Final = Operation("updateWebhookSubscription", "PATCH", _BASE + "/{subscription}")
_DELETE: Final = Operation("deleteWebhookSubscription", "DELETE", _BASE + "/{subscription}")
_TEST: Final = Operation("testWebhookSubscription", "POST", _BASE + "/{subscription}/test")
_ROTATE: Final = Operation("rotateWebhookSecret", "POST", _BASE + "/{subscription}/rotate-secret")
_DELIVERIES: Final = Operation("listWebhookDeliveries", "GET", "/webhooks/deliveries")
_DELIVERY: Final = Operation("getWebhookDelivery", "GET", "/webhooks/deliveries/{delivery}")
_RETRY: Final = Operation("retryWebhookDelivery", "POST", "/webhooks/deliveries/{delivery}/retry")


class Webhooks(Subject):
    """`client.webhooks`. What is about one subscription or delivery raises NotFoundError."""

    async def subscribe(
        self,
        url: str,
        events: Sequence[str],
        *,
        queues: Sequence[str] = (),
        job_types: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        secret: str | None = None,
        active: bool = True,
    ) -> Webhook:
        """Have events of these types (`job.failed`, `job.*`) sent to `url`. Only this answer tells the secret, which is made
        for you unless you give one.
        """
        asked = body(url=url, events=[*events], filter=_filter(queues, job_types), metadata=metadata, secret=secret)
        return await self._asked(Webhook, Request(_CREATE, body={**asked, "active": active}, repeatable=False), "subscription")

    def list(self, *, limit: int | None = None) -> AsyncIterator[Webhook]:
        """The oldest first."""
        return self._each(Webhook, "subscriptions", _LIST, limit, {})

    async def get(self, webhook_id: str) -> Webhook:
        return await self._asked(Webhook, Request(_GET, {"subscription": webhook_id}), "subscription")

    async def update(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
        job_types: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        active: bool | None = None,
    ) -> Webhook:
        """Change what is named; `active=False` pauses it. `queues` and `job_types` replace the filter together."""
        narrowed = None if queues is None and job_types is None else _filter(queues or (), job_types or ()) or {}
        asked = body(url=url, events=None if events is None else [*events], filter=narrowed, metadata=metadata, active=active)
        return await self._asked(Webhook, Request(_UPDATE, {"subscription": webhook_id}, asked), "subscription")

    async def delete(self, webhook_id: str) -> None:
        """Its deliveries go with it."""
        await self._transport.send(Request(_DELETE, {"subscription": webhook_id}))

    async def test(self, webhook_id: str) -> WebhookTest:
        """What its target answers to an event of type `webhook.test`."""
        return await self._asked(WebhookTest, Request(_TEST, {"subscription": webhook_id}, repeatable=False))

    async def rotate_secret(self, webhook_id: str) -> RotatedWebhook:
        """A new secret; deliveries are signed with the old one, too, for a day."""
        return await self._asked(RotatedWebhook, Request(_ROTATE, {"subscription": webhook_id}, repeatable=False))

    def deliveries(
        self,
        *,
        webhook_id: str | None = None,
        status: Literal["failing", "dead", "delivered"] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Delivery]:
        """Those that didn't go through at once, the newest event first."""
        asked = parameters(subscription_id=webhook_id, status=status)
        return self._each(Delivery, "deliveries", _DELIVERIES, limit, asked)

    async def delivery(self, delivery_id: str) -> Delivery:
        return await self._asked(Delivery, Request(_DELIVERY, {"delivery": delivery_id}), "delivery")

    async def retry_delivery(self, delivery_id: str) -> Delivery:
        """Try one that was given up again."""
        return await self._asked(Delivery, Request(_RETRY, {"delivery": delivery_id}, repeatable=False), "delivery")


def _filter(queues: Sequence[str], job_types: Sequence[str]) -> dict[str, object] | None:
    return body(queues=[*queues] or None, job_types=[*job_types] or None) or None

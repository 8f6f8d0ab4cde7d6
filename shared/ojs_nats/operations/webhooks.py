"""Operations on webhooks: subscriptions that bring events to URLs (docs/webhooks.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ojs_api import words
from ojs_api.webhooks import (
    CREATE,
    DELETE,
    DELIVERIES,
    GET,
    GET_DELIVERY,
    LIST,
    RETRY,
    ROTATE,
    TEST,
    UPDATE,
    CreateWebhook,
    Delivery,
    Narrowed,
    RotatedWebhook,
    UpdateWebhook,
    Webhook,
    WebhookTest,
)
from ojs_nats._operations import Request
from ojs_nats.operations._subject import Subject, parameters, sent

__all__ = ["Webhooks"]


class Webhooks(Subject):
    """The operations on webhooks, as `client.webhooks`. Those on one subscription or delivery raise NotFoundError if it
    doesn't exist.
    """

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
        """Subscribe a URL to events. Only this answer has the secret that deliveries are signed with.

        Args:
            url: The URL.
            events: The types of events, such as `job.failed` or `job.*`.
            queues: The queues of the events. Empty means all queues.
            job_types: The job types of the events. Empty means all types.
            metadata: Data of your own to keep with the subscription.
            secret: The secret. None lets the server make one.
            active: Whether events are delivered from now on.

        Raises:
            InvalidRequestError: The URL can't be delivered to, or there is no such event.
        """
        asked = CreateWebhook(
            url=url,
            events=[*events],
            filter=_filter(queues, job_types) if queues or job_types else None,
            metadata=None if metadata is None else {**metadata},
            active=active,
            secret=secret,
        )
        return await self._asked(Webhook, Request(CREATE, body=sent(asked), repeatable=False), "subscription")

    def list(self, *, limit: int | None = None) -> AsyncIterator[Webhook]:
        """List subscriptions, the oldest first.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(Webhook, "subscriptions", LIST, limit, {})

    async def get(self, webhook_id: str) -> Webhook:
        """Return a subscription.

        Raises:
            NotFoundError: There is no such subscription.
        """
        return await self._asked(Webhook, Request(GET, {"subscription": webhook_id}), "subscription")

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
        """Change a subscription. Values that are None stay as they are.

        Args:
            webhook_id: The subscription's id.
            url: The URL.
            events: The types of events.
            queues: The queues of the events. `queues` and `job_types` replace the filter together.
            job_types: The job types of the events.
            metadata: Data of your own to keep with the subscription.
            active: Whether events are delivered. False pauses the subscription.

        Raises:
            NotFoundError: There is no such subscription.
        """
        asked = UpdateWebhook(
            url=url,
            events=None if events is None else [*events],
            filter=None if queues is None and job_types is None else _filter(queues or (), job_types or ()),
            metadata=None if metadata is None else {**metadata},
            active=active,
        )
        return await self._asked(Webhook, Request(UPDATE, {"subscription": webhook_id}, sent(asked)), "subscription")

    async def delete(self, webhook_id: str) -> None:
        """Delete a subscription and its deliveries.

        Raises:
            NotFoundError: There is no such subscription.
        """
        await self._transport.send(Request(DELETE, {"subscription": webhook_id}))

    async def test(self, webhook_id: str) -> WebhookTest:
        """Send an event of type `webhook.test`, and return what the URL answered.

        Raises:
            NotFoundError: There is no such subscription.
        """
        return await self._asked(WebhookTest, Request(TEST, {"subscription": webhook_id}, repeatable=False))

    async def rotate_secret(self, webhook_id: str) -> RotatedWebhook:
        """Give a subscription a new secret. For a day, deliveries are signed with both.

        Raises:
            NotFoundError: There is no such subscription.
        """
        return await self._asked(RotatedWebhook, Request(ROTATE, {"subscription": webhook_id}, repeatable=False))

    def deliveries(
        self,
        *,
        webhook_id: str | None = None,
        status: words.DeliveryStatus | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Delivery]:
        """List deliveries that didn't succeed at once, those of the newest events first.

        Args:
            webhook_id: The subscription's id. None means all subscriptions.
            status: The status. None means all.
            limit: How many at most. None means all.
        """
        asked = parameters(subscription_id=webhook_id, status=status)
        return self._each(Delivery, "deliveries", DELIVERIES, limit, asked)

    async def delivery(self, delivery_id: str) -> Delivery:
        """Return a delivery that didn't succeed at once.

        Raises:
            NotFoundError: There is no such delivery.
        """
        return await self._asked(Delivery, Request(GET_DELIVERY, {"delivery": delivery_id}), "delivery")

    async def retry_delivery(self, delivery_id: str) -> Delivery:
        """Try a delivery again that the server has given up.

        Raises:
            NotFoundError: There is no such delivery.
            ConflictError: The server hasn't given it up.
        """
        return await self._asked(Delivery, Request(RETRY, {"delivery": delivery_id}, repeatable=False), "delivery")


def _filter(queues: Sequence[str], job_types: Sequence[str]) -> Narrowed:
    return Narrowed(queues=[*queues] or None, job_types=[*job_types] or None)

"""Webhook subscriptions and their deliveries (ojs-webhooks §6, §10)."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import Final

import msgspec

from ojs_api.webhooks import DeletedWebhook, OneDelivery, OneWebhook, RotatedWebhook, WebhookTest
from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import refuse_key
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import Event
from ojs_engine.store.announce import announce
from ojs_engine.wire.pages import parse_page
from ojs_engine.wire.redaction import redacted
from ojs_features.context import HandlerContext
from ojs_features.webhooks.answers import (
    delivery_answer,
    delivery_page,
    on_page,
    webhook_answer,
    webhook_page,
)
from ojs_features.webhooks.records import Owner, TargetHealth
from ojs_features.webhooks.requests import parse_changes, parse_cursor, parse_status, parse_subscription
from ojs_features.webhooks.rules import Verdict, delivery_id
from ojs_features.webhooks.startup import INSECURE, PRIVATE
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_features.webhooks.targets import Targets

_SECRET_BYTES: Final = 32
_AT_ONCE: Final = 16
"""Requests to targets that a gateway makes at a time, for clients that wait for them."""


class WebhookHandlers:
    """Handlers under /webhooks."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._webhooks = context.store.of(Webhooks)
        self._limits = context.limits
        self._insecure = context.setting(INSECURE)
        self._private = context.setting(PRIVATE)
        self._targets = Targets(insecure=self._insecure, private=self._private)
        context.at_stop.append(self._targets.close)
        self._outgoing = asyncio.Semaphore(_AT_ONCE)

    async def create(self, call: Call) -> Response:
        """POST /webhooks/subscriptions: the one answer with the secret."""
        refuse_key(call, "list the subscriptions before you send it again")
        wanted = await call.read(parse_subscription, self._limits, insecure=self._insecure)
        made = await self._webhooks.create(wanted.new(_new_secret(), _owner(call)))
        await self._tell("webhook.subscription.created", made.id)
        return Response(201, OneWebhook(webhook_answer(made, TargetHealth(), self._store.clock.now(), secret=True)))

    async def list(self, call: Call) -> Response:
        """GET /webhooks/subscriptions, with the paging of all lists."""
        asked = parse_page(call.queries)
        every = await self._webhooks.all()
        here = on_page(every, asked)
        health = await self._webhooks.health_of(here)
        now = self._store.clock.now()
        return Response(200, webhook_page(here, health, asked, len(every), now, whole_url=_sees_urls(call)))

    async def read(self, call: Call) -> Response:
        """GET /webhooks/subscriptions/{id}."""
        return await self._one(call)

    async def change(self, call: Call) -> Response:
        """PATCH or PUT /webhooks/subscriptions/{id}: what is sent is changed."""
        wanted = await call.read(parse_changes, self._limits, insecure=self._insecure)
        await self._webhooks.change(call.parameters[0], partial(wanted.apply, owner=_owner(call)))
        return await self._one(call)

    async def delete(self, call: Call) -> Response:
        """DELETE /webhooks/subscriptions/{id}."""
        gone = await self._webhooks.delete(call.parameters[0])
        await self._tell("webhook.subscription.deleted", gone.id)
        return Response(200, DeletedWebhook(True, gone.id))

    async def rotate(self, call: Call) -> Response:
        """POST /webhooks/subscriptions/{id}/rotate-secret: the old one goes on for a day."""
        secret = _new_secret()
        found = await self._webhooks.change(call.parameters[0], lambda old, moment: old.rotated(secret, moment))
        health = await self._webhooks.health(found.id)
        return Response(200, RotatedWebhook(webhook_answer(found, health, self._store.clock.now()), secret))

    async def test(self, call: Call) -> Response:
        """POST /webhooks/subscriptions/{id}/test: 200 for any answer of the target."""
        subscription = await self._webhooks.get(call.parameters[0])
        now = self._store.clock.now()
        event = Event(
            id=f"evt_{new_job_id(now)}",
            type="webhook.test",
            source="ojs://ojs-nats/gateway",
            time=format_ms(now),
            subject=subscription.id,
            data={"subscription_id": subscription.id},
        )
        async with self._outgoing:
            answer = await self._targets.deliver(
                subscription, delivery_id(subscription.id, event.id, now), event.type, msgspec.json.encode(event), now
            )
        visible = not answer.error and (not self._private or call.principal.may("admin"))  # it may be from inside the network
        view = WebhookTest(
            success=answer.success,
            status_code=answer.status,
            response_time_ms=answer.ms,
            response_body=answer.body if visible else None,
            error=answer.error or None,
        )
        return Response(200, view)

    async def deliveries(self, call: Call) -> Response:
        """GET /webhooks/deliveries?subscription_id&status, with the paging of all lists."""
        return await self._deliveries(call, call.query("subscription_id") or None)

    async def of_subscription(self, call: Call) -> Response:
        """GET /webhooks/subscriptions/{id}/deliveries?status."""
        subscription = await self._webhooks.get(call.parameters[0])
        return await self._deliveries(call, subscription.id)

    async def _deliveries(self, call: Call, subscription_id: str | None) -> Response:
        asked = parse_page(call.queries)
        status = parse_status(call.query("status"))
        after = parse_cursor(asked.cursor)
        page = await self._webhooks.deliveries.page(subscription_id, status, after, asked.offset, asked.limit)
        return Response(200, delivery_page(page.deliveries, asked, page.total, page.more))

    async def delivery(self, call: Call) -> Response:
        """GET /webhooks/deliveries/{id}."""
        return Response(200, OneDelivery(delivery_answer(await self._webhooks.deliveries.get(call.parameters[0]))))

    async def retry(self, call: Call) -> Response:
        """POST /webhooks/deliveries/{id}/retry: one attempt, now; only of a dead delivery."""
        found = await self._webhooks.deliveries.get(call.parameters[0])
        found.check_dead()
        subscription = await self._webhooks.get(found.subscription_id)
        if subscription.paused == "key_ended":
            raise OjsError(
                "conflict",
                f"the key of subscription {subscription.id} has ended, so nothing is brought in its name",
                hint="Set `active` to true with a key of your own, which takes the subscription over.",
                canonical="WEBHOOK_KEY_ENDED",
            )
        async with self._outgoing:
            now = self._store.clock.now()
            event = bytes(found.event)
            body = redacted(event) if subscription.hides else event
            answer = await self._targets.deliver(subscription, found.id, found.event_type, body, now)
        verdict = Verdict("delivered" if answer.success else "dead")
        tried = found.after(answer.status, answer.error, verdict, self._store.clock.now())
        await self._webhooks.deliveries.store(tried)
        return Response(200, OneDelivery(delivery_answer(tried)))

    async def _one(self, call: Call) -> Response:
        found = await self._webhooks.get(call.parameters[0])
        health = await self._webhooks.health(found.id)
        view = webhook_answer(found, health, self._store.clock.now(), whole_url=_sees_urls(call))
        return Response(200, OneWebhook(view))

    async def _tell(self, event_type: str, subscription_id: str) -> None:
        data = {"subscription_id": subscription_id}
        await announce(self._store, event_type, scope="webhook", subject=subscription_id, data=data)


def _sees_urls(call: Call) -> bool:
    return call.principal.may("configure")


def _owner(call: Call) -> Owner | None:
    """Name the key that events are brought for; None where no key is needed."""
    if call.key_id is None:
        return None
    return Owner(id=call.key_id, name=call.principal.name, payloads=call.principal.may("payloads"))


def _new_secret() -> str:
    return f"whsec_{secrets.token_urlsafe(_SECRET_BYTES)}"

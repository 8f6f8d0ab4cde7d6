"""Knows all subscriptions by heart, and has a subscriber for each that is active."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import within
from ojs_engine.store.callers import key_lives
from ojs_features.webhooks import metrics
from ojs_features.webhooks.pausing import pause
from ojs_features.webhooks.subscriber import Subscriber, SubscriberTimings
from ojs_features.webhooks.subscriptions import Webhooks

if TYPE_CHECKING:
    from ojs_engine.store.store import Store
    from ojs_features.webhooks.records import Subscription, Tally
    from ojs_features.webhooks.targets import Targets

log = structlog.get_logger(__name__)


class Deliverer:
    """The process. What it has in hand when it dies comes to another one."""

    def __init__(self, store: Store, targets: Targets, timings: SubscriberTimings = SubscriberTimings()) -> None:
        self._timings = timings
        self._store = store
        self._webhooks = store.of(Webhooks)
        self._targets = targets
        self._subscribers: dict[str, Subscriber] = {}
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        store.on_reset(self._reset)

    async def start(self) -> None:
        self._tasks = [
            start_loop("webhooks", self._follow),
            start_loop("webhooks-owners", self._look_at_owners, every_s=self._timings.owners_s, tell=False),
            start_loop("webhooks-note", self._note, every_s=self._timings.note_s, tell=False),
            start_loop("webhooks-tidy", self._webhooks.tidy, every_s=self._timings.tidy_s, tell=False),
        ]

    async def stop(self) -> None:
        """Finish the deliveries that end soon; others come to another process at once."""
        for task in self._tasks:
            await stop_loop(task)
        await self._drop(self._timings.stop_s)
        await self._note()
        await self._targets.close()

    async def _follow(self) -> None:
        await self._webhooks.follow(self._news.set)
        self._news.clear()
        waits = await self._store.queues.wait_for_release()
        active = {one.id: one for one in self._webhooks.known() if one.active and not waits}
        ended = [self._subscribers.pop(known) for known in list(self._subscribers) if known not in active]
        await asyncio.gather(*(subscriber.stop(0) for subscriber in ended))
        for subscription in active.values():
            subscriber = self._subscribers.get(subscription.id)
            if subscriber is not None:
                subscriber.change(subscription)
                continue
            self._subscribers[subscription.id] = begun = Subscriber(self._store, self._targets, subscription, self._timings)
            await begun.start()
        metrics.SUBSCRIPTIONS.set(len(active))
        await within(self._timings.held_s if waits else self._timings.look_s, self._news)

    async def _look_at_owners(self) -> None:
        """Pause what is brought in the name of a key that has ended: it may have been revoked without a gateway."""
        for subscriber in list(self._subscribers.values()):
            owner = subscriber.subscription.owner
            if owner is not None and not await key_lives(self._store.bucket, owner.id):
                await pause(self._store, subscriber.subscription.id, "key_ended")

    async def _note(self) -> None:
        """Store what was counted. It is lost with the process, or while NATS is away."""
        for subscriber in list(self._subscribers.values()):
            tally = subscriber.take_tally()
            if tally.empty:
                continue
            try:
                await self._note_one(subscriber.subscription, tally)
            except OjsError as error:  # one record's trouble must not keep the others from being written
                log.debug("a webhook's counts are lost", subscription_id=subscriber.subscription.id, reason=error.message)

    async def _note_one(self, subscription: Subscription, tally: Tally) -> None:
        health = await self._webhooks.note(subscription.id, tally)
        if health.given_up(subscription.updated_at, self._store.clock.now()):
            await pause(self._store, subscription.id, "failing")

    async def _drop(self, patience_s: float) -> None:
        subscribers = list(self._subscribers.values())
        await asyncio.gather(*(subscriber.stop(patience_s) for subscriber in subscribers))

    async def _reset(self) -> None:
        await self._drop(self._timings.reset_s)
        self._subscribers.clear()
        self._news.set()

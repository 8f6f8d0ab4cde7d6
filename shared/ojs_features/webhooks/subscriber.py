"""Brings one subscription's events to its URL. A slow or dead target has a subscriber of its own, and holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

import structlog
from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop, stop_tasks
from ojs_engine.due.loop import Again, DueLoop, Handled, one_by_one
from ojs_engine.jetstream.event_reader import EventFilter
from ojs_engine.store.announce import announce
from ojs_engine.wire.redaction import redacted
from ojs_features.webhooks import metrics
from ojs_features.webhooks.pausing import pause
from ojs_features.webhooks.records import DeliveryRecord, Tally
from ojs_features.webhooks.rules import OWN, Verdict, delivery_id, judge
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_link.timings import Order, Timings

if TYPE_CHECKING:
    from ojs_engine.jetstream.due_messages import Due
    from ojs_engine.jetstream.event_consumer import ConsumedEvent
    from ojs_engine.store.store import Store
    from ojs_features.webhooks.records import Subscription
    from ojs_features.webhooks.targets import TargetAnswer, Targets

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 8
"""Events that a process brings at a time to one target, and as many failed ones that it tries again."""


class SubscriberTimings(Timings, frozen=True, kw_only=True):
    """When deliveries are made again, and what else a deliverer does."""

    again_ms: int = 30_000
    """When an attempt whose outcome could not be stored is made again: as after the first failure."""
    first_rest_s: float = 0.5
    """Between pulls while a target fails: its events wait in the stream, and their attempts aren't used up together."""
    longest_rest_s: float = 30.0
    """The longest rest; each is twice as long as the one before."""
    note_s: float = 1.0
    """How often the counts of deliveries are written."""
    tidy_s: float = 60.0
    """How often old deliveries are removed."""
    look_s: float = 60.0
    """How often subscriptions are checked though nothing was heard of a change."""
    held_s: float = 1.0
    """How often a process asks whether a restored system was released."""
    owners_s: float = 10.0
    """How often it looks whether the keys of subscriptions have ended. Gateways pause what they hear of at once."""
    stop_s: float = 2.0
    """How long deliveries under way may take when the process stops."""
    reset_s: float = 0.2
    """How long they may take when everything is reset."""
    order: ClassVar[Order] = (("first_rest_s", "longest_rest_s", "rests would grow shorter"),)


class _Envelope(Struct):
    id: str


_envelope: Final = Decoder(_Envelope).decode


class Subscriber:
    """Begins with `start`, ends with `stop`."""

    def __init__(self, store: Store, targets: Targets, subscription: Subscription, timings: SubscriberTimings) -> None:
        self._timings = timings
        self._store = store
        self._webhooks = store.of(Webhooks)
        self._deliveries = self._webhooks.deliveries
        self._targets = targets
        self._consumer = self._webhooks.consumer(subscription.id)
        self._due = self._deliveries.due(subscription.id, _AT_ONCE)
        retry = one_by_one(self._due, "webhook's delivery", self._retry)
        self._retries = DueLoop(f"webhook-retries-{subscription.id}", self._due, retry, tell=False)
        self._under_way: dict[asyncio.Task[None], ConsumedEvent] = {}
        self._tally = Tally()
        self._rest_s = 0.0
        self._failing = False
        self._loop: asyncio.Task[None] | None = None
        self.change(subscription)

    def change(self, subscription: Subscription) -> None:
        """Go on with the subscription as it is now. What has failed before is tried again whether or not it still matches."""
        self.subscription = subscription
        self._wanted = EventFilter(types=subscription.events, queues=subscription.queues, job_types=subscription.job_types)
        self._webhooks.aim(self._consumer, subscription)

    def take_tally(self) -> Tally:
        """Return the counts since the last call."""
        tally, self._tally = self._tally, Tally()
        return tally

    async def start(self) -> None:
        self._loop = start_loop(f"webhook-{self.subscription.id}", self._turn, tell=False)
        await self._retries.start()

    async def stop(self, patience_s: float) -> None:
        """Take nothing new; what isn't done after so many seconds is cut off, and comes again at once."""
        await stop_loop(self._loop)
        await asyncio.gather(self._retries.stop(), self._cut_off(patience_s))

    async def _cut_off(self, patience_s: float) -> None:
        if self._under_way and patience_s:
            await asyncio.wait(self._under_way, timeout=patience_s)
        cut_off = dict(self._under_way)
        await stop_tasks(cut_off)
        for one in cut_off.values():
            self._consumer.again(one, 0)

    # Events

    async def _turn(self) -> None:
        if self._failing:
            self._rest_s = min(max(2 * self._rest_s, self._timings.first_rest_s), self._timings.longest_rest_s)
            await asyncio.sleep(self._rest_s)
            if await self._deliveries.full(self.subscription.id):
                return
            self._failing = False
        if len(self._under_way) >= _AT_ONCE:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            return
        for one in await self._consumer.next(_AT_ONCE - len(self._under_way)):
            task = asyncio.create_task(self._handle(one), name=f"delivery-{one.event.sequence}")
            self._under_way[task] = one
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)

    async def _handle(self, one: ConsumedEvent) -> None:
        try:
            if not one.event.type.startswith(OWN) and self._wanted.admits(one.event):
                await self._attempt(self._first(one), lambda: self._consumer.working(one))
            self._consumer.done(one)
        except DecodeError as error:
            log.error("an event can't be read and is brought to no webhook", sequence=one.event.sequence, problem=str(error))
            self._consumer.done(one)
        except OjsError as error:
            self._waits(error)
            self._consumer.again(one, self._timings.again_ms)
        except Exception:  # one event's trouble must not keep the others waiting
            log.exception("webhook's delivery failed and will come back", subscription_id=self.subscription.id)
            self._consumer.again(one, self._timings.again_ms)

    def _first(self, one: ConsumedEvent) -> DeliveryRecord:
        event_id = _envelope(one.event.body).id
        return DeliveryRecord(
            id=delivery_id(self.subscription.id, event_id, one.at),
            subscription_id=self.subscription.id,
            event_id=event_id,
            event_type=one.event.type,
            event=Raw(one.event.body),
            created_at=one.at,
            updated_at=one.at,
        )

    # Deliveries that have failed

    async def _retry(self, due: Due) -> Handled:
        delivery = self._deliveries.of(self.subscription.id, due)
        try:
            if delivery is not None:
                await self._attempt(delivery, lambda: self._due.working([due]))
        except OjsError as error:
            self._waits(error)
            return Again(self._timings.again_ms)
        return "done"

    # Both

    async def _attempt(self, delivery: DeliveryRecord, working: Callable[[], None]) -> None:
        """Bring it to the target once, and store what came of it. Raises OjsError if that can't be stored."""
        now = self._store.clock.now()
        answer = await self._answer(delivery, now, working)
        verdict = judge(answer.status, delivery.attempts + 1, answer.retry_after_s)
        self._count(delivery, answer, verdict)
        if verdict.outcome != "delivered" or delivery.attempts:
            delivery = delivery.after(answer.status, answer.error, verdict, self._store.clock.now())
            await self._deliveries.store(delivery)
        if verdict.outcome == "dead":
            await self._tell_dead(delivery)
        if verdict.gone:
            await pause(self._store, delivery.subscription_id, "gone")

    async def _answer(self, delivery: DeliveryRecord, now: int, working: Callable[[], None]) -> TargetAnswer:
        """The target's answer; while it takes its time, the delivery is kept from other processes."""
        event = bytes(delivery.event)
        body = redacted(event) if self.subscription.hides else event
        sending = asyncio.create_task(
            self._targets.deliver(self.subscription, delivery.id, delivery.event_type, body, now), name=delivery.id
        )
        try:
            while not (await asyncio.wait([sending], timeout=self._consumer.timings.working_s))[0]:
                working()
            return sending.result()
        finally:
            sending.cancel()

    def _count(self, delivery: DeliveryRecord, answer: TargetAnswer, verdict: Verdict) -> None:
        self._tally.count(answer.status, self._store.clock.now(), success=answer.success)
        self._tally.dead += verdict.outcome == "dead"
        self._failing = verdict.outcome == "again"
        if not self._failing:  # a target that answers is not rested, even if it refuses this event
            self._rest_s = 0.0
        status = {"delivered": "success", "again": "failed", "dead": "dead"}[verdict.outcome]
        metrics.DELIVERIES.labels(delivery.event_type, status).inc()
        metrics.SECONDS.labels(delivery.event_type).observe(answer.ms / 1_000)

    async def _tell_dead(self, delivery: DeliveryRecord) -> None:
        data = {
            "subscription_id": delivery.subscription_id,
            "delivery_id": delivery.id,
            "event_id": delivery.event_id,
            "event_type": delivery.event_type,
            "attempts": delivery.attempts,
        }
        await announce(self._store, "webhook.dead", scope="webhook", subject=delivery.subscription_id, data=data)

    def _waits(self, error: OjsError) -> None:
        log.warning("webhook's delivery waits", subscription_id=self.subscription.id, reason=error.message)

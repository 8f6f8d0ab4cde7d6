"""Webhook subscriptions in the bucket, and how their deliveries have gone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ojs_api.webhooks import PauseReason
from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.base.ids import new_job_id
from ojs_engine.base.portions import in_portions
from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.api import purge_unheard
from ojs_engine.jetstream.consumers import remove
from ojs_engine.jetstream.contents import stream_info
from ojs_engine.jetstream.event_consumer import EventConsumer, consumer_names
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.records.documents import NOTHING_BESIDE, Beside, Documents
from ojs_engine.store.store import Store
from ojs_features.webhooks.deliveries import Deliveries, DeliveryTimings
from ojs_features.webhooks.records import Subscription, Tally, TargetHealth
from ojs_features.webhooks.subjects import CONSUMER, Subjects

MAX_SUBSCRIPTIONS: Final = 100
_LEADER_READS: Final = 32


def _sound(token: str, subscription: Subscription) -> None:
    if subscription.id != token:
        raise ValueError("it is the record of another subscription")


webhook_reader: Final = RecordReader("webhook", msgspec.json.Decoder(Subscription).decode, _sound)
target_reader: Final = RecordReader("target", msgspec.json.Decoder(TargetHealth).decode)


class Webhooks:
    """Reads and changes subscriptions, for gateways and for those who deliver."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self.deliveries = Deliveries(bucket, bucket.timings(DeliveryTimings))
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._records = bucket.records
        self._clock = bucket.clock
        self._kept = bucket.kept
        self._config = config = bucket.config
        self._subjects = subjects = Subjects(config)
        self._streams = (config.events_stream, config.records_stream)
        """Streams in which a subscription has a consumer."""
        self._documents = Documents(bucket, subjects.webhook, webhook_reader, lambda found, op: found.op == op)
        self._targets = Documents(bucket, subjects.target, target_reader, lambda found, op: found.op == op)
        self._on_change: Callable[[], None] = lambda: None
        self._watch = bucket.watches.add("webhooks", [subjects.webhook(ANY)], self._changed)

    # Subscriptions

    async def all(self) -> list[Subscription]:
        """By the time they were created, as the leader has them."""
        return _live((await self._stored()).values())

    async def get(self, subscription_id: str) -> Subscription:
        """Raises OjsError not_found."""
        return _existing(subscription_id, (await self._documents.read(subscription_id))[1])

    async def create(self, wanted: Subscription) -> Subscription:
        """Store a subscription under a new id; events from now on are its. Raises OjsError conflict if there are too many."""
        if len(await self.all()) >= MAX_SUBSCRIPTIONS:
            raise OjsError(
                "conflict",
                f"there are {MAX_SUBSCRIPTIONS} webhook subscriptions; that is the limit",
                hint="Delete one that isn't needed, or let one subscription admit more events.",
                canonical="TOO_MANY_SUBSCRIPTIONS",
            )
        since = (await stream_info(self._nats, self._config.events_stream)).state.last_seq
        subscription_id = f"sub_{new_job_id(self._clock.now())}"

        def decide(_old: Subscription | None, moment: Moment) -> Subscription:
            return replace(wanted, id=subscription_id, since=since, created_at=moment.now).changed(moment)

        await self._documents.change(subscription_id, decide)
        return await self.get(subscription_id)

    async def change(self, subscription_id: str, decide: Callable[[Subscription, Moment], Subscription]) -> Subscription:
        """Apply a pure decision. Raises OjsError not_found, and what `decide` raises."""

        def decided(old: Subscription | None, moment: Moment) -> Subscription:
            return decide(_existing(subscription_id, old), moment)

        def beside(_old: Subscription | None, new: Subscription) -> Beside:
            return Beside(ttl_s=self._kept.deleted_s) if new.deleted else NOTHING_BESIDE

        changed = (await self._documents.change(subscription_id, decided, beside)).new
        return _existing(subscription_id, changed, deleted=True)

    async def delete(self, subscription_id: str) -> Subscription:
        """Its deliveries end, those that wait for another attempt as well. Raises OjsError not_found."""
        gone = await self.change(subscription_id, lambda old, moment: old.ended(moment))
        await self._remove_all_of(subscription_id)
        return gone

    async def pause(self, subscription_id: str, reason: PauseReason) -> bool:
        """Let the server end deliveries until a client sets `active` again; False if there are none anyway.

        Raises OjsError not_found.
        """
        changed = await self._documents.change(
            subscription_id, lambda old, moment: _existing(subscription_id, old).paused_by(reason, moment)
        )
        return changed.new is not changed.old

    async def wanted(self) -> bool:
        """Whether there is any subscription. Raises OjsError backend_unavailable."""
        return bool(await self.all())

    # For those who deliver

    async def follow(self, changed: Callable[[], None]) -> None:
        """Know all subscriptions by heart; `changed` is called when they have changed. Raises OjsError backend_unavailable."""
        self._on_change = changed
        await self._watch.begin()

    def known(self) -> list[Subscription]:
        """All of them, as of some milliseconds ago."""
        return _live(self._read(self._watch.entries).values())

    def consumer(self, subscription_id: str) -> EventConsumer:
        """The events of a subscription, which all who deliver share."""
        return EventConsumer(self._nats, self._bulk, self._config, self._subjects.consumer(subscription_id))

    def aim(self, consumer: EventConsumer, subscription: Subscription) -> None:
        """Have a consumer deliver what its subscription may admit."""
        consumer.wants(self._config.events_of_types(subscription.events), subscription.since)

    async def tidy(self) -> None:
        """Remove what a deleted subscription has left, and the oldest deliveries beyond the number that is kept.

        Raises OjsError backend_unavailable.
        """
        prefix = len(self._subjects.target(""))
        owners = {subject[prefix:] for subject in await self._records.subjects(self._subjects.target(ANY))}
        for stream in self._streams:
            owners |= {name.removeprefix(CONSUMER) for name in await consumer_names(self._nats, stream, CONSUMER)}
        stored = await self._stored()  # read last: what is new is no orphan
        live = {key for key, one in stored.items() if one is None or not one.deleted}
        for orphan in owners - live:
            await self._remove_all_of(orphan)
        for subscription_id in live:
            self.deliveries.trim(subscription_id)

    async def _remove_all_of(self, subscription_id: str) -> None:
        for stream in self._streams:
            # A cluster doesn't answer for a consumer that it is about to make: the next `tidy` finds it.
            with contextlib.suppress(OjsError):
                await remove(self._nats, stream, [self._subjects.consumer(subscription_id)])
        purge_unheard(self._nats, self._config.records_stream, self._subjects.target(subscription_id))
        self.deliveries.remove(subscription_id)

    # How deliveries have gone

    async def health(self, subscription_id: str) -> TargetHealth:
        """How deliveries have gone so far."""
        return (await self._targets.read(subscription_id))[1] or TargetHealth()

    async def health_of(self, subscriptions: Sequence[Subscription]) -> dict[str, TargetHealth]:
        """Return how deliveries have gone of many, by the subscription's id. One that can't be read is as new."""
        subjects = {one.id: self._subjects.target(one.id) for one in subscriptions}
        raw = await self._records.many_raw(list(subjects.values()))
        found = {key: target_reader.read(key, *raw[subject]) for key, subject in subjects.items() if subject in raw}
        return {key: found.get(key) or TargetHealth() for key in subjects}

    async def note(self, subscription_id: str, tally: Tally) -> TargetHealth:
        """Add what was counted; returns how deliveries have gone by now. Raises OjsError backend_unavailable."""
        changed = await self._targets.change(subscription_id, lambda old, moment: (old or TargetHealth()).noted(tally, moment))
        return changed.new or TargetHealth()

    async def _stored(self) -> dict[str, Subscription | None]:
        """All records by id, as the leader has them; None for one that can't be read."""
        subjects = await self._records.subjects(self._subjects.webhook(ANY))
        if self._records.nearest_is_leader:
            return self._read(await self._records.many_raw(subjects))
        found = await in_portions(subjects, self._records.leader_raw, _LEADER_READS)
        return self._read({subject: one for subject, one in zip(subjects, found, strict=True) if one is not None})

    def _read(self, raw: Mapping[str, tuple[int, bytes]]) -> dict[str, Subscription | None]:
        prefix = len(self._subjects.webhook(""))
        tokens = {subject[prefix:]: one for subject, one in raw.items() if one[1]}
        return {token: webhook_reader.read(token, *one) for token, one in tokens.items()}

    def _changed(self) -> None:
        self._on_change()


def _live(found: Iterable[Subscription | None]) -> list[Subscription]:
    return sorted((one for one in found if one is not None and not one.deleted), key=lambda one: (one.created_at, one.id))


def _existing(subscription_id: str, found: Subscription | None, *, deleted: bool = False) -> Subscription:
    """Raises OjsError not_found."""
    if found is None or (found.deleted and not deleted):
        raise not_found("webhook subscription", subscription_id)
    return found

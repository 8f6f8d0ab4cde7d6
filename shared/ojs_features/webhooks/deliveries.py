"""Deliveries that did not go through at once.

One that fails is a timer with the delivery in its body, `ojs.timer.webhook.…`. When it fires nats-server stores the
same body as `ojs.due.webhook.…`, where a consumer of the subscription's own finds it; after the attempt it is a timer
again, or a record of the bucket. So it doesn't matter how long the event stream keeps the event, and one
subscription's deliveries never stand before another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from ojs_engine.base.errors import not_found
from ojs_engine.jetstream.api import purge_unheard, put
from ojs_engine.jetstream.contents import messages
from ojs_engine.jetstream.due_messages import Due, DueMessages, DueTimings
from ojs_engine.jetstream.headers import schedule
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.records.bucket import Bucket
from ojs_features.webhooks.records import DeliveryRecord, DeliveryStatus
from ojs_features.webhooks.subjects import Subjects
from ojs_link.timings import Timings

MOST_KEPT: Final = 500
"""Deliveries of one subscription that are not tried again. The oldest leave first."""
_PORTION: Final = 200
_LOOKED_AT: Final = 1_000
"""Deliveries that are read for one page of a status."""

_encode: Final = msgspec.json.Encoder().encode


def _sound(token: str, delivery: DeliveryRecord) -> None:
    if f"{delivery.subscription_id}.{delivery.id}" != token:
        raise ValueError("it is the record of another delivery")


delivery_reader: Final = RecordReader("delivery", msgspec.json.Decoder(DeliveryRecord).decode, _sound)


class DeliveryTimings(Timings, frozen=True, kw_only=True):
    """How many deliveries a subscription may have, how long they are kept, and for how long one is in hand."""

    failing: int = 500
    """Deliveries that are tried again; the subscription takes no further events until there are fewer."""
    kept_s: int = 7 * 86_400
    """How long NATS keeps one that isn't tried again, and one that is due."""
    ack_wait_s: int = 15
    """How long one that is due is another process's, before it is given to the next."""


class FoundDeliveries(NamedTuple):
    """A page of deliveries. `more` is the id after which it goes on, None at the end; `total` is None where it isn't known."""

    deliveries: list[DeliveryRecord]
    more: str | None
    total: int | None


class Deliveries:
    """Stores and reads them, for those who deliver and for gateways."""

    def __init__(self, bucket: Bucket, limits: DeliveryTimings) -> None:
        self._limits = limits
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._records = bucket.records
        self._config = bucket.config
        self._names = Subjects(bucket.config)

    async def store(self, delivery: DeliveryRecord) -> None:
        """Store how a delivery stands after an attempt. Raises OjsError backend_unavailable, storage_full."""
        names = delivery.subscription_id, delivery.id
        if delivery.status == "failing":
            subject = self._names.delivery_timer(*names)
            timer = schedule(delivery.next_at, self._names.delivery_due(*names), self._limits.kept_s)
            await put(self._nats, subject, _encode(delivery), None, "a webhook's delivery", timer=timer)
        else:
            await put(self._nats, self._names.delivery(*names), _encode(delivery), self._limits.kept_s, "a webhook's delivery")

    def due(self, subscription_id: str, batch: int) -> DueMessages:
        """The failing deliveries of a subscription whose time has come, which all who deliver share."""
        name = self._names.consumer(subscription_id)
        subject = self._names.delivery_due(subscription_id, ANY)
        timings = DueTimings(ack_wait_s=self._limits.ack_wait_s)
        return DueMessages(self._nats, self._bulk, self._config, name, timings, subject, batch)

    def of(self, subscription_id: str, due: Due) -> DeliveryRecord | None:
        """The delivery that is due; None if it can't be read."""
        return delivery_reader.read(f"{subscription_id}.{due.job_id}", due.sequence, due.data)

    async def full(self, subscription_id: str) -> bool:
        """Whether as many deliveries fail as may. Raises OjsError backend_unavailable."""
        return await self._waiting(self._names.delivery_timer(subscription_id, ANY)) >= self._limits.failing

    async def get(self, delivery_id: str) -> DeliveryRecord:
        """Raises OjsError not_found."""
        found = await self._read(list((await self._subjects(ANY, delivery_id, None)).values()))
        if not found:
            raise not_found("delivery", delivery_id)
        return found[0]

    async def page(
        self, subscription_id: str | None, status: DeliveryStatus | None, after: str | None, offset: int, limit: int
    ) -> FoundDeliveries:
        """Deliveries of one subscription or of all, the newest event first, from behind the id `after` or an offset on."""
        subjects = await self._subjects(ANY if subscription_id is None else subscription_id, ANY, status)
        ids = sorted(subjects, reverse=True)
        total = len(ids) if status in {None, "failing"} else None
        if after is not None:
            ids = [one for one in ids if one < after]
        left = ids[offset : offset + _LOOKED_AT]
        found: list[DeliveryRecord] = []
        last = None
        while left and len(found) < limit:
            portion, left = left[:_PORTION], left[_PORTION:]
            by_id = {one.id: one for one in await self._read([subjects[delivery_id] for delivery_id in portion])}
            for last in portion:
                one = by_id.get(last)
                if one is not None and status in {None, one.status}:
                    found.append(one)
                    if len(found) == limit:
                        break
        return FoundDeliveries(found, last if last is not None and last != ids[-1] else None, total)

    def trim(self, subscription_id: str) -> None:
        """Remove the oldest beyond `MOST_KEPT`."""
        kept = self._names.delivery(subscription_id, ANY)
        purge_unheard(self._nats, self._config.records_stream, kept, keep=MOST_KEPT)

    def remove(self, subscription_id: str) -> None:
        """Remove all of a subscription that has gone."""
        names = self._names
        for name in (names.delivery_timer, names.delivery_due, names.delivery):
            purge_unheard(self._nats, self._config.records_stream, name(subscription_id, ANY))

    async def _waiting(self, pattern: str) -> int:
        """How many messages there are under a wildcard."""
        which = {"next_by_subj": pattern, "seq": 1, "batch": 1}
        found, more = await messages(self._bulk, self._config.records_stream, which, "failing deliveries")
        return len(found) + more

    async def _subjects(self, subscription_id: str, delivery_id: str, status: DeliveryStatus | None) -> dict[str, str]:
        """Where deliveries are, by id: the later place if one is on its way from the one to the other."""
        names = self._names
        failing = [names.delivery_timer, names.delivery_due] if status in {None, "failing"} else []
        others = [names.delivery] if status != "failing" else []
        found: dict[str, str] = {}
        for name in (*failing, *others):
            for subject in await self._records.subjects(name(subscription_id, delivery_id)):
                found[subject.rpartition(".")[2]] = subject
        return found

    async def _read(self, subjects: Sequence[str]) -> list[DeliveryRecord]:
        raw = await self._records.many_raw(subjects)
        read = [delivery_reader.read(".".join(subject.split(".")[-2:]), *one) for subject, one in raw.items() if one[1]]
        return [delivery for delivery in read if delivery is not None]

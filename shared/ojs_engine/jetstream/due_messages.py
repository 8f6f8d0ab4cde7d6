"""Due messages: timers that fired, handed to the service they were set for, and let go only after their writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ojs_engine.base.errors import unavailable
from ojs_engine.base.waiting import until_next
from ojs_engine.jetstream.api import delete, deleted
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.consumers import SECOND_NS, Delivery, make_in_memory, most_bytes, pull, pulled
from ojs_engine.jetstream.subjects import ANY, StoreConfig
from ojs_link.timings import Timings

_BATCH: Final = 256


class DueTimings(Timings, frozen=True, kw_only=True):
    """How long due messages are waited for, and when one comes again."""

    park_s: int = 5
    """How long a pull waits for the first."""
    margin_s: float = 1.0
    """How long its answer may take beyond that."""
    ack_wait_s: int = 5
    """A message in hand comes to another process after this long, unless the handler says that it works on it."""
    again_ms: tuple[int, ...] = (250, 500, 1_000, 2_000, 5_000)
    """When a message that could not be handled comes again; the last time holds for all further ones."""


class Due(NamedTuple):
    """A timer that fired for a job. `at` is when the server stored it (Unix ms), `deliveries` counts from 1.

    `job_id` is whatever ends the subject: for other things than jobs their name.
    """

    job_id: str
    sequence: int
    at: int
    deliveries: int
    ack: str
    data: bytes = b""


class DueMessages:
    """One service's due messages; its replicas share a durable consumer, so each message goes to one of them."""

    def __init__(
        self,
        nats: Connection,
        bulk: Connection,
        config: StoreConfig,
        service: str,
        timings: DueTimings = DueTimings(),
        subject: str | None = None,
        batch: int = _BATCH,
    ) -> None:
        """`subject` is the wildcard of what to take, by default the timers that were set for `service`; `batch` how many at
        once.
        """
        self.timings = timings
        self._nats = nats
        self._bulk = bulk
        self._config = config
        self._service = service
        self._subject = subject or config.due(service, ANY)
        self._batch = batch
        self._ready = False
        self._parked = False
        """Whether the last pull waited in vain: what has come since meets the next one."""
        self._in_hand: set[int] = set()
        """Sequences of what was handed over last and nobody has answered for yet."""

    async def next(self) -> list[Due]:
        """Wait for due messages; may return none. Raises OjsError backend_unavailable."""
        if not self._ready:
            await self._make_consumer()
        parked, self._parked = self._parked, False
        outcome: list[Due] = []
        if not parked:
            at_once = {"batch": self._batch, "no_wait": True, "max_bytes": most_bytes(self._bulk)}
            outcome = await self._pull(at_once, self.timings.park_s)
        if not outcome:
            # Nothing is waiting: park for the first to come, then take what has come with it.
            wait_s = until_next(self.timings.park_s)
            outcome = await self._pull({"batch": 1, "expires": int(wait_s * SECOND_NS)}, wait_s)
            self._parked = not outcome and self._ready
        self._in_hand = {due.sequence for due in outcome}
        return outcome

    async def _pull(self, which: dict[str, Any], wait_s: float) -> list[Due]:
        timeout_s = wait_s + self.timings.margin_s
        found = pulled(await pull(self._bulk, self._config.records_stream, self._service, which, timeout_s))
        self._ready = found is not None
        prefix = len(self._subject.rstrip("*>"))
        return [_due(Delivery.of(message), prefix) for message in found or ()]

    async def _make_consumer(self) -> None:
        """Nothing is lost with its state: what was handled is deleted, and anything else is delivered again."""
        config = {
            "durable_name": self._service,
            "filter_subject": self._subject,
            "ack_wait": self.timings.ack_wait_s * SECOND_NS,
            "max_ack_pending": 5_000,
        }
        error = await make_in_memory(self._nats, self._config.records_stream, config)
        if error is not None:
            raise unavailable(f"NATS refused the consumer of {self._service}: {error.description}")
        self._ready = True

    async def done(self, handled: list[Due]) -> None:
        """Let handled messages go: deleted, then acked."""
        self.answered(handled)
        answers = [delete(self._nats, self._config.records_stream, due.sequence) for due in handled]
        for due, answer in zip(handled, answers, strict=True):
            if deleted(await answer) is not None:
                self._bulk.publish(due.ack, b"+ACK")

    def later(self, due: Due, delay_ms: int) -> None:
        """Have a message again after a while."""
        self.answered([due])
        self._bulk.publish(due.ack, b'-NAK {"delay": %d}' % (delay_ms * 1_000_000))

    def answered(self, messages: Sequence[Due]) -> None:
        """Whoever handles these answers for them, if only later: they are not to be given back."""
        self._in_hand.difference_update(due.sequence for due in messages)

    def give_back(self, batch: Sequence[Due]) -> None:
        """Have again, soon, what of a batch nobody has answered for. Silence would cost the time that a consumer grants for
        an ack, which is there for those that died.
        """
        again_ms = self.timings.again_ms
        for due in batch:
            if due.sequence in self._in_hand:
                self.later(due, again_ms[min(due.deliveries, len(again_ms)) - 1])

    def working(self, messages: Sequence[Due]) -> None:
        """Ask for as much time again for messages in hand as they are granted until their acks."""
        for due in messages:
            self._bulk.publish(due.ack, b"+WPI")


def _due(one: Delivery, prefix: int) -> Due:
    job_id = one.message.subject[prefix:].decode()
    return Due(job_id, one.sequence, one.at, one.deliveries, one.message.reply.decode(), one.message.data)

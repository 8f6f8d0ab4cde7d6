"""A durable consumer of the event stream, shared by processes: each event goes to one of them, until it is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple

from ojs_engine.jetstream.api import ask, call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.consumers import SECOND_NS, Delivery, most_bytes, pull, pulled
from ojs_engine.jetstream.event_reader import StoredEvent, event_of
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_link.timings import Order, Timings

_MAX_WAITING: Final = 1_000
"""Events that processes have in hand, or have given back for a while; no further ones are delivered beyond."""


class EventConsumerTimings(Timings, frozen=True, kw_only=True):
    """How long a process may have an event in hand, and how long the next one is waited for."""

    working_s: float = 5.0
    """How often the process says that it still has it."""
    ack_wait_s: int = 15
    """After so long a silence another process gets it."""
    park_s: int = 5
    """How long a pull waits for the first."""
    margin_s: float = 1.0
    """How long its answer may take beyond that."""
    order: ClassVar[Order] = (("working_s", "ack_wait_s", "two processes would have the event in hand"),)


class ConsumedEvent(NamedTuple):
    """An event in hand, stored `at` (Unix ms); `deliveries` counts from 1."""

    event: StoredEvent
    at: int
    deliveries: int
    ack: str


class EventConsumer:
    """One process's share of it. Its state is in a file, so nothing is delivered anew when nats-server is started again."""

    def __init__(
        self,
        nats: Connection,
        bulk: Connection,
        config: StoreConfig,
        name: str,
        timings: EventConsumerTimings = EventConsumerTimings(),
    ) -> None:
        self.timings = timings
        self._nats = nats
        self._bulk = bulk
        self._stream = config.events_stream
        self._name = name
        self._config: dict[str, Any] = {}
        self._ready = False

    def wants(self, subjects: Sequence[str], since: int) -> None:
        """What to deliver: events of some subjects that come after the sequence `since`."""
        config = {
            "durable_name": self._name,
            "filter_subjects": list(subjects),
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": since + 1,
            "ack_policy": "explicit",
            "ack_wait": self.timings.ack_wait_s * SECOND_NS,
            "max_ack_pending": _MAX_WAITING,
            "max_deliver": -1,
        }
        if config != self._config:
            self._config, self._ready = config, False

    async def next(self, batch: int) -> list[ConsumedEvent]:
        """Up to `batch` events, waiting for the first; may be none. Raises OjsError backend_unavailable."""
        if not self._ready:
            config = self._config
            wanted = {"stream_name": self._stream, "config": config}
            await ask(self._nats, f"CONSUMER.CREATE.{self._stream}.{self._name}", wanted, "a consumer of events")
            self._ready = config is self._config
        found = await self._pull({"batch": batch, "no_wait": True, "max_bytes": most_bytes(self._bulk)})
        return found or await self._pull({"batch": 1, "expires": self.timings.park_s * SECOND_NS})

    async def _pull(self, which: dict[str, Any]) -> list[ConsumedEvent]:
        timeout_s = self.timings.park_s + self.timings.margin_s
        found = pulled(await pull(self._bulk, self._stream, self._name, which, timeout_s))
        self._ready = self._ready and found is not None
        return [_consumed(Delivery.of(message)) for message in found or ()]

    def done(self, one: ConsumedEvent) -> None:
        """It is not to come again."""
        self._bulk.publish(one.ack, b"+ACK")

    def again(self, one: ConsumedEvent, delay_ms: int) -> None:
        """Have it again after a while, here or in another process."""
        self._bulk.publish(one.ack, b'-NAK {"delay": %d}' % (delay_ms * 1_000_000) if delay_ms else b"-NAK")

    def working(self, one: ConsumedEvent) -> None:
        """It is in hand still."""
        self._bulk.publish(one.ack, b"+WPI")


async def consumer_names(nats: Connection, stream: str, prefix: str) -> list[str]:
    """Consumers of a stream whose names begin so. Raises OjsError backend_unavailable."""
    names: list[str] = []
    while True:
        answer = await call(nats, f"CONSUMER.NAMES.{stream}", {"offset": len(names)})
        page = answer.get("consumers") or []
        names += page
        if not page or len(names) >= int(answer.get("total", 0)):
            return [name for name in names if name.startswith(prefix)]


def _consumed(one: Delivery) -> ConsumedEvent:
    message = one.message
    event = event_of(message.subject.decode(), one.sequence, message.data)
    return ConsumedEvent(event, one.at, one.deliveries, message.reply.decode())

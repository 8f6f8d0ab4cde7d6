"""The durable consumers of ready subjects: one each, made on first use, and never let go while their queue is paused."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_nats.errors import unavailable
from ojs_nats.store.api import call
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.queues import Queues
from ojs_nats.wire.times import format_ms

__all__ = ["Durables"]

_SECOND_NS: Final = 1_000_000_000
_EXISTS: Final = frozenset({10105, 10148})
_NEWBORN_MS: Final = 5_000
"""How long a durable stays paused if whoever made it dies before it has let it go; longer than any gateway's knowledge of a
queue is old (`watch.FRESH_S`)."""
_TRIES: Final = 8
_LET_GO_S: Final = 1.0


class Durables:
    """Makes durables and knows which are there (docs/adr/005)."""

    def __init__(self, link: Link, queues: Queues, clock: ServerClock, config: StoreConfig) -> None:
        self._link = link
        self._queues = queues
        self._clock = clock
        self._config = config
        self._known: set[str] = set()

    async def ready(self, subject: str, queue: str) -> bool:
        """Whether the subject's durable can be pulled from, as far as this process knows; makes it if it is unknown."""
        return self._config.ready_consumer(subject) in self._known or await self.make(subject, queue)

    async def make(self, subject: str, queue: str) -> bool:
        """Make the one durable of a ready subject; False if the queue is paused.

        It begins paused and is let go when the queue's record was read after it was made: a pause that was stored before
        that is seen here, and one that was stored later deletes the consumer.
        """
        stream, name = self._config.ready_stream, self._config.ready_consumer(subject)
        self._known.discard(name)
        for _ in range(_TRIES):
            if not await self.create(subject):
                self._known.add(name)  # somebody else made it, and answers for it
                return True
            if await self._queues.surely_held(queue):
                await call(self._link, f"CONSUMER.DELETE.{stream}.{name}")
                return False
            if "error" not in await call(self._link, f"CONSUMER.PAUSE.{stream}.{name}", {}):
                await self._until_let_go(name)
                self._known.add(name)
                return True
        raise unavailable("the queue is being paused and resumed")

    async def _until_let_go(self, name: str) -> None:
        """On a cluster the answer comes before the consumer's leader acts on it: 15 of 40 first fetches of a queue that held
        a job came back empty.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LET_GO_S
        while self._config.replicas > 1 and loop.time() < deadline:
            info = await call(self._link, f"CONSUMER.INFO.{self._config.ready_stream}.{name}")
            if not info.get("paused"):
                return
            await asyncio.sleep(0.002)

    async def create(self, subject: str) -> bool:
        """Make a durable that is paused for a moment; False if there is one."""
        stream, name = self._config.ready_stream, self._config.ready_consumer(subject)
        config = {
            "durable_name": name,
            "filter_subject": subject,
            "ack_policy": "explicit",
            "ack_wait": 3 * _SECOND_NS,
            "max_deliver": -1,
            "max_ack_pending": 10_000,
            "inactive_threshold": 3600 * _SECOND_NS,
            "pause_until": format_ms(self._clock.now() + _NEWBORN_MS),
        }
        request = {"stream_name": stream, "config": config, "action": "create"}
        answer = await call(self._link, f"CONSUMER.CREATE.{stream}.{name}.{subject}", request)
        error = answer.get("error")
        if error is not None and error.get("err_code") not in _EXISTS:
            raise unavailable(f"NATS refused the consumer of a queue: {error.get('description')}")
        return error is None

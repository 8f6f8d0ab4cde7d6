"""Following what a stream stores, in order, so that nothing is lost unnoticed.

A consumer that acknowledges nothing: who follows knows how far it has come, and whatever is lost on the way shows as a gap in
the consumer's own count, after which another one begins where the follower says.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final

import structlog

from ojs_engine.base.errors import unavailable
from ojs_engine.jetstream.api import ask
from ojs_engine.jetstream.connection import Collected, Connection, Failed, status
from ojs_engine.jetstream.consumers import NOTHING, SECOND_NS, Delivery, most_bytes, pull
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_BATCH: Final = 500


class OrderedTimings(Timings, frozen=True, kw_only=True):
    """How long a follower's consumer stays."""

    idle_s: int = 30
    """nats-server deletes one that has not been asked for this long."""


class OrderedConsumer:
    """One follower's consumers, one after the other; `live` while it has one. A pull brings `batch` messages at most."""

    def __init__(
        self,
        nats: Connection,
        stream: str,
        name: str,
        subjects: Sequence[str],
        batch: int = _BATCH,
        timings: OrderedTimings = OrderedTimings(),
    ) -> None:
        self._timings = timings
        self._nats = nats
        self._stream = stream
        self._name = name
        self._subjects = list(subjects)
        self._batch = batch
        self._incarnation = 0
        self._count = 0
        self.live = False

    @property
    def _current(self) -> str:
        return f"{self._name}-{self._incarnation}"

    async def begin(self, start: dict[str, Any]) -> int:
        """Have a consumer whose delivery policy is `start`; returns how many messages wait for it.

        Raises OjsError backend_unavailable.
        """
        self.drop()
        self._incarnation += 1
        config = start | {
            "name": self._current,
            "filter_subjects": self._subjects,
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": self._timings.idle_s * SECOND_NS,
        }
        create = f"CONSUMER.CREATE.{self._stream}.{self._current}"
        answer = await ask(self._nats, create, {"stream_name": self._stream, "config": config}, "a consumer of records")
        self.live, self._count = True, 0
        return int(answer.get("num_pending", 0))

    def pull(self, wait_s: float, margin_s: float) -> Coroutine[Any, Any, Collected | Failed]:
        """Ask for messages, wait up to `wait_s` for the first and `margin_s` longer for the answer."""
        which = {"batch": self._batch, "max_bytes": most_bytes(self._nats), "no_wait": True, "expires": int(wait_s * SECOND_NS)}
        return pull(self._nats, self._stream, self._current, which, wait_s + margin_s)

    def take(self, outcome: Collected | Failed) -> list[Delivery]:
        """What a pull has brought, up to the first gap; none if there is nothing new. After a loss there is no consumer.

        Raises OjsError backend_unavailable if it isn't known whether there is anything new.
        """
        taken, trouble = self._in_order(outcome)
        if trouble is not None:
            self.drop()
            if not taken:
                raise unavailable(trouble)
        return taken

    def _in_order(self, outcome: Collected | Failed) -> tuple[list[Delivery], str | None]:
        """And why that isn't all."""
        if isinstance(outcome, Failed):
            return [], f"records can't be read: {outcome.reason}"
        taken: list[Delivery] = []
        mark = f".{self._current}.".encode()
        for message in outcome.messages:
            if mark not in message.reply:  # what an earlier consumer had on its way is none of this one's business
                continue
            one = Delivery.of(message)
            if one.number != self._count + 1:
                log.warning("records were lost on the way and are read again", consumer=self._current)
                return taken, "records were lost on the way"
            self._count += 1
            taken.append(one)
        if outcome.closing is None or (not taken and status(outcome.closing) not in NOTHING):
            return taken, "the consumer of records is gone, or its leader is"
        return taken, None

    def drop(self) -> None:
        """Let the consumer go; the server would delete it after `idle_s`."""
        if self.live:
            delete = f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._current}"
            self._nats.publish(delete, b"", reply=self._nats.nobody)
            self.live = False

"""Due messages: timers that fired, handed to the service they were set for, and let go only after their writes."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ojs_nats.errors import unavailable
from ojs_nats.store.api import ApiError, ask, delete
from ojs_nats.store.link import Answer, Failed, Link, Reply, status
from ojs_nats.store.names import ANY, StoreConfig

__all__ = ["Due", "DueMessages"]

_SECOND_NS: Final = 1_000_000_000
_PARK_S: Final = 5
_BATCH: Final = 256
_BATCH_BYTES: Final = 8 * 1024 * 1024
_ROOM: Final = 64 * 1024
"""For the subject and the headers of a message as large as nats-server takes."""
_NO_CONSUMER: Final = frozenset({503, 409})
_NO_MESSAGE: Final = 10057


class _Deleted(Struct):
    error: ApiError | None = None


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
        self, link: Link, bulk: Link, config: StoreConfig, service: str, ack_wait_s: int = 5, subject: str | None = None
    ) -> None:
        """`subject` is the wildcard of what to take, by default the timers that were set for `service`."""
        self._link = link
        self._bulk = bulk
        self._config = config
        self._service = service
        self._ack_wait_s = ack_wait_s
        self._subject = subject or config.due(service, ANY)
        self._bytes = max(_BATCH_BYTES, bulk.max_payload) + _ROOM
        self._ready = False

    async def next(self) -> list[Due]:
        """Wait up to five seconds for due messages; may return none. Raises OjsError backend_unavailable."""
        if not self._ready:
            await self._make_consumer()
        request = msgspec.json.encode({"batch": _BATCH, "no_wait": True, "max_bytes": self._bytes})
        outcome = await self._pull(request)
        if not outcome:
            # Nothing is waiting: park for the first to come, then take what has come with it.
            request = msgspec.json.encode({"batch": 1, "expires": _PARK_S * _SECOND_NS})
            outcome = await self._pull(request, wanted=1)
        return outcome

    async def _pull(self, request: bytes, wanted: int = _BATCH) -> list[Due]:
        stream = self._config.records_stream
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{self._service}"
        outcome = await self._bulk.collect(subject, request, wanted, _PARK_S + 1)
        if isinstance(outcome, Failed):
            raise unavailable(f"due messages can't be read: {outcome.reason}")
        if not outcome.messages and outcome.closing is not None and status(outcome.closing) in _NO_CONSUMER:
            self._ready = False
        prefix = len(self._subject.rstrip("*>"))
        return [_due(message, prefix) for message in outcome.messages]

    async def _make_consumer(self) -> None:
        stream = self._config.records_stream
        subject = self._subject
        config = {
            "durable_name": self._service,
            "filter_subject": subject,
            "ack_policy": "explicit",
            "ack_wait": self._ack_wait_s * _SECOND_NS,
            "max_deliver": -1,
            "max_ack_pending": 5_000,
        }
        request = {"stream_name": stream, "config": config}
        create = f"CONSUMER.CREATE.{stream}.{self._service}.{subject}"
        await ask(self._link, create, request, f"the consumer of {self._service}")
        self._ready = True

    async def done(self, handled: list[Due]) -> None:
        """Let handled messages go: deleted, then acked."""
        answers = [delete(self._link, self._config.records_stream, due.sequence) for due in handled]
        for due, answer in zip(handled, answers, strict=True):
            if _gone(await answer):
                self._bulk.publish(due.ack, b"+ACK")

    def later(self, due: Due, delay_ms: int) -> None:
        """Have a message again after a while."""
        self._bulk.publish(due.ack, b'-NAK {"delay": %d}' % (delay_ms * 1_000_000))


def _gone(answer: Answer) -> bool:
    """Whether a deletion left nothing behind; a message that wasn't there any more was deleted before."""
    if isinstance(answer, Failed):
        return False
    error = msgspec.json.decode(answer.data, type=_Deleted).error
    return error is None or error.err_code == _NO_MESSAGE


def _due(message: Reply, prefix: int) -> Due:
    ack = message.reply.decode()
    parts = ack.split(".")  # … <deliveries>.<stream sequence>.<consumer sequence>.<timestamp ns>.<pending>
    return Due(
        job_id=message.subject[prefix:].decode(),
        sequence=int(parts[-4]),
        at=int(parts[-2]) // 1_000_000,
        deliveries=int(parts[-5]),
        ack=ack,
        data=message.data,
    )

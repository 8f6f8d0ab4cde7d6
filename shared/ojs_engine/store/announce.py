"""Events that no record tells of: told by whoever did what they tell of, beside what the relay derives from the
records.

They are told once and not again: a process that dies, or a NATS that is away, between a change and its event loses
the event. What is true stands in the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
import structlog

from ojs_engine.base.ids import derived_job_id, new_job_id
from ojs_engine.base.times import format_ms
from ojs_engine.domain.events.envelope import Event
from ojs_engine.jetstream.api import parse_ack
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection, Failed
from ojs_engine.jetstream.subjects import StoreConfig, encode_token
from ojs_engine.store.workers.notes import LEAVING

if TYPE_CHECKING:
    from ojs_engine.domain.job import Job
    from ojs_engine.store.workers.presence import WorkerRecord

log = structlog.get_logger(__name__)

_encode: Final = msgspec.json.Encoder().encode
_BEING_STORED: Final = 10158
"""A message with the same id is on its way to the replicas."""


class Announcer(Protocol):
    """A store, or what its parts stand on: whatever can publish events."""

    @property
    def nats(self) -> Connection: ...

    @property
    def config(self) -> StoreConfig: ...

    @property
    def clock(self) -> ServerClock: ...


class Once(NamedTuple):
    """A text that makes an event the same however often it is announced; its id is made of that and a moment (Unix ms)."""

    what: str
    at: int


async def announce(
    store: Announcer, event_type: str, *, scope: str, subject: str, data: dict[str, Any], once: Once | None = None
) -> int | None:
    """Store an event of `subject`, filed under `scope` (a queue or another kind of thing). Never raises.

    Announced again with the same text as `once`, by whichever process, it is stored once in two minutes.

    Returns its place in the event stream; None if it was not stored.
    """
    name = store.config.event(event_type, scope, encode_token(subject))
    headers = "" if once is None else f"Nats-Msg-Id: {encode_token(once.what)}\r\n"
    answer = await store.nats.request(name, _event(store, event_type, subject, data, once), headers)
    ack = None if isinstance(answer, Failed) else parse_ack(answer.data)
    if ack is not None and ack.error is not None and ack.error.err_code == _BEING_STORED:
        return None
    if ack is None or ack.error is not None:
        log.warning("an event was not stored", type=event_type, subject=subject)
        return None
    store.nats.publish(store.config.events_stored, b"")
    return ack.seq


def tell(store: Announcer, event_type: str, *, scope: str, subject: str, data: dict[str, Any]) -> None:
    """Publish an event to whoever listens now, stored nowhere: for what comes as often as heartbeats do.

    It stays out of the event stream, whose one writer would have to make room for each of them.
    """
    name = store.config.live_event(event_type, scope, encode_token(subject))
    store.nats.publish(name, _event(store, event_type, subject, data))


def tell_of_job(store: Announcer, event_type: str, job: Job, data: dict[str, Any]) -> None:
    """As `tell`, of a job. The header `Ojs-Entry` is the number of its last transition, as stored events have it."""
    name = store.config.live_event(event_type, job.queue, job.id)
    headers = f"Ojs-Entry: {job.transitions[-1].n if job.transitions else 0}\r\n"
    store.nats.publish(name, _event(store, event_type, job.id, data), headers)


async def announce_lost(store: Announcer, worker: WorkerRecord) -> None:
    """Store that a worker has stopped without a word: `shutdown` if it had said that it would, else `error`. Never raises."""
    stopped = {"worker_id": worker.id, "reason": "shutdown" if worker.state in LEAVING else "error"}
    once = Once(f"worker.stopped {worker.seen_at} {worker.id}", worker.seen_at)
    await announce(store, "worker.stopped", scope="worker", subject=worker.id, data=stopped, once=once)


def _event(store: Announcer, event_type: str, subject: str, data: dict[str, Any], once: Once | None = None) -> bytes:
    now = store.clock.now()
    event = Event(
        id=f"evt_{new_job_id(now) if once is None else derived_job_id(once.at, 'event', once.what)}",
        type=event_type,
        source="ojs://ojs-nats/gateway",
        time=format_ms(now),
        subject=subject,
        data=data,
    )
    return _encode(event)

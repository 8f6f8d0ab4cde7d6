"""Events that no record tells of: told by whoever did what they tell of, beside what the relay derives from the records.

They are told once and not again: a process that dies, or a NATS that is away, between a change and its event loses the event.
What is true stands in the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from ojs_core.base.ids import new_job_id
from ojs_core.base.times import format_ms
from ojs_core.domain.events.envelope import Event
from ojs_core.jetstream.api import parse_ack
from ojs_core.jetstream.connection import Failed
from ojs_core.jetstream.subjects import encode_token

if TYPE_CHECKING:
    from ojs_core.store.store import Store

log = structlog.get_logger(__name__)

_encode: Final = msgspec.json.Encoder().encode


async def announce(store: Store, event_type: str, *, scope: str, subject: str, data: dict[str, Any]) -> None:
    """Store an event of `subject`, filed under `scope` (a queue or another kind of thing). Never raises."""
    name = store.config.event(event_type, scope, encode_token(subject))
    answer = await store.nats.request(name, _event(store, event_type, subject, data))
    if isinstance(answer, Failed) or parse_ack(answer.data).error is not None:
        log.warning("an event was not stored", type=event_type, subject=subject)
        return
    store.nats.publish(store.config.events_stored, b"")


def tell(store: Store, event_type: str, *, scope: str, subject: str, data: dict[str, Any]) -> None:
    """Publish an event to whoever listens now, stored nowhere: for what comes as often as heartbeats do.

    It stays out of the event stream, whose one writer would have to make room for each of them.
    """
    name = store.config.live_event(event_type, scope, encode_token(subject))
    store.nats.publish(name, _event(store, event_type, subject, data))


def _event(store: Store, event_type: str, subject: str, data: dict[str, Any]) -> bytes:
    now = store.clock.now()
    event = Event(
        id=f"evt_{new_job_id(now)}",
        type=event_type,
        source="ojs://ojs-nats/gateway",
        time=format_ms(now),
        subject=subject,
        data=data,
    )
    return _encode(event)

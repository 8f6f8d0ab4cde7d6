"""Events that no record tells of: told by whoever did what they tell of, beside what the relay derives from the records.

They are told once and not again: a process that dies, or a NATS that is away, between a change and its event loses the event.
What is true stands in the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from ojs_nats.events.envelope import Event
from ojs_nats.store.api import parse_ack
from ojs_nats.store.link import Failed
from ojs_nats.store.names import encode_token
from ojs_nats.wire.ids import new_job_id
from ojs_nats.wire.times import format_ms

if TYPE_CHECKING:
    from ojs_nats.store import Store

__all__ = ["announce", "tell"]

log = structlog.get_logger(__name__)

_encode: Final = msgspec.json.Encoder().encode


async def announce(store: Store, event_type: str, *, scope: str, subject: str, data: dict[str, Any]) -> None:
    """Store an event of `subject`, filed under `scope` (a queue or another kind of thing). Never raises."""
    name = store.config.event(event_type, scope, encode_token(subject))
    answer = await store.link.request(name, _event(store, event_type, subject, data))
    if isinstance(answer, Failed) or parse_ack(answer.data).error is not None:
        log.warning("an event was not stored", type=event_type, subject=subject)
        return
    store.link.publish(store.config.events_stored, b"")


def tell(store: Store, event_type: str, *, scope: str, subject: str, data: dict[str, Any]) -> None:
    """Publish an event to whoever listens now, stored nowhere: for what comes as often as heartbeats do.

    It stays out of the event stream, whose one writer would have to make room for each of them.
    """
    name = store.config.live_event(event_type, scope, encode_token(subject))
    store.link.publish(name, _event(store, event_type, subject, data))


def _event(store: Store, event_type: str, subject: str, data: dict[str, Any]) -> bytes:
    now = store.clock.now()
    time = format_ms(now)
    event = Event(
        id=f"evt_{new_job_id(now)}",
        type=event_type,
        source="ojs://ojs-nats/gateway",
        time=time,
        subject=subject,
        data=data,
        event=event_type,
        timestamp=time,
    )
    return _encode(event)

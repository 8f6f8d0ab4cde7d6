"""Events of limits and bounded queues (ojs-rate-limiting §11.1; ojs-backpressure §10.1; ojs-queue-config §10.1)."""

from __future__ import annotations

from ojs_core.base.ids import derived_job_id
from ojs_core.base.times import format_ms
from ojs_core.domain.events.envelope import Event
from ojs_core.domain.threshold_alerts import AlertRecord, Crossed


def events_of_alert(record: AlertRecord, entry: Crossed) -> list[Event]:
    """The event of one entry of the log; `record` may be any later revision. Its id never changes."""
    origin = (record.name, record.queue or "", str(record.created_at), str(entry.n), entry.event)
    return [
        Event(
            id=f"evt_{derived_job_id(entry.at, 'event', *origin)}",
            type=entry.event,
            time=format_ms(entry.at),
            subject=record.name,
            data=entry.data,
        )
    ]

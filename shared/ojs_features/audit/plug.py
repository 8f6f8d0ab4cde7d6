"""The places where the audit is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.witness import Deed, Witness, Witnessing
from ojs_engine.base.ids import new_request_id
from ojs_engine.base.times import format_ms
from ojs_engine.store.store import Store
from ojs_features.audit.auditor import Auditor
from ojs_features.audit.entry import UNKNOWN, Detail, Entry
from ojs_features.audit.findings import look
from ojs_features.audit.gauges import Gauges
from ojs_features.audit.grants import GRANTS
from ojs_features.audit.metrics import ENTRIES
from ojs_features.audit.routes import PART
from ojs_features.audit.trail import AuditTimings, Trail, put_entry
from ojs_features.plug import Check, Feature


def _auditor(store: Store) -> Witness:
    timings = store.bucket.timings(AuditTimings)
    return Auditor(Trail(store.nats, store.config, timings=timings), Gauges(store, timings.fill_s), store.clock.now)


async def _write(store: Store, deed: Deed) -> None:
    """Store the entry of an act of a command. NATS doesn't say who that is: the entry has what the machine says."""
    entry = Entry(
        timestamp=format_ms(store.clock.now()),
        event_type=deed.event_type,
        principal=deed.principal,
        source_ip=UNKNOWN,
        correlation_id=new_request_id(),
        outcome="success",
        detail=Detail(operation=deed.operation, target=dict(deed.target), binding="nats", user_agent=deed.program),
    )
    await put_entry(store.nats, store.config, entry, entry.correlation_id)


AUDIT: Final = Feature(
    name="audit",
    parts=(PART,),
    witness=Witnessing(make=_auditor, write=_write),
    grants=GRANTS,
    checks=(Check(name="audit", look=look),),
    metrics=(ENTRIES,),
)

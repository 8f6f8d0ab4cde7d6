"""The records of workflows: read, decided on, swapped with their timer ahead of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from ojs_nats.errors import OjsError, not_found, unavailable
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.definitions import Definitions
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.records import Records
from ojs_nats.store.stepback import step_back
from ojs_nats.store.swap import Alarm, Swap, Swapper
from ojs_nats.transitions import Moment
from ojs_nats.workflows.advance import retention_s
from ojs_nats.workflows.graph import Graph
from ojs_nats.workflows.record import Workflow

__all__ = ["MAX_TRIES", "SERVICE", "StoredWorkflow", "WorkflowRecords", "contended"]

SERVICE: Final = "coordinator"
MAX_TRIES: Final = 20
_AFTER_CLEANUP_S: Final = 3_600

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Workflow).decode


class StoredWorkflow(NamedTuple):
    """A workflow's record with its sequence, and its graph."""

    sequence: int
    record: Workflow
    graph: Graph


class WorkflowRecords:
    """Every write to a workflow's record goes through here."""

    def __init__(self, link: Link, records: Records, definitions: Definitions, clock: ServerClock, config: StoreConfig) -> None:
        self._records = records
        self._definitions = definitions
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)

    async def load(self, workflow_id: str) -> StoredWorkflow | None:
        """The last word on a workflow; None if there is none, or its definition is gone."""
        found = await self._records.latest_raw(self._config.workflow(workflow_id))
        if found is None or not found[1]:
            return None
        graph = await self._definitions.graph(workflow_id)
        return None if graph is None else StoredWorkflow(found[0], _decode(found[1]), graph)

    async def change(self, workflow_id: str, decide: Callable[[Graph, Workflow, Moment], Workflow]) -> StoredWorkflow:
        """Apply a decision. Raises not_found, or whatever `decide` raises."""
        changed = await self.try_change(workflow_id, decide)
        if changed is None:
            raise not_found("workflow", workflow_id)
        return changed

    async def try_change(
        self, workflow_id: str, decide: Callable[[Graph, Workflow, Moment], Workflow | None]
    ) -> StoredWorkflow | None:
        """As `change`; None if there is no such workflow. `decide` returns None to leave it as it is."""
        for tries in range(1, MAX_TRIES + 1):
            stored = await self.load(workflow_id)
            if stored is None:
                return None
            moment = self._clock.moment()
            new = decide(stored.graph, stored.record, moment)
            if new is None:
                return stored
            try:
                sequence = await self.swap(stored.record, new, stored.sequence, moment.op)
            except Conflict:
                await step_back(self._clock, tries)
                continue
            return StoredWorkflow(sequence, new, stored.graph)
        raise contended(workflow_id)

    async def swap(self, old: Workflow | None, new: Workflow, expected: int, op: str, *, armed: bool = False) -> int:
        """Store `new` over the revision `expected`, its timer ahead of it unless that is `armed` already."""
        arm = cancel = None
        if not armed and new.timer is not None and (old is None or new.timer != old.timer):
            arm = self.alarm(new.id, new.timer.op, new.timer.at)
            cancel = self._config.workflow_timer(old.id, old.timer.op) if old is not None and old.timer is not None else None
        ttl_s = retention_s(new) + _AFTER_CLEANUP_S if new.terminal and not new.cancelling else None
        return await self._swapper.swap(
            Swap(
                subject=self._config.workflow(new.id),
                body=_encode(new),
                expected=expected,
                mine=lambda body: _carries(body, op),
                arm=arm,
                cancel=cancel,
                ttl_s=ttl_s,
            )
        )

    def alarm(self, workflow_id: str, op: str, at: int) -> Alarm:
        return Alarm(self._config.workflow_timer(workflow_id, op), self._config.due(SERVICE, workflow_id), at)

    async def set(self, alarm: Alarm) -> None:
        """Set a timer that isn't live. Raises OjsError backend_unavailable."""
        await self._swapper.set(alarm)

    def unset(self, alarm: Alarm) -> None:
        self._swapper.unset(alarm.subject)


def _carries(body: bytes, op: str) -> bool:
    """Whether a stored record is, or comes after, the change `op`, as far as can be told from it."""
    try:
        record = _decode(body)
    except (msgspec.DecodeError, ValueError):
        return False
    return record.op == op or any(entry.op == op for entry in record.log)


def contended(workflow_id: str) -> OjsError:
    """503 for a record that keeps changing under somebody's hands."""
    return unavailable(f"workflow {workflow_id} changed {MAX_TRIES} times while this tried to change it; try again")

"""The records of workflows: read, decided on, swapped with their timer ahead of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from ojs_engine.base.errors import OjsError, not_found, unavailable
from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.writer import Conflict, Hint, Write, alarm
from ojs_features.workflows.advance import retention_s
from ojs_features.workflows.definitions import Definitions
from ojs_features.workflows.graph import Graph
from ojs_features.workflows.record import Claim, Workflow, read_record
from ojs_features.workflows.subjects import Subjects
from ojs_features.workflows.timings import WorkflowTimings

log = structlog.get_logger(__name__)

SERVICE: Final = "coordinator"


def _sound(workflow_id: str, record: Workflow | Claim | None) -> None:
    if isinstance(record, Workflow) and record.id != workflow_id:
        raise ValueError("it is the record of another workflow")


workflow_reader: Final = RecordReader(
    "workflow", read_record, _sound, belongings=lambda config, name: [Subjects(config).workflow_timer(name, ANY)]
)


class StoredWorkflow(NamedTuple):
    """A workflow's record with its sequence, and its graph."""

    sequence: int
    record: Workflow
    graph: Graph


class WorkflowRecords:
    """Every write to a workflow's record goes through here."""

    def __init__(self, bucket: Bucket, definitions: Definitions, timings: WorkflowTimings) -> None:
        self._timings = timings
        self._definitions = definitions
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._config = bucket.config
        self._subjects = Subjects(bucket.config)
        self._writer = bucket.writer
        self._documents = Documents(bucket, self._subjects.workflow, workflow_reader, _carries)

    async def look(self, workflow_id: str) -> tuple[int, Workflow | Claim | None]:
        """Return a workflow's record or claim, as the leader has it, and its sequence (0: nothing ever, or long ago)."""
        return await self._documents.read(workflow_id)

    async def load(self, workflow_id: str) -> StoredWorkflow | None:
        """The last word on a workflow; None if there is none, or its definition is gone."""
        sequence, record = await self.look(workflow_id)
        if not isinstance(record, Workflow):
            return None
        graph = await self._definitions.graph(workflow_id, record.definition)
        if graph is None:
            log.warning("the definition of a workflow is not there", workflow_id=workflow_id, state=record.state)
            return None
        return StoredWorkflow(sequence, record, graph)

    async def vacancy(self, workflow_id: str) -> int:
        """The revision over which an id can be claimed.

        Raises OjsError duplicate if there is a workflow with it, backend_unavailable while somebody may be creating
        one.
        """
        sequence, found = await self.look(workflow_id)
        if isinstance(found, Workflow):
            raise OjsError(
                "duplicate",
                f"a workflow with id {workflow_id} already exists",
                hint="Read the workflow with this id, or use another id.",
                details={"existing_workflow_id": workflow_id},
            )
        left = found.at + self._timings.open_ms - self._clock.now() if isinstance(found, Claim) else 0
        if left > 0:
            raise UnderWay(workflow_id, -(-left // 1_000))
        return sequence

    async def claim(self, record: Workflow, expected: int) -> int:
        """Take the place of a record that is going to be created, with its timer ahead; returns the claim's sequence.

        Raises OjsError duplicate or backend_unavailable if somebody else was faster, backend_unavailable.
        """
        assert record.timer is not None
        claim = Claim(claim=record.op, at=record.created_at)
        beside = Beside(arm=self.alarm(record.id, record.timer.op, record.timer.at))
        try:
            return await self._documents.write(record.id, claim, expected, _claiming(record.op), beside)
        except Conflict:
            await self.vacancy(record.id)
            raise UnderWay(record.id, 1) from None

    async def create(self, record: Workflow, claimed: int) -> int:
        """Put a record, whose definition is stored, in the place of its own claim. Raises as `claim`."""
        try:
            return await self.swap(None, record, claimed, record.op, armed=True)
        except Conflict:
            await self.vacancy(record.id)
            raise _open(record.id, 1) from None

    async def vacate(self, workflow_id: str, expected: int) -> None:
        """Delete a record or claim, so that a process which has read it can't write over it any more.

        Raises Conflict if it has changed, OjsError backend_unavailable.
        """
        subject = self._subjects.workflow(workflow_id)
        await self._writer.write(Write(subject, b"", expected, lambda _found: False, ttl_s=self._timings.vacated_s))

    async def change(self, workflow_id: str, decide: Callable[[Graph, Workflow, Moment], Workflow]) -> StoredWorkflow:
        """Apply a decision. Raises not_found, and what `decide` raises."""
        changed = await self.try_change(workflow_id, decide)
        if changed is None:
            raise not_found("workflow", workflow_id)
        return changed

    async def try_change(
        self, workflow_id: str, decide: Callable[[Graph, Workflow, Moment], Workflow | None]
    ) -> StoredWorkflow | None:
        """Apply a decision; None if there is no such workflow. `decide` returns None to leave it as it is."""
        async for _ in self._tries():
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
                continue
            return StoredWorkflow(sequence, new, stored.graph)
        raise contended(f"workflow {workflow_id}")

    async def swap(self, old: Workflow | None, new: Workflow, expected: int, op: str, *, armed: bool = False) -> int:
        """Store `new` over the revision `expected`, its timer ahead of it unless that is `armed` already."""
        arm = cancel = None
        if not armed and new.timer is not None and (old is None or new.timer != old.timer):
            arm = self.alarm(new.id, new.timer.op, new.timer.at)
            cancel = self._subjects.workflow_timer(old.id, old.timer.op) if old is not None and old.timer is not None else None
        ttl_s = retention_s(new) + self._timings.left_s if new.terminal and not new.cancelling else None
        return await self._documents.write(new.id, new, expected, op, Beside(arm=arm, cancel=cancel, ttl_s=ttl_s))

    def alarm(self, workflow_id: str, op: str, at: int) -> Hint:
        return alarm(self._subjects.workflow_timer(workflow_id, op), self._config.due(SERVICE, workflow_id), at)

    async def set(self, timer: Hint) -> None:
        """Set a timer that isn't live. Raises OjsError backend_unavailable."""
        await self._writer.set(timer)


def _claiming(op: str) -> str:
    """Return the op that a claim is known by. It has the `op` of its record."""
    return f"claim {op}"


def _carries(record: Workflow | Claim | None, op: str) -> bool:
    """Return whether a stored record is the change `op`, or shows that it comes after it."""
    if isinstance(record, Claim):
        return _claiming(record.claim) == op
    return record is not None and (record.op == op or any(entry.op == op for entry in record.log))


class UnderWay(OjsError):
    """503 for an id that another request is using in this moment, or was cut off with."""

    def __init__(self, workflow_id: str, retry_after: int) -> None:
        super().__init__("backend_unavailable", _open(workflow_id, retry_after).message, retry_after=retry_after)


def _open(workflow_id: str, retry_after: int) -> OjsError:
    message = f"a request to create workflow {workflow_id} is under way or was cut off; whether it exists is open"
    return unavailable(message, retry_after=retry_after)

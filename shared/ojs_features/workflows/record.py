"""The record of a workflow, the small part of it that changes: one letter for each node, and some members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ojs_api import words
from ojs_engine.base.ids import derived_job_id
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.job import Job, Membership
from ojs_features.workflows.graph import Graph, NodeKind
from ojs_features.workflows.inputs import has_inputs

WorkflowState = words.WorkflowState
NodeRange = tuple[int, int]
"""Nodes from the first to the second, inclusive."""

# What a letter of `Workflow.states` says. Jobs:
WAITING: Final = "."
QUEUED: Final = "q"
"""Created, or about to be; its own record has the rest."""
SKIPPED: Final = "s"
"""A callback that wasn't called for, or what stands behind one (nested workflows, too)."""
# Jobs and, in capitals, nested workflows:
RUNNING: Final = "R"
COMPLETED: Final = "cC"
FAILED: Final = "fF"
CANCELLED: Final = "xX"
GOOD: Final = frozenset(map(ord, COMPLETED))
BAD: Final = frozenset(map(ord, FAILED + CANCELLED))
DONE: Final = GOOD | BAD | {ord(SKIPPED)}

LOG_KEPT: Final = 64
ERRORS_KEPT: Final = 25
MAX_RUNS: Final = 40


class WorkflowTimer(Struct, frozen=True):
    """The one live timer of a workflow: subject `ojs.timer.workflow.<id>.<op>`, due at `at` (Unix ms)."""

    op: str
    at: At


class WorkflowEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of the workflow itself or of a workflow nested in it; what its jobs do is in their own logs."""

    n: Whole
    op: str
    event: str
    at: At
    run: Whole = 0
    opener: bool = False
    """A start that the log of the first job tells, too."""
    step: str = ""
    """A nested workflow's id where it stands; what follows is its kind, its position, and how many steps come after it."""
    kind: str = ""
    index: Whole = 0
    left: Whole = 0


class StepError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a job counts as failed."""

    node: Whole
    run: Whole = 0
    step: str = ""
    type: str = ""
    code: str
    message: str
    attempt: Whole = 0
    at: At


_STORED_AS: Final = {"to_create": "births", "creating": "growing"}
"""Members with another name in the record."""


class Workflow(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=_STORED_AS):
    """The truth about a workflow's progress; replaced as a whole by compare-and-swap. Times are Unix milliseconds."""

    id: str
    name: str
    kind: NodeKind
    definition: str = ""
    """The op of the try that created it and wrote its definition; empty in records from before a try had its own."""
    steps: Whole = 0
    """The direct members of the root."""
    state: WorkflowState = "running"
    states: str
    """One letter for each node of the graph."""
    run: Whole = 0
    """How often it was retried."""
    runs: str = ""
    """The run of each node, from `0`, once there was a retry."""
    to_create: tuple[NodeRange, ...] = ()
    """Jobs that the last steps decided on. Until they are known to exist, each process that goes on with it creates them."""
    creating: tuple[NodeRange, ...] = ()
    """More than 500 such jobs, which are created in portions while the timer watches."""
    cancelling: bool = False
    """Whether it is cancelled, and some of its jobs may not be yet; the timer watches over it."""
    created_at: At
    started_at: At | None = None
    ended_at: At | None = None
    op: str = ""
    """The last change."""
    timer: WorkflowTimer | None = None
    log: tuple[WorkflowEntry, ...] = ()
    errors: tuple[StepError, ...] = ()
    """The newest 25."""

    @property
    def terminal(self) -> bool:
        return self.state != "running"


class Claim(Struct, frozen=True):
    """Stands where a workflow's record is going to: the try `claim` (an op) to create it began at `at` (Unix ms).

    The try's record replaces this very revision, or is never stored.
    """

    claim: str
    at: At


_CLAIM: Final = b'{"claim":'
_decode: Final = msgspec.json.Decoder(Workflow).decode
_decode_claim: Final = msgspec.json.Decoder(Claim).decode


def read_record(body: bytes) -> Workflow | Claim | None:
    """Return the record or claim of a workflow; None for an empty body. Raises msgspec.DecodeError."""
    if not body:
        return None
    return _decode_claim(body) if body.startswith(_CLAIM) else _decode(body)


class WorkflowCounts(Struct, frozen=True):
    """How far it has come. `jobs`: nested ones included, callbacks not; `steps`: the direct members of the root.

    What was passed over counts as cancelled.
    """

    jobs: int
    jobs_completed: int
    jobs_failed: int
    jobs_cancelled: int
    steps: int
    steps_completed: int


def counts(graph: Graph, record: Workflow) -> WorkflowCounts:
    states = record.states
    called = "".join(states[node] for node in graph.callbacks)
    nested = sum(states[composite.node] == SKIPPED for composite in graph.composites)
    skipped = states.count(SKIPPED) - called.count(SKIPPED) - nested
    root = graph.root
    steps = states[root.first : root.first + root.members]
    return WorkflowCounts(
        jobs=graph.jobs,
        jobs_completed=states.count("c") - called.count("c"),
        jobs_failed=states.count("f") - called.count("f"),
        jobs_cancelled=states.count("x") - called.count("x") + skipped,
        steps=root.members,
        steps_completed=steps.count("c") + steps.count("C"),
    )


def expand(graph: Graph, ranges: tuple[NodeRange, ...]) -> Iterator[int]:
    """The jobs in some ranges, in order."""
    for start, end in ranges:
        yield from graph.jobs_in(start, end + 1)


def run_of(record: Workflow, node: int) -> int:
    """In which run of the workflow a node's job was, or will be, created."""
    return ord(record.runs[node]) - ord("0") if record.runs else 0


def job_id(workflow_id: str, node: int, run: int) -> str:
    """The id of a member's job: a UUIDv7 that follows from its place, so that its creation can be repeated."""
    created_at = int(workflow_id[:8] + workflow_id[9:13], 16)
    return derived_job_id(created_at, "workflow", workflow_id, str(node), str(run))


def member_job(graph: Graph, record: Workflow, node: int, template: Job, now: int) -> Job:
    """Return a member as it enters its queue. Relative times count from now, not from the workflow's creation."""
    member = membership(graph, record, node)
    late_ms = max(0, now - graph.shape.defined_at)
    return replace(template, id=job_id(record.id, node, member.run), workflow=member, **template.times_from(late_ms))


def membership(graph: Graph, record: Workflow, node: int) -> Membership:
    """Return a job's place, as its own document has it."""
    parent = graph.parent(node)
    position = node - parent.first
    return Membership(
        id=record.id,
        node=node,
        run=run_of(record, node),
        name=record.name,
        kind=parent.kind,
        step=parent.step_id(position),
        index=position,
        size=parent.members,
        callback=parent.role(position),
        opens=graph.root.members if node == graph.first_job and record.started_at is None else 0,
        inputs=has_inputs(graph, node),
        definition=record.definition,
    )

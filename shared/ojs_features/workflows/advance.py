"""A workflow's transitions as pure functions: `(graph, record, what happened, moment) -> new record`.

The record names what has to be done after it is stored (`to_create`, `creating`, `cancelling`). So any process that
reads it later can do that, or do it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import State
from ojs_engine.domain.transitions import Moment
from ojs_engine.domain.transitions.retention import RETENTION_S
from ojs_features.workflows.graph import Composite, Graph
from ojs_features.workflows.progress import Progress
from ojs_features.workflows.record import (
    ERRORS_KEPT,
    LOG_KEPT,
    MAX_RUNS,
    QUEUED,
    StepError,
    Workflow,
    WorkflowEntry,
    WorkflowState,
    WorkflowTimer,
    run_of,
)

CREATED_AT_ONCE: Final = 500
"""More new jobs than these are created in portions, while the timer watches."""
_GUARD_MS: Final = 5_000
_PER_JOB_MS: Final = 2
_FIRST_CHECK_MS: Final = 300_000
_LAST_CHECK_MS: Final = 6 * 3_600_000

_ENDS: Final[dict[str, WorkflowState]] = {"C": "completed", "F": "failed"}


class StepOutcome(Struct, frozen=True):
    """How a job ended: `letter` is `c`, `f` or `x`; `run` is the one that it belongs to, `started_at` its last attempt's."""

    letter: Literal["c", "f", "x"]
    run: int
    started_at: int | None = None
    error: StepError | None = None


def begin(graph: Graph, workflow_id: str, name: str, moment: Moment) -> Workflow:
    """A new workflow with its first jobs to be created."""
    progress = Progress.blank(graph)
    progress.start(0)
    record = Workflow(
        id=workflow_id,
        name=name,
        kind=graph.root.kind,
        definition=moment.op,
        steps=graph.root.members,
        states=progress.text,
        created_at=moment.now,
        op=moment.op,
    )
    record = _logged(record, moment, "created")
    return _with_new_jobs(record, progress, moment, guard=True)


def started(record: Workflow, at: int, moment: Moment, *, opener: bool = True) -> Workflow | None:
    """A job began to run at `at`, the first one unless `opener` is false; None if it is known that one had."""
    if record.started_at is not None:
        return None
    return _logged(replace(record, started_at=at, op=moment.op), moment, "started", at=at, opener=opener)


def advance(graph: Graph, record: Workflow, outcomes: Mapping[int, StepOutcome], moment: Moment) -> Workflow | None:
    """Take up how some jobs ended, and go on; None if all of it is known. The jobs `to_create` of `record` must exist.

    In a workflow that has ended only the jobs' own ends are noted.
    """
    news = {
        node: outcome
        for node, outcome in outcomes.items()
        if record.states[node] == QUEUED and outcome.run == run_of(record, node)
    }
    if not news:
        return None
    progress = Progress(graph, record.states)
    for node, outcome in news.items():
        failed = outcome.letter != "c" and not record.terminal
        progress.end(node, "f" if failed else outcome.letter)
    errors = [outcome.error for outcome in news.values() if outcome.error is not None]
    begun = [outcome.started_at for outcome in news.values() if outcome.started_at is not None]
    if begun:
        record = started(record, min(begun), moment, opener=graph.first_job in news) or record
    record = replace(record, to_create=(), errors=(*record.errors, *errors)[-ERRORS_KEPT:], op=moment.op)
    if record.terminal:
        return replace(record, states=progress.text)
    progress.settle()
    return _settled(record, progress, moment)


def created(record: Workflow, moment: Moment) -> Workflow | None:
    """Note that all jobs exist that were to be created; None if there were none."""
    if not record.creating and not record.to_create:
        return None
    return _with_check(replace(record, creating=(), to_create=(), op=moment.op), moment)


def checked(record: Workflow, moment: Moment, *, complete: bool) -> Workflow:
    """Set the next timer: this one fired, and everything was looked at. `complete`: all jobs `to_create` exist."""
    return _with_check(replace(record, to_create=() if complete else record.to_create, op=moment.op), moment)


def cancel(graph: Graph, record: Workflow, moment: Moment) -> Workflow:
    """Stop: what has not begun never will; jobs that wait in a queue are to be cancelled next (`cancelling`).

    Raises `conflict` if the workflow has ended.
    """
    if record.terminal:
        raise _refused("cancel", record, "running")
    progress = Progress(graph, record.states)
    progress.abandon()
    record = replace(
        record,
        state="cancelled",
        states=progress.text,
        creating=(),
        to_create=(),
        cancelling=True,
        ended_at=moment.now,
        op=moment.op,
        timer=_guard(moment, progress.text.count(QUEUED)),
    )
    return _logged(record, moment, "cancelled")


def cancelled(record: Workflow, moment: Moment) -> Workflow | None:
    """Note that all of its jobs are cancelled; None if that was noted."""
    if not record.cancelling:
        return None
    return _with_cleanup(replace(record, cancelling=False, op=moment.op), moment)


def retry(graph: Graph, record: Workflow, moment: Moment) -> Workflow:
    """Go on where a failed or cancelled workflow stopped: what completed stays, the rest is done again.

    Raises `conflict` for a running or completed workflow, and for one that was retried too often.
    """
    if record.state not in {"failed", "cancelled"}:
        raise _refused("retry", record, "failed or cancelled")
    if record.cancelling:
        raise _refused("retry", record, "cancelled to the last job")
    if record.run == MAX_RUNS:
        raise _refused("retry", record, f"retried less than {MAX_RUNS} times")
    progress = Progress(graph, record.states)
    renewed: list[int] = []
    progress.reset(0, renewed)
    run = record.run + 1
    runs = bytearray(record.runs or "0" * graph.size, "ascii")
    for node in renewed:
        runs[node] = ord("0") + run
    progress.resume(0)
    progress.settle()
    record = replace(record, state="running", run=run, runs=runs.decode("ascii"), to_create=())
    record = replace(record, ended_at=None, errors=(), op=moment.op)
    return _settled(_logged(record, moment, "retried"), progress, moment, guard=True)


def retention_s(record: Workflow) -> int:
    """How long an ended workflow can be read and retried, in seconds: as long as a job of that end."""
    return RETENTION_S[State.DISCARDED if record.state == "failed" else State.COMPLETED]


def _settled(record: Workflow, progress: Progress, moment: Moment, *, guard: bool = False) -> Workflow:
    """`record` with what the board has come to."""
    for composite in progress.ended:
        if composite.node:
            record = _nested(record, progress, composite, moment)
    record = replace(record, states=progress.text)
    state = _ENDS.get(chr(progress.states[0]))
    if state is None:
        return _with_new_jobs(record, progress, moment, guard=guard)
    record = _logged(replace(record, state=state, ended_at=moment.now), moment, state)
    return _with_cleanup(replace(record, creating=()), moment)


def _nested(record: Workflow, progress: Progress, composite: Composite, moment: Moment) -> Workflow:
    parent = progress.graph.parent(composite.node)
    position = composite.node - parent.first
    what = "step" if parent.kind in {"chain", "dag"} else "job"
    how = "completed" if progress.states[composite.node] == ord("C") else "failed"
    place = {"step": parent.step_id(position), "kind": composite.kind, "index": position, "left": parent.members - position - 1}
    return _logged(record, moment, f"{what}_{how}", **place)


def _with_new_jobs(record: Workflow, progress: Progress, moment: Moment, *, guard: bool) -> Workflow:
    ranges = progress.ranges_to_create()
    if len(progress.to_create) > CREATED_AT_ONCE:
        creating = (*record.creating, *ranges)
        number = sum(end - start + 1 for start, end in creating)
        return replace(record, creating=creating, timer=_guard(moment, number))
    timer = _guard(moment, len(progress.to_create)) if guard else record.timer
    return replace(record, to_create=ranges, timer=timer)


def _guard(moment: Moment, number: int) -> WorkflowTimer:
    return WorkflowTimer(moment.op, moment.now + _GUARD_MS + _PER_JOB_MS * number)


def _with_check(record: Workflow, moment: Moment) -> Workflow:
    """Set the next look at a running workflow; the older it is, the rarer, so the number of looks stays small."""
    if record.terminal:
        return _with_cleanup(record, moment)
    wait = min(max(moment.now - record.created_at, _FIRST_CHECK_MS), _LAST_CHECK_MS)
    return replace(record, timer=WorkflowTimer(moment.op, moment.now + wait))


def _with_cleanup(record: Workflow, moment: Moment) -> Workflow:
    ended_at = record.ended_at if record.ended_at is not None else moment.now
    return replace(record, timer=WorkflowTimer(moment.op, ended_at + retention_s(record) * 1_000))


def _logged(record: Workflow, moment: Moment, event: str, **more: Any) -> Workflow:
    last = record.log[-1].n if record.log else 0
    members = {"at": moment.now, "run": record.run} | more
    entry = WorkflowEntry(n=last + 1, op=moment.op, event=event, **members)
    # All entries of one change stay together, however many they are.
    kept = sum(1 for logged in record.log if logged.op == moment.op) + 1
    return replace(record, log=(*record.log, entry)[-max(LOG_KEPT, kept) :])


def _refused(action: str, record: Workflow, expected: str) -> OjsError:
    return OjsError(
        "conflict",
        f"cannot {action} workflow {record.id}: it is {record.state}, not {expected}",
        details={"workflow_id": record.id, "current_state": record.state, "expected_state": expected},
        canonical="WORKFLOW_CANCELLED" if record.state == "cancelled" else None,
    )

"""Workflows in the read model: one row each, the newest first in lists."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final, get_args

from msgspec import Struct

from ojs_engine.base.numbers import whole_number
from ojs_engine.jetstream.feed import Record
from ojs_features.workflows.graph import NodeKind
from ojs_features.workflows.record import Claim, Workflow, WorkflowState
from ojs_index.asking.messages import MAX_OFFSET, MAX_PAGE, PageAnswer, PageAsk, cursor_after
from ojs_index.followed import Index, Table

_SCHEMA: Final = """
CREATE TABLE workflows (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    steps INTEGER NOT NULL,
    steps_completed INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER,
    leaves_at INTEGER,
    changed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX workflows_by_state ON workflows (state, created_at, id);
CREATE INDEX workflows_leaving ON workflows (leaves_at) WHERE leaves_at IS NOT NULL;
"""

_COLUMNS: Final = "id, name, kind, state, steps, steps_completed, created_at, started_at, ended_at"
_FIRST_CHILD: Final = 1
"""The root's children follow it in the graph."""


class WorkflowsAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """Workflows, the newest first, in one state or in any."""

    state: str | None = None


class WorkflowRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow as the index has it; `steps` are its direct ones."""

    id: str
    name: str
    kind: NodeKind
    state: WorkflowState
    steps: int
    steps_completed: int
    created_at: int
    started_at: int | None = None
    ended_at: int | None = None


class WorkflowPage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    workflows: list[WorkflowRow]
    total: int


def _apply(db: sqlite3.Connection, found: Iterable[tuple[Record, Workflow | Claim | None]]) -> None:
    """Take up workflow records; one that is a claim, is not there any more, or can't be read, has no row."""
    newest = {record.job_id: (record, held if isinstance(held, Workflow) else None) for record, held in found}
    gone = [(name, record.sequence) for name, (record, workflow) in newest.items() if workflow is None]
    db.executemany("DELETE FROM workflows WHERE id = ? AND seq < ?", gone)
    rows = [_row(record, workflow) for record, workflow in newest.values() if workflow is not None]
    marks = ",".join("?" * 12)
    db.executemany(
        f"INSERT INTO workflows VALUES ({marks}) ON CONFLICT DO UPDATE SET seq = excluded.seq, state = excluded.state, "
        "steps_completed = excluded.steps_completed, started_at = excluded.started_at, ended_at = excluded.ended_at, "
        "created_at = excluded.created_at, name = excluded.name, kind = excluded.kind, steps = excluded.steps, "
        "leaves_at = excluded.leaves_at, changed_at = excluded.changed_at WHERE excluded.seq > seq",
        rows,
    )


def _forget(db: sqlite3.Connection, now: int) -> None:
    """Drop the rows of records whose TTL is over."""
    db.execute("DELETE FROM workflows WHERE leaves_at < ?", (now,))


def _count(db: sqlite3.Connection, until: int) -> int:
    [[found]] = db.execute("SELECT count(*) FROM workflows WHERE leaves_at IS NULL OR leaves_at >= ?", (until,))
    return int(found)


TABLE: Final = Table(name="workflows", schema=_SCHEMA, apply=_apply, forget=_forget, count=_count)

QUESTION: Final = "workflows"
"""The name of the question."""


def workflows(index: Index, ask: WorkflowsAsk) -> WorkflowPage:
    """A page of workflows, the newest first: one range of an index for each state."""
    db = index.db
    states = (ask.state,) if ask.state is not None else get_args(WorkflowState)
    marks = ",".join("?" * len(states))
    total = db.execute(f"SELECT count(*) FROM workflows WHERE state IN ({marks})", states).fetchone()[0]
    limit = max(1, min(ask.limit, MAX_PAGE))
    offset = min(ask.offset, MAX_OFFSET)
    before = _position(ask.cursor)
    found: list[tuple[Any, ...]] = []
    for state in states:
        found += db.execute(
            f"SELECT {_COLUMNS} FROM workflows WHERE state = ? AND (created_at, id) < (?, ?) "
            "ORDER BY created_at DESC, id DESC LIMIT ?",
            (state, *before, offset + limit + 1),
        )
    found.sort(key=lambda row: (row[6], row[0]), reverse=True)
    rows = [_workflow_row(row) for row in found[offset : offset + limit]]
    more = len(found) > offset + limit
    return WorkflowPage(
        workflows=rows,
        total=total,
        next_cursor=cursor_after(rows[-1].created_at, rows[-1].id) if more else None,
        partial=index.partial,
        progress=index.progress,
    )


def unchanged(db: sqlite3.Connection, since: int, after: tuple[int, str], number: int) -> list[tuple[int, str]]:
    """Creation times and ids, in order, behind `after`, of running workflows whose record is older than `since`."""
    return db.execute(
        "SELECT created_at, id FROM workflows WHERE state = 'running' AND (created_at, id) > (?, ?) AND changed_at < ? "
        "ORDER BY created_at, id LIMIT ?",
        (*after, since, number),
    ).fetchall()


def have_ended(db: sqlite3.Connection, job_ids: Sequence[str], before: int) -> bool:
    """Whether one of some jobs ended before that time, or is not there."""
    marks = ",".join("?" * len(job_ids))
    others = f"SELECT count(*) FROM jobs WHERE id IN ({marks}) AND (finished_at IS NULL OR finished_at >= ?)"
    found: int = db.execute(others, (*job_ids, before)).fetchone()[0]
    return found < len(job_ids)


def _row(record: Record, workflow: Workflow) -> tuple[Any, ...]:
    steps = workflow.states[_FIRST_CHILD : _FIRST_CHILD + workflow.steps]
    return (
        workflow.id,
        record.sequence,
        workflow.name,
        workflow.kind,
        workflow.state,
        workflow.steps,
        steps.count("c") + steps.count("C"),
        workflow.created_at,
        workflow.started_at,
        workflow.ended_at,
        record.at + record.ttl_s * 1_000 if record.ttl_s else None,
        record.at,
    )


def _workflow_row(row: tuple[Any, ...]) -> WorkflowRow:
    return WorkflowRow(**dict(zip(_COLUMNS.split(", "), row, strict=True)))


def _position(cursor: str | None) -> tuple[int, str]:
    at, _, name = (cursor or "").partition(".")
    number = whole_number(at, 18)
    return (1 << 62, "") if number is None else (number, name)

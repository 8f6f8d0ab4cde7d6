"""Workflows in the read model: one row each, the newest first in lists."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, get_args

from ojs_api import words
from ojs_core.base.numbers import whole_number
from ojs_core.domain.workflows.record import Workflow
from ojs_core.jetstream.feed import Record
from ojs_core.read.messages import MAX_OFFSET, MAX_PAGE, WorkflowPage, WorkflowRow, WorkflowsAsk, cursor_after

SCHEMA: Final = """
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


class _Found(NamedTuple):
    record: Record
    workflow: Workflow | None


def apply_workflows(db: sqlite3.Connection, found: Iterable[tuple[Record, Workflow | None]]) -> None:
    """Take up workflow records in order of their sequence; one that is not there any more, or can't be read, has no row."""
    newest = {record.job_id: _Found(record, workflow) for record, workflow in found}
    gone = [(name, one.record.sequence) for name, one in newest.items() if one.workflow is None]
    db.executemany("DELETE FROM workflows WHERE id = ? AND seq < ?", gone)
    rows = [_row(one.record, one.workflow) for one in newest.values() if one.workflow is not None]
    marks = ",".join("?" * 12)
    db.executemany(
        f"INSERT INTO workflows VALUES ({marks}) ON CONFLICT DO UPDATE SET seq = excluded.seq, state = excluded.state, "
        "steps_completed = excluded.steps_completed, started_at = excluded.started_at, ended_at = excluded.ended_at, "
        "created_at = excluded.created_at, name = excluded.name, kind = excluded.kind, steps = excluded.steps, "
        "leaves_at = excluded.leaves_at, changed_at = excluded.changed_at WHERE excluded.seq > seq",
        rows,
    )


def forget_workflows(db: sqlite3.Connection, now: int) -> None:
    """Drop the rows of records whose TTL is over."""
    db.execute("DELETE FROM workflows WHERE leaves_at < ?", (now,))


def workflows(db: sqlite3.Connection, ask: WorkflowsAsk, *, partial: bool, progress: float) -> WorkflowPage:
    """A page of workflows, the newest first: one range of an index for each state."""
    states = (ask.state,) if ask.state is not None else get_args(words.WorkflowState)
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
        partial=partial,
        progress=progress,
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

"""Jobs as answers show them: their rows, with their documents where those are asked for (docs/adr/006)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import NOTHING, State
from ojs_index.asking.messages import MAX_ANSWER_BYTES, MAX_PAGE, JobRow

_ROW_BYTES: Final = 512
"""An answer's row without its tags and its document, at most about this."""
_SHOWN: Final = (
    "n, id, type, queue, state, priority, attempt, created_at, enqueued_at, scheduled_at, started_at, finished_at, error_type, "
    "worker, tags, dead_letter, leaves_at"
)

_STATES: Final = {state.value: state for state in State}
_decode_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode


def limit_of(asked: int) -> int:
    """How many rows a page has, at most."""
    return max(1, min(asked, MAX_PAGE))


def job_rows(db: sqlite3.Connection, numbers: Sequence[int], *, whole: bool) -> list[JobRow]:
    """The first of these jobs, or as many as an answer has room for; `whole` with their documents, as far as they are kept."""
    columns = f"{_SHOWN}, {'document' if whole else 'NULL'}"
    marks = ",".join("?" * len(numbers))
    found = {row[0]: row for row in db.execute(f"SELECT {columns} FROM jobs WHERE n IN ({marks})", numbers)}
    return list(_fitting(found[n] for n in numbers))


def _fitting(rows: Iterable[tuple[Any, ...]]) -> Iterable[JobRow]:
    size = 0
    for place, row in enumerate(rows):
        size += _ROW_BYTES + len(row[14] or b"") + len(row[17] or b"")
        if place and size > MAX_ANSWER_BYTES:
            return
        yield _job_row(*row)


def _job_row(
    _n: int,
    job_id: str,
    job_type: str,
    queue: str,
    state: str,
    priority: int,
    attempt: int,
    created_at: int,
    enqueued_at: int | None,
    scheduled_at: int | None,
    started_at: int | None,
    finished_at: int | None,
    error_type: str | None,
    worker: str | None,
    tags: bytes | None,
    dead_letter: int,
    leaves_at: int | None,
    document: bytes | None,
) -> JobRow:
    return JobRow(
        id=job_id,
        type=job_type,
        queue=queue,
        state=_STATES[state],
        priority=priority,
        attempt=attempt,
        created_at=created_at,
        enqueued_at=enqueued_at,
        scheduled_at=scheduled_at,
        started_at=started_at,
        finished_at=finished_at,
        error_type=error_type,
        worker=worker,
        tags=_decode_tags(tags) if tags else (),
        dead_letter=bool(dead_letter),
        leaves_at=leaves_at,
        document=Raw(document) if document else NOTHING,
    )

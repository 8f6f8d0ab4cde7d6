"""Jobs as answers show them: their rows, with their documents where those are asked for (docs/adr/025)."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from ojs_core.domain.job import NOTHING, State
from ojs_core.read.messages import MAX_ANSWER_BYTES, MAX_PAGE, JobPage, JobRow, cursor_after
from ojs_projector.index.documents import documents_of
from ojs_projector.index.model import Model
from ojs_projector.index.schema import Row

_ROW_BYTES: Final = 512
"""An answer's row without its tags and its document, at most about this."""

_decode_tags: Final = msgspec.json.Decoder(tuple[str, ...]).decode


def limit_of(asked: int) -> int:
    """How many rows a page has, at most."""
    return max(1, min(asked, MAX_PAGE))


def job_rows(db: sqlite3.Connection, rows: Sequence[Row], *, whole: bool) -> list[JobRow]:
    """The first of these rows, or as many as an answer has room for; `whole` with their documents, as far as they are kept."""
    documents = documents_of(db, (row.seq for row in rows)) if whole else {}
    shown: list[JobRow] = []
    size = 0
    for row in rows:
        document = documents.get(row.seq, b"")
        size += _ROW_BYTES + len(row.tags or b"") + len(document)
        if shown and size > MAX_ANSWER_BYTES:
            break
        shown.append(_job_row(row, Raw(document) if document else NOTHING))
    return shown


def page_of(model: Model, rows: Sequence[Row], limit: int, total: int, key: str, *, whole: bool) -> JobPage:
    """As many of `rows`, which are ordered by `key`, as the limit and the answer's size allow."""
    shown = job_rows(model.db, rows[:limit], whole=whole)
    last = rows[len(shown) - 1] if len(shown) < len(rows) else None
    cursor = cursor_after(getattr(last, key) or 0, last.id) if last is not None else None
    return JobPage(jobs=shown, total=total, next_cursor=cursor, partial=model.partial, progress=model.progress)


def _job_row(row: Row, document: Raw) -> JobRow:
    return JobRow(
        id=row.id,
        type=row.type,
        queue=row.queue,
        state=State(row.state),
        priority=row.priority,
        attempt=row.attempt,
        created_at=row.created_at,
        enqueued_at=row.enqueued_at,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        error_type=row.error_type,
        worker=row.worker,
        tags=_decode_tags(row.tags) if row.tags else (),
        dead_letter=bool(row.dead_letter),
        leaves_at=row.leaves_at,
        document=document,
    )

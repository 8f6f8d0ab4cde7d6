"""Which jobs a bulk operation is about: those that it names, or those that fit its filter, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ojs_engine.base.errors import invalid
from ojs_engine.base.numbers import whole_number
from ojs_engine.domain.job import Job, State
from ojs_engine.store.store import Store
from ojs_features.bulk.outcomes import Rest
from ojs_features.bulk.selection import Filter, Selection
from ojs_index.asking.client import Queries
from ojs_index.asking.documents import jobs_of
from ojs_index.asking.messages import JobRow, JobsAsk, cursor_after, is_job_cursor
from ojs_index.asking.walk import walk

_MOST_SCANNED: Final = 20_000
"""Rows of the index that are looked through at a time; what follows goes on from there."""


class BulkTargets:
    """Asks the index, and the records for what the index doesn't know."""

    def __init__(self, store: Store, queries: Queries) -> None:
        self._store = store
        self._queries = queries

    async def of(self, selection: Selection) -> tuple[Sequence[str], str | None]:
        """Ids of up to `limit` jobs, and the cursor behind them if there may be more."""
        wanted = selection.filter
        if wanted is None:
            return selection.job_ids, None
        place = _Place.of(selection.cursor, len(wanted.states))
        found: list[str] = []
        scanned = 0
        for number in range(place.state, len(wanted.states)):
            async for page in walk(self._queries.jobs, _ask(wanted, wanted.states[number], place.cursor)):
                fitting = await self._fitting(wanted, page.jobs)
                for row in page.jobs:
                    if row.id in fitting:
                        found.append(row.id)
                        if len(found) == selection.limit:
                            return found, _Place(number, cursor_after(row.created_at, row.id)).text
                scanned += len(page.jobs)
                place = _Place(number + 1, None) if page.next_cursor is None else _Place(number, page.next_cursor)
                if scanned >= _MOST_SCANNED and place.state < len(wanted.states):
                    return found, place.text
        return found, None

    async def rest(self, selection: Selection, cursor: str | None, found: int) -> Rest:
        """What may be left for the requests that follow one that has `found` so many and come to `cursor`: the jobs that fit
        what the index is asked about. After a dry run all that it found are still there.
        """
        wanted = selection.filter
        assert wanted is not None
        if cursor is None:
            return Rest(None, 0)
        begun, known = (selection.cursor, found) if selection.dry_run else (cursor, 0)
        states = wanted.states[_Place.of(begun, len(wanted.states)).state :]
        pages = await asyncio.gather(*(self._queries.jobs(_ask(wanted, state)) for state in states))
        totals = [page.total for page in pages if page.total is not None]
        return Rest(cursor, max(0, sum(totals) - known) if len(totals) == len(pages) else None)

    async def _fitting(self, wanted: Filter, rows: Sequence[JobRow]) -> set[str]:
        """Ids of the rows that fit what the index is not asked about."""
        fitting = [row for row in rows if _fits(wanted, row)]
        if wanted.meta is None:
            return {row.id for row in fitting}
        jobs = await jobs_of(self._store, fitting)
        return {job_id for job_id, job in jobs.items() if _has_meta(job, wanted.meta)}


class _Place(NamedTuple):
    """Where a filter has come to: the index of a state among the filter's, and a cursor in that state's list."""

    state: int
    cursor: str | None

    @classmethod
    def of(cls, text: str | None, states: int) -> _Place:
        if text is None:
            return cls(0, None)
        state, _, cursor = text.partition("~")
        number = whole_number(state, 9)
        if number is None or number >= states or (cursor and not is_job_cursor(cursor, "created_at")):
            raise invalid("cursor", "cursor must be the next_cursor of an answer to the same filter")
        return cls(number, cursor or None)

    @property
    def text(self) -> str:
        return f"{self.state}~{self.cursor or ''}"


def _ask(wanted: Filter, state: State, cursor: str | None = None) -> JobsAsk:
    """What the index knows of a filter; its number, with one of them, unless it is walked through."""
    return JobsAsk(
        state=state,
        queue=wanted.queue,
        type=wanted.type,
        **wanted.texts,
        since=wanted.since,
        until=wanted.until,
        limit=1,
        cursor=cursor,
        whole=wanted.meta is not None,
    )


def _fits(wanted: Filter, row: JobRow) -> bool:
    at = row.enqueued_at if row.enqueued_at is not None else row.created_at
    return (
        (wanted.priority is None or row.priority == wanted.priority)
        and (wanted.enqueued_before is None or at < wanted.enqueued_before)
        and (wanted.enqueued_after is None or at > wanted.enqueued_after)
    )


def _has_meta(job: Job, wanted: dict[str, Any]) -> bool:
    meta: dict[str, Any] = msgspec.json.decode(job.meta)
    return all(name in meta and meta[name] == value for name, value in wanted.items())

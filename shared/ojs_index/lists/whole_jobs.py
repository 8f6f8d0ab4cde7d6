"""Jobs as answers show them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

from ojs_engine.domain.job import Job
from ojs_engine.wire.jobs.results import without_expired_result
from ojs_index.asking.documents import jobs_of
from ojs_index.asking.messages import JobPage, JobRow, Sort, cursor_after, job_cursor

if TYPE_CHECKING:
    from ojs_engine.store.store import Store

MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
"""The room of one answer for what its jobs carry."""
_CHUNK: Final = 25

Order = Sort | Literal["finished_at"]


async def with_results(store: Store, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs in order, with their results as far as one answer has room for them."""
    now = store.clock.now()
    return await store.blobs.wholes((without_expired_result(job, now) for job in jobs), MAX_PAGE_BYTES)


async def whole_jobs(store: Store, page: JobPage, order: Order) -> tuple[list[Job], str | None]:
    """A page's jobs, in its order, and the cursor that goes on.

    The page ends early when its jobs are large; jobs that have left since the index saw them are passed over.
    """
    jobs: list[Job] = []
    size = 0
    now = store.clock.now()
    for start in range(0, len(page.jobs), _CHUNK):
        rows = page.jobs[start : start + _CHUNK]
        found = await jobs_of(store, rows)
        for row in rows:
            job = found.get(row.id)
            if job is None:
                continue
            size += len(job.args) + len(job.meta) + len(job.result)
            jobs.append(without_expired_result(job, now))
            if size > MAX_PAGE_BYTES and row is not page.jobs[-1]:
                return jobs, _cursor(row, order)
    return jobs, page.next_cursor


def _cursor(row: JobRow, order: Order) -> str:
    if order == "finished_at":
        return cursor_after(row.finished_at or 0, row.id)
    return job_cursor(order, getattr(row, order), row.created_at, row.id)

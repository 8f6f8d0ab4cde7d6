"""Whole jobs for a page: from the index's copies, and from the records where there are none."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.store.records.records import Stored
from ojs_index.asking.messages import JobPage, JobRow
from ojs_index.lists.whole_jobs import whole_jobs

NOW = 1_800_000_000_000


class Records:
    """A bucket that remembers what was read of it."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.read: list[str] = []

    async def many(self, job_ids: Sequence[str]) -> dict[str, Stored]:
        self.read += job_ids
        return {job_id: Stored(int(job_id in self.jobs), self.jobs.get(job_id)) for job_id in job_ids}


def job(job_id: str) -> Job:
    return Job(id=job_id, type="t", args=Raw(b"[]"), state=State.COMPLETED, queue="q", created_at=NOW)


def row(job_id: str, *, copied: bool, leaves_at: int | None = None) -> JobRow:
    document = Raw(msgspec.json.encode(job(job_id))) if copied else NOTHING
    return JobRow(id=job_id, type="t", queue="q", state=State.COMPLETED, created_at=NOW, leaves_at=leaves_at, document=document)


async def shown(records: Records, *rows: JobRow) -> list[str]:
    store: Any = SimpleNamespace(records=records, clock=SimpleNamespace(now=lambda: NOW))
    jobs, cursor = await whole_jobs(store, JobPage(jobs=list(rows), total=None, next_cursor="on"), "created_at")
    assert cursor == "on"
    return [job.id for job in jobs]


async def test_no_record_is_read_of_which_there_is_a_copy() -> None:
    records = Records(job("b"))
    assert await shown(records, row("a", copied=True), row("b", copied=False), row("c", copied=True)) == ["a", "b", "c"]
    assert records.read == ["b"]


async def test_whether_a_job_is_still_there_whose_time_is_over_its_record_says() -> None:
    records = Records(job("stays"))
    rows = [
        row("left", copied=True, leaves_at=NOW),
        row("stays", copied=True, leaves_at=NOW - 1),
        row("later", copied=True, leaves_at=NOW + 1),
    ]
    assert await shown(records, *rows) == ["stays", "later"]
    assert records.read == ["left", "stays"]

"""Jobs of lists: as the index has sent them, else as their records are."""

from __future__ import annotations

from collections.abc import Iterable

from ojs_engine.domain.job import Job
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.store import Store
from ojs_index.asking.messages import JobRow


async def jobs_of(store: Store, rows: Iterable[JobRow]) -> dict[str, Job]:
    """The jobs of rows by id, those left out that have left. Where the index has sent no document, the record is read."""
    now = store.clock.now()
    found: dict[str, Job] = {}
    missing: list[str] = []
    for row in rows:
        # Whether a record whose TTL is over is still there, only reading it tells.
        if len(row.document) and (row.leaves_at is None or row.leaves_at > now):
            job = job_reader.read(row.id, 0, bytes(row.document))
            if job is not None:
                found[row.id] = job
        else:
            missing.append(row.id)
    if missing:
        read = await store.records.many(missing)
        found |= {job_id: stored.job for job_id, stored in read.items() if stored.job is not None}
    return found

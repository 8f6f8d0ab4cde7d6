"""What no job asks for, no job passes through (docs/adr/014)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from msgspec import Raw

from integration.samples import draft, fetch
from ojs_core.domain import transitions
from ojs_core.domain.job import Job
from ojs_core.store.store import Store

LIMITS = ("/ojs_features/", "/domain/rate_limits/")


@contextmanager
def entered() -> Iterator[set[str]]:
    """The files of limits in which a function is called within the block."""
    found: set[str] = set()

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in LIMITS):
            found.add(frame.f_code.co_filename.rpartition("/")[2])

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield found
    finally:
        sys.setprofile(before)


async def whole_life(store: Store, job: Job) -> None:
    await store.enqueue.push(job)
    [fetched] = await fetch(store, job.queue, worker="w", wait_ms=5_000)
    holder = transitions.JobHolder(worker="w", attempt=fetched.attempt)
    await store.jobs.change(fetched.id, lambda found, moment: transitions.ack(found, Raw(b"1"), holder, moment))


async def test_a_plain_job_enters_no_module_of_limits(store: Store, queue: str) -> None:
    await whole_life(store, draft(queue=queue))
    with entered() as files:
        for _ in range(20):  # by then its queue has a consumer of its own
            await whole_life(store, draft(queue=queue))
        await store.enqueue.push_all([draft(queue=queue) for _ in range(3)])
        assert len(await fetch(store, queue, count=3, wait_ms=5_000)) == 3
    assert not files


async def test_a_job_that_asks_for_a_limit_passes_it(store: Store, queue: str) -> None:
    with entered() as files:
        await whole_life(store, draft(queue=queue, rate_limit=Raw(b'{"key": "k", "concurrency": 1}')))
    assert {"limiter.py", "permits.py"} <= files

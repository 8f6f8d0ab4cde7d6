"""Jobs as answers show them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ojs_engine.domain.job import Job
from ojs_engine.wire.jobs.results import without_expired_result

if TYPE_CHECKING:
    from ojs_engine.store.store import Store

MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
"""The room of one answer for what its jobs carry."""


async def with_results(store: Store, jobs: Iterable[Job]) -> list[Job]:
    """Return jobs in order, with their results as far as one answer has room for them."""
    now = store.clock.now()
    return await store.blobs.wholes((without_expired_result(job, now) for job in jobs), MAX_PAGE_BYTES)

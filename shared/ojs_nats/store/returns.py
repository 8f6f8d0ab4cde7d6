"""Giving back claimed jobs whose fetcher never heard of them."""

from __future__ import annotations

import asyncio

import structlog

from ojs_nats import transitions
from ojs_nats.errors import OjsError
from ojs_nats.job import Job
from ojs_nats.store.jobs import Jobs

__all__ = ["Returns"]

log = structlog.get_logger(__name__)


class Returns:
    """What is on its way back; `close` waits for it."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._under_way: set[asyncio.Task[None]] = set()

    def give_back(self, job: Job, reason: str) -> None:
        """Make a claimed job available again whose fetcher is gone before it heard of it; tried until it succeeds."""
        task = asyncio.create_task(self._give_back(job, reason), name=f"give-back-{job.id}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Finish what is being given back as far as NATS allows it now."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=1.0)
            for task in late:
                task.cancel()

    async def _give_back(self, job: Job, reason: str) -> None:
        """Undo one claim, and no other: the attempt names it."""
        attempt = job.attempt
        holder = transitions.Holder(worker=job.worker, attempt=attempt)
        failure = transitions.Failure(code="requeued", type="requeued", message=reason, requeue=True)
        pause = 0.1
        while True:
            try:
                await self._jobs.change(job.id, lambda found, moment: transitions.nack(found, failure, holder, moment))
            except OjsError as error:
                if error.code in {"conflict", "not_found"}:  # the claim was never stored, or is somebody else's by now
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
            else:
                log.info("claimed job given back", job_id=job.id, attempt=attempt, reason=reason)
                return

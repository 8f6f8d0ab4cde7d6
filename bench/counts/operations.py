"""The operations that are counted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any, Final

from bench.counts.system import Counted

_TEN: Final = 10
_RETRY: Final = {"max_attempts": 3, "initial_interval": "PT0.3S", "jitter": False}
_CRON_S: Final = 0.9
"""How far ahead at least an entry of a tick is due: its registration must have settled before."""
_LEAD_S: Final = 0.5
"""How long before its due time the counting of a tick is begun at the latest."""
_MARGIN_S: Final = 0.02
"""And how long before it must have begun, or the tick isn't counted: the machine was too busy."""

Steps = Callable[[Counted, str], AsyncIterator[None]]
"""Yields before what is counted and after it, and then cleans up. The queue is the operation's own."""

_ENQUEUED: Final = "in answer to ojs.events.job.enqueued."
"""The last message of an operation that puts a job into its queue after a time."""


class TooLate(Exception):
    """Something had happened before its counting began, so the operation has to be done again."""


def _job(queue: str, **options: object) -> dict[str, object]:
    return {"type": "bench.job", "args": [1], "options": {"queue": queue, **options}}


async def _push(system: Counted, queue: str, **options: object) -> str:
    return str((await system.request("POST", "/ojs/v1/jobs", _job(queue, **options)))["job"]["id"])


async def _fetch(system: Counted, queue: str, count: int = 1) -> list[str]:
    body = {"queues": [queue], "count": count, "worker_id": "bench"}
    jobs: list[dict[str, Any]] = (await system.request("POST", "/ojs/v1/workers/fetch", body))["jobs"]
    assert len(jobs) == count, f"{len(jobs)} jobs were fetched, not {count}"
    return [str(job["id"]) for job in jobs]


async def _ack(system: Counted, job_id: str) -> None:
    await system.request("POST", "/ojs/v1/workers/ack", {"job_id": job_id})


async def _finish(system: Counted, queue: str) -> None:
    """Do the one job of a queue."""
    [job] = await _fetch(system, queue)
    await _ack(system, job)


async def push(system: Counted, queue: str) -> AsyncIterator[None]:
    """Push one job."""
    yield
    await _push(system, queue)
    yield
    await _finish(system, queue)


async def fetch(system: Counted, queue: str) -> AsyncIterator[None]:
    """Fetch the one job of a queue."""
    await _push(system, queue)
    yield
    [job] = await _fetch(system, queue)
    yield
    await _ack(system, job)


async def ack(system: Counted, queue: str) -> AsyncIterator[None]:
    """Acknowledge a job."""
    await _push(system, queue)
    [job] = await _fetch(system, queue)
    yield
    await _ack(system, job)
    yield


async def whole(system: Counted, queue: str) -> AsyncIterator[None]:
    """Push, fetch and acknowledge one job, each after the projector has read what came before."""
    yield
    await _push(system, queue)
    await system.settle()
    [job] = await _fetch(system, queue)
    await system.settle()
    await _ack(system, job)
    yield


async def ten(system: Counted, queue: str) -> AsyncIterator[None]:
    """Push ten jobs in a batch, fetch them in one request, and acknowledge them in another."""
    yield
    await system.request("POST", "/ojs/v1/jobs/batch", {"jobs": [_job(queue) for _ in range(_TEN)]})
    await system.settle()
    jobs = await _fetch(system, queue, _TEN)
    await system.settle()
    await system.request("POST", "/ojs/v1/workers/acks", {"jobs": [{"job_id": job} for job in jobs]})
    yield


async def retry(system: Counted, queue: str) -> AsyncIterator[None]:
    """Fail a job, and have it back in its queue after 0.3 seconds."""
    await _push(system, queue, retry=_RETRY)
    [job] = await _fetch(system, queue)
    yield
    await system.request("POST", "/ojs/v1/workers/nack", {"job_id": job, "error": {"code": "bench", "message": "bench"}})
    await system.passed("projector", _ENQUEUED)
    yield
    await _finish(system, queue)


async def cron_tick(system: Counted, queue: str) -> AsyncIterator[None]:
    """Have a cron entry push its job."""
    due = int(time.time() + _CRON_S) + 1
    at = datetime.fromtimestamp(due, UTC)
    expression = f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"
    body = {"name": queue, "cron": expression, "type": "bench.job", "args": [1], "options": {"queue": queue}}
    await system.request("POST", "/ojs/v1/cron", body)
    await asyncio.sleep(max(0.0, due - _LEAD_S - time.time()))
    yield
    too_late = time.time() > due - _MARGIN_S
    await system.passed("scheduler", "in answer to ojs.timer.cron.")
    await system.passed("projector", _ENQUEUED)
    if not too_late:
        yield
    await _finish(system, queue)
    await system.request("DELETE", f"/ojs/v1/cron/{queue}")
    if too_late:
        raise TooLate


async def workflow_step(system: Counted, queue: str) -> AsyncIterator[None]:
    """Acknowledge the first of two jobs of a chain, and have the second in the queue."""
    await system.request("POST", "/ojs/v1/workflows", {"type": "chain", "name": "bench", "steps": [_job(queue), _job(queue)]})
    [job] = await _fetch(system, queue)
    yield
    await _ack(system, job)
    yield
    await _finish(system, queue)


OPERATIONS: Final[dict[str, Steps]] = {
    "push": push,
    "fetch": fetch,
    "ack": ack,
    "whole job": whole,
    "ten jobs": ten,
    "retry": retry,
    "cron tick": cron_tick,
    "workflow step": workflow_step,
}

"""Jobs in memory become what a server makes of them: each case is run by both, and the jobs compared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from ojs_nats import App, Job, JobContext, RateLimit, Retry, Snooze, Unique
from ojs_nats.errors import RefusedError
from ojs_nats.jobs import JobError, JobRequest
from ojs_nats.testing import fake
from ojs_nats.testing._server import working
from ojs_nats.worker import DeadLetter, Discard, RetryLater
from support.system import System
from support.waiting import eventually

app = App("http://moved.invalid")
SLOWLY = Retry(3, initial_interval="1h", jitter=False)


@app.job("agree.fine", queue="agree")
async def fine(number: int) -> int:
    return number + 1


@app.job("agree.nothing", queue="agree")
def nothing() -> None:
    """Returns nothing."""


@app.job("agree.broken", queue="agree", retry=SLOWLY)
async def broken() -> None:
    raise ValueError("it is broken")


@app.job("agree.broken_for_good", queue="agree", retry=Retry(3, non_retryable_errors=["ValueError"]))
async def broken_for_good() -> None:
    raise ValueError("it is broken")


@app.job("agree.once", queue="agree", retry=Retry(1))
async def once() -> None:
    raise KeyError("gone")


@app.job("agree.discards", queue="agree", retry=SLOWLY)
async def discards() -> None:
    raise Discard("nobody wants it")


@app.job("agree.dead", queue="agree", retry=SLOWLY)
async def dead() -> None:
    raise DeadLetter("somebody should look")


@app.job("agree.later", queue="agree", retry=SLOWLY)
async def later() -> None:
    raise RetryLater("2h", "the other side is down")


@app.job("agree.last", queue="agree", retry=Retry(1))
async def last() -> None:
    raise RetryLater("2h", "the other side is down")


@app.job("agree.snoozes", queue="agree", retry=Retry(1))
async def snoozes() -> None:
    raise Snooze("3h")


@app.job("agree.slow", queue="agree", retry=SLOWLY, timeout="100ms")
async def slow() -> None:
    await asyncio.Event().wait()


@app.job("agree.saves", queue="agree", retry=SLOWLY)
async def saves(ctx: JobContext) -> None:
    await ctx.save({"page": 7})
    raise OSError("the disk is gone")


UNTOLD = ("id", "worker_id", "created_at", "enqueued_at", "started_at", "visibility_timeout_ms")
TIMES = (
    "scheduled_at", "next_attempt_at", "completed_at", "discarded_at", "cancelled_at", "expires_at", "result_stored_at",
    "result_expires_at",
)  # fmt: skip


def worded(error: JobError) -> JobError:
    """Return the error without its time and the frames of its backtrace, and that of a time-out without what its worker
    says.

    A server that ends it before the worker does has another message, and details of its own.
    """
    assert error.attempt is not None
    assert error.occurred_at is not None
    if error.code == "timeout":
        return replace(error, message="", details=None, backtrace=None, occurred_at=None)
    return replace(error, backtrace=None if error.backtrace is None else ["…"], occurred_at=None)


def seen(job: Job) -> dict[str, Any]:
    """What applications look at; of times, which there are, and how far off they are."""
    told: dict[str, Any] = {name: getattr(job, name) for name in job.__struct_fields__ if name not in UNTOLD}
    assert job.created_at is not None
    for name in TIMES:
        at = told[name]
        told[name] = None if at is None else round((at - job.created_at) / timedelta(minutes=1))
    told["errors"] = [worded(error) for error in job.errors]
    told["error"] = job.error and worded(job.error)
    if job.checkpoint is not None:
        told["checkpoint"] = (job.checkpoint.state, job.checkpoint.sequence)
    return told


Play = Callable[[Callable[[str], Awaitable[None]]], Awaitable[str]]
"""Does something, and returns the id of a job; it is given what runs a job's attempt."""


async def both(system: System, play: Play) -> tuple[dict[str, Any], dict[str, Any]]:
    """The job of a play as memory has it, and as a server does."""
    with fake(app) as jobs:

        async def drained(_: str) -> None:
            await jobs.drain(with_retries=False)

        async with app:
            in_memory = seen(await app.client.jobs.get(await play(drained)))

    async def worked(job_id: str) -> None:
        async with working(app):
            await eventually(lambda: tried(job_id))

    async def tried(job_id: str) -> bool:
        job = await app.client.jobs.get(job_id)
        return job.ended or (job.attempt > 0 and job.state != "active")

    with app.moved(system.url):
        async with app:
            return in_memory, seen(await app.client.jobs.get(await play(worked)))


JOBS: Iterable[JobRequest[Any]] = (
    fine.job(4), nothing.job(), broken.job(), broken_for_good.job(), once.job(), discards.job(), dead.job(), later.job(),
    last.job(), snoozes.job(), slow.job(), saves.job(), JobRequest("agree.fine", ("a text",), {"queue": "agree"}),
)  # fmt: skip


@pytest.mark.parametrize("new", JOBS, ids=lambda new: f"{new.type}-{len(new.args)}")
async def test_a_job_is_left_by_an_attempt_as_a_server_leaves_it(system: System, new: JobRequest[Any]) -> None:
    async def play(run: Callable[[str], Awaitable[None]]) -> str:
        handle = await app.client.push(JobRequest[Any](new.type, new.args, new.options))
        await run(handle.id)
        return handle.id

    in_memory, by_server = await both(system, play)
    assert in_memory == by_server


@pytest.mark.parametrize(
    "new",
    [
        fine.job(1).with_options(delay="2h"),
        fine.job(1).with_options(delay="2h", expires_at=datetime.now(UTC) + timedelta(hours=3)),
        fine.job(1).with_options(priority=7, tags=["a", "b"], meta={"tenant": "x"}),
        fine.job(1).with_options(timeout="7s", retry=Retry(9)),
        fine.job(1).with_options(total_timeout="1h", enqueue_ttl="1h", heartbeat_timeout="90s", grace_period="1500ms"),
        fine.job(1).with_options(result_ttl="1h", rate_limit=RateLimit("agree", concurrency=2)),
    ],
    ids=["delayed", "expiring", "labelled", "limited", "timed", "kept"],
)
async def test_a_pushed_job_is_as_a_server_has_it(system: System, new: JobRequest[Any]) -> None:
    async def play(_: object) -> str:
        return (await app.client.push(JobRequest[Any](new.type, new.args, new.options))).id

    in_memory, by_server = await both(system, play)
    assert in_memory == by_server


async def test_a_cancelled_job_is_as_a_server_has_it(system: System) -> None:
    async def play(_: object) -> str:
        handle = await app.client.push(JobRequest[int](fine.type, (1,), {"queue": "agree-cancelled"}))
        await handle.cancel()
        with pytest.raises(RefusedError, match="cancelled"):
            await handle.cancel()
        return handle.id

    in_memory, by_server = await both(system, play)
    assert in_memory == by_server


@pytest.mark.parametrize("on_conflict", ["reject", "ignore", "replace"])
async def test_unique_jobs_meet_as_a_server_has_them_meet(system: System, on_conflict: Any) -> None:
    policy = Unique(("type", "args"), on_conflict=on_conflict)
    outcomes: list[Any] = []

    async def play(_: object) -> str:
        new = fine.job(41).with_options(unique=policy, queue=f"agree-{on_conflict}")
        first = await app.client.push(JobRequest[int](new.type, new.args, new.options))
        try:
            second = await app.client.push(JobRequest[int](new.type, new.args, new.options))
        except RefusedError as error:
            same = error.details["existing_job_id"] == first.id
            outcomes.append((error.code, error.status, error.details["existing_job_state"], same))
        else:
            outcomes.append(second.id == first.id)
        return first.id

    in_memory, by_server = await both(system, play)
    assert in_memory == by_server
    assert outcomes[0] == outcomes[1]


async def test_in_memory_a_job_with_too_many_arguments_fails_at_once() -> None:
    """A worker hands it back for a while, to those that are as new as its producer; a test would wait in vain."""
    with fake(app) as jobs:
        async with app:
            handle = await app.client.push(JobRequest[Any]("agree.fine", (1, "more"), {"queue": "agree"}))
            await jobs.drain()
            assert (await handle.job()).state == "discarded"

"""How handlers are told that their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import anyio
import msgspec
import pytest

from ojs_nats import App, JobContext
from ojs_nats._operations import Request
from ojs_nats.errors import ConflictError, JobCancelled, UnavailableError
from ojs_nats.jobs import Job
from ojs_nats.worker import SoftTimeout
from ojs_nats.worker._attempts import Attempt
from ojs_nats.worker._execution import Execution
from ojs_nats.worker._outcome import Report, ShutDown
from ojs_nats.worker._timings import WorkerTimings
from support.python_samples import Heard, context

Handler = Callable[..., Coroutine[Any, Any, Any]]


async def outcome(handler: Handler, soft: str = "20ms", hard_ms: int | None = None) -> Report:
    app = App("http://localhost")
    app.job("a.job", soft_timeout=soft)(handler)
    attempt = Attempt(context(timeout_ms=hard_ms), Heard())
    execution = Execution(app, 1, 1, "w1")
    try:
        return await execution.outcome(attempt.context.job, attempt)
    finally:
        await execution.close()


def error_of(report: Report) -> dict[str, Any]:
    error: dict[str, Any] = report.members["error"]
    return error


async def sleeping() -> str:
    try:
        await asyncio.sleep(60)
    except SoftTimeout:
        await asyncio.sleep(0.001)
        return "saved"
    return "slept"


async def waiting_for_another() -> str:
    other = asyncio.create_task(asyncio.sleep(60))
    try:
        await other
    except SoftTimeout:
        return f"saved, the other {'cancelled' if other.cancelled() else 'not'}"
    return "slept"


async def within_a_limit() -> str:
    try:
        async with asyncio.timeout(60):
            await asyncio.sleep(60)
    except SoftTimeout:
        async with asyncio.timeout(60):
            await asyncio.sleep(0.001)
        return "saved"
    return "slept"


async def in_a_group() -> str:
    said = ""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(60))
            await asyncio.sleep(60)
    except* SoftTimeout:
        said = "saved"
    await asyncio.sleep(0.001)
    return said


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (sleeping, "saved"),
        (waiting_for_another, "saved, the other cancelled"),
        (within_a_limit, "saved"),
        (in_a_group, "saved"),
    ],
)
async def test_a_coroutine_meets_it_where_it_waits(body: Callable[[], Coroutine[Any, Any, str]], result: str) -> None:
    async def handler(ctx: JobContext) -> str:
        said = await body()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        assert isinstance(ctx.stopped_by, SoftTimeout)
        return said

    assert await outcome(handler) == Report("ack", {"result": msgspec.Raw(msgspec.json.encode(result))})


class Children:
    """What handlers start, and how much of it has ended."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    async def run(self) -> None:
        self.begun += 1
        try:
            await asyncio.sleep(60)
        finally:
            self.ended += 1

    async def in_a_group(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.run())
            group.create_task(self.run())

    async def in_nested_groups(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.in_a_group())
            await self.in_a_group()

    async def in_a_group_of_anyio(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.run)
            group.start_soon(self.run)

    async def in_a_wait(self) -> None:
        await asyncio.wait_for(self.run(), 60)


@pytest.mark.parametrize(
    "body", [Children.in_a_group, Children.in_nested_groups, Children.in_a_group_of_anyio, Children.in_a_wait]
)
@pytest.mark.parametrize("caught", [True, False])
async def test_what_a_handler_has_started_ends_before_its_attempt(
    body: Callable[[Children], Coroutine[Any, Any, None]], caught: bool
) -> None:
    children = Children()

    async def handler() -> int:
        try:
            await body(children)
        except* SoftTimeout:
            if not caught:
                raise
        return children.ended

    report = await outcome(handler)
    assert children.begun == children.ended > 0
    if caught:
        assert report == Report("ack", {"result": msgspec.Raw(msgspec.json.encode(children.begun))})
    else:
        assert error_of(report)["type"] in {"SoftTimeout", "ExceptionGroup"}
        assert "SoftTimeout: the job's soft time-out" in "".join(error_of(report)["backtrace"])


async def test_one_that_isn_t_caught_is_a_failure() -> None:
    async def handler() -> None:
        await asyncio.sleep(60)

    error = error_of(await outcome(handler))
    assert (error["type"], error["message"]) == ("SoftTimeout", "the job's soft time-out of 0.02 s is over")


async def test_the_hard_one_follows_the_soft_one() -> None:
    async def handler() -> None:
        try:
            await asyncio.sleep(60)
        except SoftTimeout:
            await asyncio.sleep(60)

    assert error_of(await outcome(handler, hard_ms=60))["type"] == "timeout"


async def test_a_handler_that_doesn_t_let_itself_be_stopped_is_given_up() -> None:
    end = asyncio.Event()

    async def stubborn() -> None:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue

    attempt = Attempt(context(), Heard(), WorkerTimings(clean_up_s=0.02))
    asyncio.get_running_loop().call_later(0.01, attempt.stop, ShutDown("bye"))
    with pytest.raises(ShutDown):
        await attempt.result(stubborn())
    unfinished = attempt.unfinished
    assert unfinished is not None
    end.set()
    await unfinished
    assert attempt.unfinished is None


async def test_one_that_is_stopped_before_it_begins_never_does() -> None:
    attempt = Attempt(context(), Heard())
    attempt.stop(JobCancelled("off"))
    attempt.stop(ShutDown("bye"))
    with pytest.raises(JobCancelled):
        await attempt.result(sleeping())
    assert attempt.context.cancelled


async def test_a_context_knows_how_long_it_has() -> None:
    began = datetime(2026, 11, 24, tzinfo=UTC)
    late = JobContext(Job("j1", "a.job", "active", timeout_ms=1_000), Heard(), "w1", began=began)
    assert late.deadline == datetime(2026, 11, 24, 0, 0, 1, tzinfo=UTC)
    assert late.remaining == 0.0
    soon = context(timeout_ms=60_000).remaining
    assert soon is not None
    assert 50 < soon <= 60
    assert context().deadline is None
    assert context().remaining is None


@pytest.mark.parametrize(
    ("attempt", "most", "uncounted", "last"),
    [(1, 3, 0, False), (3, 3, 0, True), (3, 3, 1, False), (4, 3, 1, True), (1, 0, 0, True), (9, None, 0, False)],
)
def test_a_context_knows_whether_its_attempt_is_the_last(attempt: int, most: int | None, uncounted: int, last: bool) -> None:
    job = Job("j1", "a.job", "active", attempt=attempt, max_attempts=most, uncounted_attempts=uncounted)
    assert JobContext(job, Heard(), "w1").last_attempt is last


class Refusing(Heard):
    async def send(self, request: Request) -> object:
        raise ConflictError(f"{request.operation.name} is refused", code="conflict", status=409)

    def send_sync(self, _: Request) -> object:
        raise UnavailableError("nobody answers")


async def test_progress_that_isn_t_taken_is_no_failure_and_a_checkpoint_is(caplog: pytest.LogCaptureFixture) -> None:
    running = JobContext(Job("j1", "a.job", "active"), Refusing(), "w1")
    await running.progress(0.5)
    running.progress_sync(0.6)
    assert [record.message.partition(" job_id")[0] for record in caplog.records] == ["progress could not be reported"] * 2
    with pytest.raises(ConflictError):
        await running.save({})
    with pytest.raises(UnavailableError):
        running.save_sync({})


async def test_what_json_can_t_hold_is_refused_where_it_is_reported() -> None:
    running = JobContext(Job("j1", "a.job", "active"), Heard(), "w1")
    with pytest.raises(ValueError, match="data"):
        await running.progress(0.5, data={"mean": float("nan")})
    with pytest.raises(TypeError, match="state"):
        running.save_sync({("a", 1): 1})


async def test_progress_is_a_fraction() -> None:
    heard = Heard()
    running = JobContext(Job("j1", "a.job", "active", attempt=2), heard, "w1")
    await running.progress(0.5, "half", data={"n": 1})
    running.save_sync([1])
    assert [request.body for request in heard.requests] == [
        {"progress": 0.5, "worker_id": "w1", "attempt": 2, "message": "half", "data": {"n": 1}},
        {"state": [1], "worker_id": "w1", "attempt": 2},
    ]
    with pytest.raises(ValueError, match="from 0 to 1, not 50"):
        running.progress_sync(50)

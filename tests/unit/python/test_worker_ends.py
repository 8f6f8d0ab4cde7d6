"""Whatever a handler does, and whatever stands between worker and server: the place is free again, the attempt is over, the
server hears once how it ended, and the next job runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from ojs_nats import App, Depends, JobContext, Worker
from ojs_nats._transport import Answer
from ojs_nats.worker._timings import WorkerTimings
from support import python_ends
from support.examples import examples
from support.python_server import Reply, Score, Server, html, lost, ojs_error, serving, silence
from support.waiting import eventually

TIMINGS: Final = WorkerTimings(
    clean_up_s=0.01,
    hand_back_s=0.5,
    farewell_s=0.1,
    sign_off_s=0.5,
    closing_s=2.0,
    report_pause_s=0.001,
    report_longest_pause_s=0.002,
    retry_after_at_most_s=0.003,
    fetch_pause_s=0.001,
)
LATE_MS: Final = 400
KINDS: Final = ("coroutine", "thread", "process", "dependency", "thread_dependency", "clean_up", "middleware", "replaced")

ON_THE_WAY: Final[dict[str, Reply]] = {
    "429 of a proxy": html(429),
    "429 of a proxy that asks for two minutes": html(429, "120"),
    "500 of a proxy": html(500),
    "401 of a proxy": html(401),
    "403 of a proxy": html(403),
    "404 of a proxy": html(404),
    "413 of a proxy": html(413),
    "a sign-in page": html(200),
    "JSON of somebody else": lambda: Answer(200, b'{"login": "please"}'),
    "an error of somebody else": lambda: Answer(404, b'{"error": {"code": "not_found"}}'),
    "silence": silence,
    "a lost answer": lost,
    "503 of the server": ojs_error(503, "backend_unavailable", retryable=True, retry_after="120"),
    "a key that was revoked": ojs_error(401, "unauthenticated"),
    "a permission that is missing": ojs_error(403, "permission_denied"),
}
"""Answers that decide nothing about a job."""


class Bench:
    """A worker of one app that runs every kind of handler, beside its server."""

    def __init__(self, server: Server, worker: Worker) -> None:
        self.server = server
        self.worker = worker

    async def attempt(self, kind: str, end: str, replies: Sequence[str] = (), verdict: str | None = None) -> Score:
        """Run a job to such an end, and see that all is as it was before."""
        server = self.server
        server.replies.extend(ON_THE_WAY[reply] for reply in replies)
        late = end in python_ends.LATE
        job_id = server.push(f"ends.{kind}", end, **({"timeout_ms": LATE_MS} if late else {}))
        if verdict is not None:
            server.verdicts[job_id] = verdict
        score = server.scores[job_id]
        dropped = verdict in {"not_found", "conflict"} and expected(kind, end)["state"] == "completed"

        def decided() -> bool:
            return score.state != "active"

        if not dropped:
            await soon(decided)
        python_ends.released.set()
        await self.is_free(job_id)
        python_ends.released.clear()
        assert score.decided == (not dropped), "the server hears once of it"
        assert not server.replies or dropped
        server.replies.clear()
        return score

    async def is_free(self, job_id: str) -> None:
        """See that the attempt is over."""
        server, beats = self.server, self.server.beats

        def the_place_is_free() -> bool:
            return self.worker.active == 0

        def no_heartbeat_names_it() -> bool:
            return server.beats > beats + 1 and job_id not in server.named

        await soon(the_place_is_free)
        await soon(no_heartbeat_names_it)
        other = server.scores[server.push("ends.coroutine", "a value")]

        def the_next_job_runs() -> bool:
            return other.state == "completed"

        await soon(the_next_job_runs)


async def soon(condition: Callable[[], bool]) -> None:
    await eventually(condition, every=0.001)


def app_of(url: str) -> App:
    app = App(url)

    async def in_a_dependency(ctx: JobContext) -> AsyncIterator[Any]:
        yield await _ended(ctx.job.args[0])

    def in_a_thread_of_a_dependency(ctx: JobContext) -> Any:
        return python_ends.end(ctx.job.args[0])

    async def at_the_clean_up(ctx: JobContext) -> AsyncIterator[str]:
        yield "done"
        await _ended(ctx.job.args[0])

    @app.job("ends.coroutine")
    async def coroutine(name: str) -> Any:
        return await _ended(name)

    @app.job("ends.thread")
    def thread(name: str) -> Any:
        return python_ends.end(name)

    @app.job("ends.dependency")
    async def dependency(_name: str, *, found: Any = Depends(in_a_dependency)) -> Any:
        return found

    @app.job("ends.thread_dependency")
    async def thread_dependency(_name: str, *, found: Any = Depends(in_a_thread_of_a_dependency)) -> Any:
        return found

    @app.job("ends.clean_up")
    async def clean_up(_name: str, *, found: str = Depends(at_the_clean_up)) -> Any:
        return found

    @app.job("ends.replaced")
    async def replaced(name: str) -> Any:
        return await _ended(name)

    @app.job("ends.middleware")
    async def middleware(_name: str) -> Any:
        return "not reached"

    app.definitions["ends.process"] = python_ends.app.definitions["ends.process"]

    @app.execution.add
    async def around(ctx: JobContext, go_on: Callable[[], Awaitable[Any]]) -> Any:
        if ctx.job.type == "ends.middleware":
            return await _ended(ctx.job.args[0])
        if ctx.job.type == "ends.replaced":
            ctx.job = msgspec.structs.replace(ctx.job, id="another", attempt=9)
        return await go_on()

    return app


async def _ended(name: str) -> Any:
    if name in python_ends.LATE:
        await asyncio.sleep(60)
    return python_ends.end(name)


def _goes_well(end: str) -> bool:
    return end in python_ends.RETURNED


def expected(kind: str, end: str) -> dict[str, Any]:
    """Return what the server is to know of such an end, but of errors their type alone."""
    if _goes_well(end):
        result = "done" if kind == "clean_up" else python_ends.RETURNED[end][1]
        return {"state": "completed", "result": result}
    if end in python_ends.UNWRITABLE:
        if kind == "clean_up":
            return {"state": "completed", "result": "done"}
        return {"state": "failed", "type": {"TypeError", "ValueError"}}
    if end in python_ends.PUT_OFF:
        return {"state": "requeued"}
    if end in python_ends.LATE:
        return {"state": "failed", "type": {"timeout"}}
    if end == "recursion":
        return {"state": "failed", "type": {"RecursionError"}}
    return {"state": "failed", "type": {python_ends.RAISED[end.removeprefix("raises ")][1]}}


def check(kind: str, end: str, score: Score) -> None:
    wanted = expected(kind, end)
    assert score.state == wanted["state"], f"{kind} {end}: {score}"
    if wanted["state"] == "completed":
        assert score.result == wanted["result"]
    if "type" in wanted:
        assert score.error["type"] in wanted["type"], f"{kind} {end}: {score.error}"
        assert len(msgspec.json.encode(score.error)) < 1_000_000


@asynccontextmanager
async def working() -> AsyncIterator[Bench]:
    server = Server()
    with serving(server) as url:
        worker = Worker(app_of(url), concurrency=1, heartbeat_interval=0.01, fetch_timeout=0.02, processes=1, timings=TIMINGS)
        running = asyncio.create_task(worker.run())
        try:
            yield Bench(server, worker)
        finally:
            python_ends.released.set()
            async with asyncio.timeout(60):
                await worker.stop(0)
            await running
            python_ends.released.clear()


@pytest.mark.parametrize("kind", KINDS)
async def test_every_end_is_reported_once_and_the_next_job_runs(kind: str) -> None:
    async with working() as bench:
        for end in python_ends.ALL:
            check(kind, end, await bench.attempt(kind, end))


@pytest.mark.parametrize("reply", ON_THE_WAY)
@pytest.mark.parametrize("end", ["a value", "raises an error", "Snooze", "raises five megabytes"])
async def test_what_stands_between_worker_and_server_decides_nothing(end: str, reply: str) -> None:
    async with working() as bench:
        check("coroutine", end, await bench.attempt("coroutine", end, [reply] * 3))


class Ends(RuleBasedStateMachine):
    """One worker, and attempts of any kind that end in any way, whatever their reports are answered with."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._working = working()
        self._bench = self._loop.run_until_complete(self._working.__aenter__())

    @rule(
        kind=st.sampled_from(KINDS),
        end=st.sampled_from(python_ends.ALL),
        replies=st.lists(st.sampled_from(list(ON_THE_WAY)), max_size=4),
        verdict=st.none() | st.sampled_from(["result_too_large", "invalid_request", "not_found", "conflict"]),
    )
    def attempt(self, kind: str, end: str, replies: Sequence[str], verdict: str | None) -> None:
        score = self._loop.run_until_complete(self._bench.attempt(kind, end, replies, verdict))
        if verdict is None or expected(kind, end)["state"] != "completed":
            check(kind, end, score)
        elif verdict in {"result_too_large", "invalid_request"}:
            assert (score.state, score.error["type"]) == ("failed", "ResultRefused")
        else:
            assert score.state == "active", "it is somebody else's"

    def teardown(self) -> None:
        self._loop.run_until_complete(self._working.__aexit__(None, None, None))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


TestEnds = Ends.TestCase
TestEnds.settings = settings(
    max_examples=examples(32, least=2, costly=True), stateful_step_count=15, deadline=None, phases=[Phase.generate]
)

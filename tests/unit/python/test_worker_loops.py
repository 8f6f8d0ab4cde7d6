"""A worker goes on whatever a fetch or a heartbeat is answered with, and comes to its end whatever its jobs do."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from ojs_nats import App, JobContext, Worker
from ojs_nats._logging import parts
from ojs_nats._transport import Answer
from ojs_nats.worker._lifecycle import Trigger, WorkerState
from ojs_nats.worker._timings import WorkerTimings
from support.python_server import Reply, Server, html, ojs_error, serving, silence
from support.waiting import eventually, until

TIMINGS = WorkerTimings(
    clean_up_s=0.05, hand_back_s=1.0, farewell_s=0.1, sign_off_s=0.2, closing_s=3.0, report_pause_s=0.001, fetch_pause_s=0.001
)


def said(value: Any) -> Reply:
    return lambda: Answer(200, msgspec.json.encode(value))


ODD_ANSWERS: dict[str, Reply] = {
    "a page": html(200),
    "a page of a missing route": html(404),
    "an empty answer": lambda: Answer(200, b""),
    "half of an answer": lambda: Answer(200, b'{"jobs": [{"id"'),
    "a list": said([]),
    "JSON of somebody else": said({"login": "please"}),
    "members of other types": said({"jobs": 3, "state": 5, "jobs_extended": {}}),
    "a job without an id": said({"jobs": [{"type": "a"}], "state": "running", "jobs_extended": []}),
    "a refusal": ojs_error(400, "invalid_request"),
    "an error that nobody knows": ojs_error(418, "teapot"),
    "silence": silence,
}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def app(server: Server) -> Iterator[App]:
    with serving(server) as url:
        made = App(url)

        @made.job("quick")
        async def quick() -> str:
            return "done"

        @made.job("long")
        async def long(_: JobContext) -> None:
            await asyncio.sleep(60)

        @made.job("deaf")
        async def deaf(_: JobContext) -> None:
            server.dead = True
            while server.dead:
                try:
                    await asyncio.sleep(0.02)
                except asyncio.CancelledError:
                    continue

        @made.job("interrupted")
        async def interrupted() -> None:
            raise KeyboardInterrupt

        @made.job("interrupted.thread")
        def interrupted_thread() -> None:
            raise KeyboardInterrupt

        yield made


@asynccontextmanager
async def working(app: App, **options: Any) -> AsyncIterator[tuple[Worker, asyncio.Task[None]]]:
    given = {
        "concurrency": 4,
        "heartbeat_interval": 0.01,
        "fetch_timeout": 0.02,
        "grace_period": 0.1,
        "timings": TIMINGS,
        **options,
    }
    worker = Worker(app, **given)
    running = asyncio.create_task(worker.run())
    try:
        yield worker, running
    finally:
        async with asyncio.timeout(60):
            await worker.stop(0)
            await asyncio.wait({running})


def state_of(server: Server, job_id: str) -> str:
    return server.scores[job_id].state


# Answers


@pytest.mark.parametrize("answer", ODD_ANSWERS)
async def test_a_fetch_goes_on_behind(server: Server, app: App, answer: str) -> None:
    server.fetches.extend([ODD_ANSWERS[answer]] * 3)
    async with working(app):
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "completed")
        assert not server.fetches


async def test_a_server_that_is_away_is_logged_once_and_so_is_that_it_is_back(
    server: Server, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ojs_nats")
    server.fetches.extend([silence] * 20 + [ojs_error(503, "unavailable")] * 5)
    async with working(app):
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "completed")
    found = [parts(record) or ("", {}) for record in caplog.records if record.name == "ojs_nats.worker.fetching"]
    assert [event for event, _ in found] == ["a fetch failed", "a fetch failed", "fetches are answered again"]
    assert ["nobody answered" in members.get("reason", "") for _, members in found] == [True, False, False]
    assert found[-1][1]["after_seconds"] >= 0


async def test_heartbeats_without_an_answer_are_logged_once_and_so_is_that_they_are_answered_again(
    server: Server, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ojs_nats")
    server.beat_replies.extend([ojs_error(503, "unavailable")] * 20)

    def said() -> list[str]:
        records = (parts(record) for record in caplog.records if record.name == "ojs_nats.worker.heartbeats")
        return [found[0] for found in records if found is not None]

    async with working(app):
        await eventually(lambda: "heartbeats are answered again" in said())
    assert said() == ["a heartbeat wasn't answered", "heartbeats are answered again"]


@pytest.mark.parametrize("answer", ODD_ANSWERS)
async def test_heartbeats_go_on_behind(server: Server, app: App, answer: str) -> None:
    async with working(app):
        job_id = server.push("long")
        await eventually(lambda: job_id in server.named)
        server.beat_replies.extend([ODD_ANSWERS[answer]] * 3)
        await eventually(lambda: not server.beat_replies)
        beats = server.beats
        await eventually(lambda: server.beats > beats)
        assert state_of(server, job_id) == "active", "no answer but the server's says that it is lost"


async def test_a_job_that_can_t_be_read_fails_and_no_other(server: Server, app: App) -> None:
    bad = server.push("quick", timeout_ms="soon")
    good = server.push("quick")
    async with working(app):
        await eventually(lambda: state_of(server, good) == "completed")
        await eventually(lambda: state_of(server, bad) == "failed")
    assert "timeout_ms" in server.scores[bad].error["message"]


async def test_a_job_of_an_unknown_type_is_handed_back_for_a_while(server: Server, app: App) -> None:
    job_id = server.push("somebody.else")
    async with working(app):
        await eventually(lambda: state_of(server, job_id) == "requeued")
    assert "no handler for somebody.else" in server.scores[job_id].error["message"]


async def test_a_worker_that_was_forgotten_registers_again(server: Server, app: App) -> None:
    async with working(app):
        await eventually(lambda: server.registrations == 1)
        server.fetches.append(ojs_error(404, "not_found"))
        await eventually(lambda: server.registrations == 2)
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "completed")


async def test_heartbeats_name_any_number_of_jobs_in_portions(server: Server, app: App) -> None:
    pushed = {server.push("long") for _ in range(2_300)}
    async with working(app, concurrency=2_500):
        await eventually(lambda: set(server.all_named) >= pushed)
        assert max(server.portions) == 1_000
        assert not server.complete_with_portions


async def test_more_queues_than_a_fetch_may_name_are_asked_in_portions(server: Server, app: App) -> None:
    async with working(app, queues=[f"q{number}" for number in range(250)]):
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "completed")
        await eventually(lambda: {len(queues) for queues in server.asked_queues} == {100, 50})


# Directives


async def test_an_operator_s_resume_brings_a_quiet_worker_back(server: Server, app: App) -> None:
    async with working(app) as (worker, _):
        await eventually(lambda: server.beats > 0)
        server.directive = "quiet"
        await eventually(lambda: worker.state is WorkerState.QUIET)
        server.directive = "running"
        await eventually(lambda: worker.state is WorkerState.RUNNING)
        server.directive = None
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "completed")


async def test_an_echo_doesn_t_undo_a_signal(server: Server, app: App) -> None:
    async with working(app) as (worker, _):
        await eventually(lambda: server.beats > 0)
        worker.notify(Trigger.SIGTSTP)
        beats = server.beats
        await eventually(lambda: server.beats > beats + 3)
        assert worker.state is WorkerState.QUIET


async def test_a_job_that_a_fetch_brings_while_the_worker_is_quiet_is_handed_back(server: Server, app: App) -> None:
    async with working(app, fetch_timeout=30) as (worker, _):
        await eventually(lambda: bool(server.asked_queues))
        worker.notify(Trigger.SIGTSTP)
        job_id = server.push("quick")
        await eventually(lambda: state_of(server, job_id) == "requeued")


# The end


async def test_stop_hands_back_what_doesn_t_end_within_the_grace_period(server: Server, app: App) -> None:
    async with working(app) as (worker, running):
        job_id = server.push("long")
        await eventually(lambda: job_id in server.named)
        await worker.stop(0.05)
        assert running.done()
    assert state_of(server, job_id) == "requeued"
    assert server.deregistered


async def test_a_cancelled_run_hands_back(server: Server, app: App) -> None:
    async with working(app, grace_period=60) as (_, running):
        job_id = server.push("long")
        await eventually(lambda: job_id in server.named)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert state_of(server, job_id) == "requeued"
    assert server.deregistered


async def test_a_second_signal_ends_the_grace_period(server: Server, app: App) -> None:
    async with working(app, grace_period=60) as (worker, running):
        job_id = server.push("long")
        await eventually(lambda: job_id in server.named)
        worker.notify(Trigger.SIGTERM)
        await eventually(lambda: worker.state is WorkerState.TERMINATE)
        assert not running.done()
        worker.notify(Trigger.SIGINT)
        await asyncio.wait({running}, timeout=60)
        assert running.done()
    assert state_of(server, job_id) == "requeued"


async def test_all_of_the_end_has_one_deadline(server: Server, app: App) -> None:
    """Nobody answers any more, and a handler can't be ended."""
    async with working(app) as (worker, running):
        server.push("deaf")
        await eventually(lambda: worker.active == 1)
        began = time.monotonic()
        worker.notify(Trigger.SIGINT)
        await asyncio.wait({running}, timeout=60)
        assert running.done()
        assert time.monotonic() - began < 5, "below what a fetch, a report and a goodbye would wait for one after the other"
        server.dead = False


async def test_a_signal_is_heard_while_nobody_answers_the_registration(server: Server, app: App) -> None:
    server.dead = True
    async with working(app) as (worker, running):
        await eventually(lambda: server.registrations > 0)
        worker.notify(Trigger.SIGTERM)
        await asyncio.wait({running}, timeout=60)
        assert running.done()
        assert running.exception() is None


async def test_a_second_sigint_ends_what_cleans_up_behind_the_jobs(server: Server, app: App) -> None:
    cleaning = asyncio.Event()

    @app.lifespan
    async def hanging() -> AsyncIterator[None]:
        yield
        cleaning.set()
        await asyncio.sleep(300)

    async with working(app) as (worker, running):
        await eventually(lambda: server.beats > 0)
        worker.notify(Trigger.SIGINT)
        await eventually(cleaning.is_set)
        worker.notify(Trigger.SIGINT)
        await asyncio.wait({running}, timeout=60)
        assert running.done()
        assert running.exception() is None


async def test_a_worker_that_is_stopped_before_it_runs_ends_at_once(app: App) -> None:
    worker = Worker(app, timings=TIMINGS)
    await worker.stop()
    async with asyncio.timeout(60):
        await worker.run()
    with pytest.raises(RuntimeError, match="runs once"):
        await worker.run()


@pytest.mark.parametrize("kind", ["interrupted", "interrupted.thread"])
async def test_a_handler_that_raises_keyboard_interrupt_stops_the_worker_and_hands_the_others_back(
    server: Server, app: App, kind: str
) -> None:
    async with working(app, grace_period=60) as (_, running):
        others = [server.push("long") for _ in range(3)]
        await eventually(lambda: set(others) <= set(server.named))
        job_id = server.push(kind)
        await asyncio.wait({running}, timeout=60)
        assert running.done()
    assert (state_of(server, job_id), server.scores[job_id].error["type"]) == ("failed", "KeyboardInterrupt")
    assert [state_of(server, other) for other in others] == ["requeued"] * 3


def test_a_loop_that_ends_with_its_worker_in_it_hands_back(server: Server, app: App) -> None:
    """As `asyncio.run` does when something raises out of the loop: all tasks are cancelled at once."""
    job_id = server.push("long")

    async def main() -> None:
        worker = Worker(app, heartbeat_interval=0.01, fetch_timeout=0.02, timings=TIMINGS)
        task = asyncio.create_task(worker.run())
        await eventually(lambda: job_id in server.named)
        assert not task.done()

    asyncio.run(main())
    assert state_of(server, job_id) == "requeued"
    until(lambda: "ojs-nats-heartbeats" not in {thread.name for thread in threading.enumerate()})

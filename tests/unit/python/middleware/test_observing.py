"""Metrics, reports of errors, time-outs and traces of jobs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from prometheus_client import CollectorRegistry

from ojs_nats import Snooze
from ojs_nats._extras import extra
from ojs_nats._logging import parts
from ojs_nats.errors import JobCancelled, MissingDependencyError
from ojs_nats.jobs import JobRequest
from ojs_nats.middleware import ErrorReporting, Logging, Metrics, Timeout, TraceContext
from ojs_nats.worker import DeadLetter, Discard
from ojs_nats.worker._outcome import FailedInProcess, ShutDown, TimedOut, Unfit
from support.python_samples import context, run_of


def raising(error: BaseException) -> Any:
    async def handler() -> Any:
        raise error

    return handler


async def fine() -> str:
    return "fine"


def in_process(action: str | None) -> FailedInProcess:
    return FailedInProcess({"error": {"type": "E", "message": "m"} | ({"action": action} if action else {})})


@pytest.mark.parametrize(
    ("error", "why", "ending"),
    [
        (ValueError("no"), None, "failed"),
        (Discard("no"), None, "discarded"),
        (DeadLetter("no"), None, "dead_letter"),
        (Unfit("no"), None, "discarded"),
        (Snooze("1m"), None, "snoozed"),
        (FailedInProcess({"requeue": True, "error": {"message": "put off"}}), None, "snoozed"),
        (in_process(None), None, "failed"),
        (in_process("DISCARD"), None, "discarded"),
        (in_process("DEAD_LETTER"), None, "dead_letter"),
        (asyncio.CancelledError(), TimedOut("late"), "timed_out"),
        (asyncio.CancelledError(), ShutDown("bye"), "handed_back"),
        (asyncio.CancelledError(), JobCancelled("off"), "cancelled"),
        (asyncio.CancelledError(), OSError("lost"), "lost"),
    ],
)
async def test_an_end_is_counted_by_what_it_means(error: BaseException, why: Exception | None, ending: str) -> None:
    registry = CollectorRegistry()
    metrics, running = Metrics(registry), context()
    running.stopped_by = why
    await metrics(running, fine)
    with pytest.raises(type(error)):
        await metrics(running, raising(error))
    of = {"queue": "default", "type": "a.job"}
    for name, labels, count in (
        ("ojs_worker_jobs_started_total", of, 2),
        ("ojs_worker_jobs_ended_total", {**of, "ending": "completed"}, 1),
        ("ojs_worker_jobs_ended_total", {**of, "ending": ending}, 1),
        ("ojs_worker_job_duration_seconds_count", of, 2),
    ):
        assert registry.get_sample_value(name, labels) == count


async def test_lines_say_how_it_ended_and_never_the_arguments(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    running = context("Ada's secret")
    await Logging()(running, fine)
    with pytest.raises(ValueError, match="no"):
        await Logging()(running, raising(ValueError("no")))
    lines = [found for record in caplog.records if (found := parts(record)) is not None]
    assert [(event, members.get("ending"), members.get("error")) for event, members in lines] == [
        ("the job begins", None, None),
        ("the job ends", "completed", None),
        ("the job begins", None, None),
        ("the job ends", "failed", "ValueError"),
    ]
    assert {members["job_id"] for _, members in lines} == {"j1"}
    assert "Ada" not in caplog.text


async def test_errors_are_reported_with_their_job() -> None:
    reported: list[tuple[str, str]] = []

    async def report(error: Exception, running: Any) -> None:
        reported.append((str(error), running.job.id))

    with pytest.raises(ValueError, match="no"):
        await ErrorReporting(report)(context(), raising(ValueError("no")))
    with pytest.raises(asyncio.CancelledError):
        await ErrorReporting(report)(context(), raising(asyncio.CancelledError()))
    assert reported == [("no", "j1")]


async def test_a_time_out_is_the_job_s_own_or_the_middleware_s() -> None:
    running = context()
    with pytest.raises(TimedOut, match="the worker's time-out of 50ms"):
        await Timeout("50ms")(running, asyncio.Event().wait)
    assert running.stopping
    with pytest.raises(TimeoutError):
        await Timeout("1m")(context(), raising(TimeoutError()))
    assert await Timeout("1m")(context(), fine) == "fine"


async def passed(new: JobRequest[Any]) -> JobRequest[Any] | None:
    return new


async def test_spans_are_linked() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = TraceContext(provider)
    running = run_of(await traces.on_push(JobRequest("a.job", (), {"queue": "email"}), passed))
    inner: list[JobRequest[Any] | None] = []

    async def handler() -> None:
        inner.append(await traces.on_push(JobRequest("b.job"), passed))

    await traces.on_run(running, handler)
    pushed, inner_push, ran = exporter.get_finished_spans()
    assert (pushed.name, pushed.kind) == ("email enqueue", SpanKind.PRODUCER)
    assert (ran.name, ran.kind) == ("default process", SpanKind.CONSUMER)
    assert pushed.context is not None
    assert ran.context is not None
    assert [link.context.span_id for link in ran.links] == [pushed.context.span_id]
    assert ran.context.trace_id != pushed.context.trace_id
    assert inner_push.parent is not None
    assert inner_push.parent.span_id == ran.context.span_id
    assert format(ran.context.trace_id, "032x") in inner[0].options["meta"]["traceparent"]  # type: ignore[union-attr]


async def test_without_spans_the_trace_goes_on_from_job_to_job() -> None:
    traces = TraceContext()  # nothing records: there is no provider
    first = await traces.on_push(JobRequest("a.job"), passed)
    found: list[Any] = []

    async def handler() -> None:
        found.append(await traces.on_push(JobRequest("b.job"), passed))
        found.append(structlog.contextvars.get_contextvars()["trace_id"])

    running = run_of(first)
    await asyncio.create_task(traces.on_run(running, handler))
    _, trace_id, span_id, _ = running.job.meta["traceparent"].split("-")
    _, trace_of_second, span_of_second, _ = found[0].options["meta"]["traceparent"].split("-")
    assert trace_id == trace_of_second == found[1]
    assert span_id != span_of_second


async def test_a_context_that_was_given_stays() -> None:
    given: JobRequest[Any] = JobRequest("a.job", (), {"meta": {"traceparent": "mine"}})
    assert await TraceContext().on_push(given, passed) is given


def test_what_isn_t_installed_is_named_with_its_extra() -> None:
    with pytest.raises(
        MissingDependencyError, match=r"spans needs nowhere, which isn't installed: pip install 'ojs-nats\[otel\]'"
    ):
        extra("nowhere.at_all", of="otel", what="spans")

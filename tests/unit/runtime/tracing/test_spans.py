"""Spans as they reach an exporter, for the way of a job through the hooks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from ojs_engine.base.errors import unavailable
from ojs_engine.domain.job import Job, JobError, Membership, State
from ojs_engine.domain.transitions.result import Change
from ojs_runtime import tracing
from ojs_runtime.spans import Spans

TRACE, SPAN, OTHER_SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", "b9c7c989f97918e1"
SENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    """What is recorded while the test runs."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(Spans(provider))
    tracing.answering({})
    yield exporter
    tracing.use(None)


def job(meta: dict[str, Any] | None = None, **members: Any) -> Job:
    raw = Raw(msgspec.json.encode(meta or {}))
    found = Job(id="018f5d3e-0000-7000-8000-000000000001", type="mail.send", args=Raw(b"[]"), state=State.AVAILABLE, meta=raw)
    return replace(found, queue="mails", **members)


async def store(draft: Job) -> Job:
    return draft


async def enqueue(draft: Job) -> dict[str, Any]:
    """Push it; returns the meta that it was stored with."""
    meta: dict[str, Any] = msgspec.json.decode((await tracing.enqueued(draft, store)).meta)
    return meta


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def traceparent(span: ReadableSpan) -> str:
    context = span.context
    assert context is not None
    return f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"


def parent(span: ReadableSpan) -> tuple[str, str] | None:
    return None if span.parent is None else (format_trace_id(span.parent.trace_id), format_span_id(span.parent.span_id))


def linked(span: ReadableSpan) -> list[tuple[str, str]]:
    return [(format_trace_id(nats.context.trace_id), format_span_id(nats.context.span_id)) for nats in span.links]


async def test_an_enqueued_job_carries_the_context_of_its_span(exporter: InMemorySpanExporter) -> None:
    meta = await enqueue(job({"tenant": "acme"}))
    span = only(exporter)
    assert meta == {"tenant": "acme", "traceparent": traceparent(span)}
    assert (span.name, span.kind, span.status.status_code) == ("ojs.enqueue mail.send", SpanKind.PRODUCER, StatusCode.OK)
    assert parent(span) is None
    assert span.attributes is not None
    required = {
        "messaging.system": "ojs",
        "messaging.operation.type": "publish",
        "messaging.destination.name": "mails",
        "ojs.job.id": job().id,
        "ojs.job.type": "mail.send",
        "ojs.job.queue": "mails",
    }
    assert {name: span.attributes[name] for name in required} == required


async def test_a_context_that_the_client_sent_is_the_parent_and_stays(exporter: InMemorySpanExporter) -> None:
    sent = {"traceparent": SENT, "tracestate": "vendor=1"}
    assert await enqueue(job(sent)) == sent
    assert parent(only(exporter)) == (TRACE, SPAN)


async def test_the_requests_context_goes_before_the_jobs(exporter: InMemorySpanExporter) -> None:
    tracing.answering({"traceparent": f"00-{TRACE}-{OTHER_SPAN}-01", "tracestate": "vendor=1"})
    assert await enqueue(job({"traceparent": SENT})) == {"traceparent": SENT}
    assert parent(only(exporter)) == (TRACE, OTHER_SPAN)


async def test_the_requests_tracestate_goes_on_with_the_job(exporter: InMemorySpanExporter) -> None:
    tracing.answering({"traceparent": SENT, "tracestate": "vendor=1"})
    meta = await enqueue(job())
    assert meta == {"traceparent": traceparent(only(exporter)), "tracestate": "vendor=1"}


async def test_the_context_of_one_request_is_not_that_of_the_next(exporter: InMemorySpanExporter) -> None:
    tracing.answering({"traceparent": SENT})
    tracing.answering({})
    await enqueue(job())
    assert parent(only(exporter)) is None


async def test_a_trace_that_is_not_sampled_is_not_recorded_but_goes_on(exporter: InMemorySpanExporter) -> None:
    tracing.answering({"traceparent": f"00-{TRACE}-{SPAN}-00"})
    meta = await enqueue(job())
    assert meta["traceparent"].startswith(f"00-{TRACE}-")
    assert meta["traceparent"].endswith("-00")
    assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize("junk", ["not a context", "", 7, None, ["x"], {"a": 1}, f"00-{'0' * 32}-{SPAN}-01"])
async def test_junk_in_place_of_a_context_is_left_alone(exporter: InMemorySpanExporter, junk: object) -> None:
    assert await enqueue(job({"traceparent": junk})) == {"traceparent": junk}
    assert parent(only(exporter)) is None


async def test_a_push_that_fails_is_an_error(exporter: InMemorySpanExporter) -> None:
    async def refuse(_draft: Job) -> Job:
        raise unavailable("NATS is away")

    with pytest.raises(Exception, match="NATS is away"):
        await tracing.enqueued(job(), refuse)
    span = only(exporter)
    assert span.attributes is not None
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "backend_unavailable")
    assert [event.name for event in span.events] == ["exception"]


async def test_jobs_that_are_pushed_together_have_spans_of_their_own(exporter: InMemorySpanExporter) -> None:
    async def store_all(drafts: list[Job]) -> list[Job]:
        return drafts

    stored = await tracing.enqueued_all([job(), job({"traceparent": SENT})], store_all)
    first, second = exporter.get_finished_spans()
    assert msgspec.json.decode(stored[0].meta) == {"traceparent": traceparent(first)}
    assert (parent(first), parent(second)) == (None, (TRACE, SPAN))


async def test_a_fetch_is_linked_to_the_enqueue(exporter: InMemorySpanExporter) -> None:
    started_at = 1_770_000_000_000
    claimed: dict[str, Any] = {"state": State.ACTIVE, "attempt": 2, "worker": "w", "started_at": started_at}
    tracing.handed_out([job({"traceparent": SENT}, **claimed), job(**claimed)])
    first, second = exporter.get_finished_spans()
    assert (first.name, first.kind, first.start_time) == ("ojs.fetch mail.send", SpanKind.SERVER, started_at * 1_000_000)
    assert first.end_time is not None
    assert first.end_time > started_at * 1_000_000
    assert (linked(first), parent(first)) == ([(TRACE, SPAN)], None)
    assert linked(second) == []
    assert first.attributes is not None
    assert (first.attributes["ojs.job.attempt"], first.attributes["ojs.worker.id"]) == (2, "w")


async def test_an_ack_is_linked_to_the_enqueue_and_belongs_to_its_request(exporter: InMemorySpanExporter) -> None:
    active = job({"traceparent": SENT}, state=State.ACTIVE, worker="w", attempt=1)

    async def change() -> Change:
        return Change(active, replace(active, state=State.COMPLETED))

    tracing.answering({"traceparent": f"00-{'a' * 32}-{OTHER_SPAN}-01"})
    assert (await tracing.settled("ojs.ack", active.id, change())).after.state is State.COMPLETED
    span = only(exporter)
    assert (span.name, linked(span), parent(span)) == ("ojs.ack mail.send", [(TRACE, SPAN)], ("a" * 32, OTHER_SPAN))
    assert span.attributes is not None
    assert (span.attributes["ojs.job.state"], span.attributes["ojs.worker.id"]) == ("completed", "w")


async def test_a_nack_says_what_failed(exporter: InMemorySpanExporter) -> None:
    active = job(state=State.ACTIVE, worker="w", attempt=1)
    error = JobError(code="handler_error", type="Boom", message="it broke", attempt=1, at=1)

    async def change() -> Change:
        return Change(active, replace(active, state=State.RETRYABLE, worker=None, error=error))

    await tracing.settled("ojs.nack", active.id, change())
    attributes = only(exporter).attributes
    assert attributes is not None
    told = ("error.type", "error.message", "ojs.job.error.attempt", "ojs.job.state", "ojs.worker.id")
    assert tuple(attributes[name] for name in told) == ("Boom", "it broke", 1, "retryable", "w")


async def test_a_refused_ack_is_an_error(exporter: InMemorySpanExporter) -> None:
    async def refuse() -> Change:
        raise unavailable("NATS is away")

    with pytest.raises(Exception, match="NATS is away"):
        await tracing.settled("ojs.ack", "some-id", refuse())
    span = only(exporter)
    assert span.attributes is not None
    assert (span.name, span.status.status_code, span.attributes["ojs.job.id"]) == ("ojs.ack", StatusCode.ERROR, "some-id")


async def test_members_of_workflows_say_so(exporter: InMemorySpanExporter) -> None:
    member = Membership(id="wf", node=2, kind="chain", step="two", index=1, size=3)
    tracing.handed_out([job(workflow=member)])
    attributes = only(exporter).attributes
    assert attributes is not None
    assert [attributes[f"ojs.workflow.{name}"] for name in ("id", "type", "step")] == ["wf", "chain", 1]


async def test_concurrent_requests_keep_their_contexts_apart(exporter: InMemorySpanExporter) -> None:
    async def request(span_id: str) -> None:
        tracing.answering({"traceparent": f"00-{TRACE}-{span_id}-01"})
        await asyncio.sleep(0)
        await enqueue(job())

    async with asyncio.TaskGroup() as group:
        for span_id in (SPAN, OTHER_SPAN):
            group.create_task(request(span_id))
    assert {parent(span) for span in exporter.get_finished_spans()} == {(TRACE, SPAN), (TRACE, OTHER_SPAN)}


async def test_without_tracing_a_job_is_stored_as_it_was_sent() -> None:
    draft = job({"tenant": "acme"})
    assert await tracing.enqueued(draft, store) is draft
    tracing.handed_out([draft])
    tracing.answering({"traceparent": SENT})
    await tracing.stop()

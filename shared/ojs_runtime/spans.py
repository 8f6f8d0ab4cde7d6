"""Spans of OpenTelemetry for what happens to jobs (ojs-events §8; ojs-observability §5-§7).

`meta.traceparent` of a job names the span that enqueued it: the client's own if it sent one, else the one made here. Spans of
fetches and of acks are linked to that span and not its children, since hours may lie between.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import threading
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

import msgspec
import structlog
from msgspec import Raw, Struct
from msgspec.structs import replace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ojs_engine.base.errors import OjsError
from ojs_engine.base.waiting import within
from ojs_engine.domain.job import NOTHING, Job, JobError
from ojs_engine.domain.transitions.result import Change
from ojs_runtime.tracing import SpanTimings

log = structlog.get_logger(__name__)

_NO_CONTEXT: Final = Context()
_propagator: Final = TraceContextTextMapPropagator()
_request: ContextVar[Context | None] = ContextVar("request", default=None)


class _Carried(Struct):
    """The trace context in a job's meta; of any type, as clients may send anything."""

    traceparent: Raw = NOTHING
    tracestate: Raw = NOTHING


_decode_carried: Final = msgspec.json.Decoder(_Carried).decode


def exporting(endpoint: str, service: str, instance: str, timings: SpanTimings) -> Spans:
    """Spans that go to an OTLP collector (`endpoint` is its base URL) in the background, in batches.

    The variables of OpenTelemetry count where they say more: sampler, headers, resource, limits.
    """
    version = importlib.metadata.version("ojs-nats-server")
    name = os.environ.get("OTEL_SERVICE_NAME") or f"ojs-nats-{service}"
    resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: version, SERVICE_INSTANCE_ID: instance})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=timings.export_s)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    log.info("traces are exported", endpoint=endpoint)
    return Spans(provider, timings)


class Spans:
    """Makes the spans of one process."""

    def __init__(self, provider: TracerProvider, timings: SpanTimings = SpanTimings()) -> None:
        self._last_s = timings.last_s
        self._provider = provider
        self._tracer = provider.get_tracer("ojs-nats", importlib.metadata.version("ojs-nats-server"))

    async def close(self) -> None:
        """Deliver what is left; a collector that takes long is not waited for."""
        loop = asyncio.get_running_loop()
        delivered = asyncio.Event()

        def deliver() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(delivered.set)

        threading.Thread(target=deliver, name="last-traces", daemon=True).start()
        if not await within(self._last_s, delivered):
            log.warning("the last traces were not delivered in time")

    def answering(self, headers: Mapping[str, str]) -> None:
        """Note the context of the request that this task answers, or that it has none."""
        carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        _request.set(_context_of(carrier))

    @contextlib.contextmanager
    def enqueuing(self, drafts: Sequence[Job]) -> Iterator[list[Job]]:
        """Spans of drafts that are pushed inside; gives the drafts with their trace context."""
        spans: list[Span] = []
        traced: list[Job] = []
        for draft in drafts:
            span = self._tracer.start_span(
                f"ojs.enqueue {draft.type}",
                context=_request.get() or _enqueuer(draft) or _NO_CONTEXT,
                kind=SpanKind.PRODUCER,
                attributes=_attributes(draft, "publish"),
            )
            spans.append(span)
            traced.append(_with_context(draft, span))
        try:
            yield traced
        except BaseException as error:
            for span in spans:
                _fail(span, error)
            raise
        else:
            for span in spans:
                span.set_status(Status(StatusCode.OK))
        finally:
            for span in spans:
                span.end()

    def handed_out(self, job: Job) -> None:
        """A span from a job's claim to now."""
        now = time.time_ns()
        span = self._tracer.start_span(
            f"ojs.fetch {job.type}",
            context=_request.get() or _NO_CONTEXT,
            kind=SpanKind.SERVER,
            attributes=_attributes(job, "receive"),
            links=_links(job),
            start_time=min((job.started_at or 0) * 1_000_000 or now, now),
        )
        span.end()

    async def settling(self, operation: str, job_id: str, change: Awaitable[Change]) -> Change:
        """A span around a change of a job, which is known only when it is done."""
        began = time.time_ns()
        context = _request.get() or _NO_CONTEXT
        try:
            done = await change
        except BaseException as error:
            span = self._tracer.start_span(
                operation,
                context=context,
                kind=SpanKind.SERVER,
                attributes={"messaging.system": "ojs", "messaging.operation.type": "settle", "ojs.job.id": job_id},
                start_time=began,
            )
            _fail(span, error)
            span.end()
            raise
        job = done.after
        span = self._tracer.start_span(
            f"{operation} {job.type}",
            context=context,
            kind=SpanKind.SERVER,
            attributes=_attributes(job, "settle", worker=done.before.worker),
            links=_links(job),
            start_time=began,
        )
        if job.error is not None and operation == "ojs.nack":
            span.set_attributes(_told(job.error))
        span.set_status(Status(StatusCode.OK))
        span.end()
        return done


def _attributes(job: Job, operation: str, worker: str | None = None) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "messaging.system": "ojs",
        "messaging.operation.type": operation,
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "ojs.job.id": job.id,
        "ojs.job.type": job.type,
        "ojs.job.queue": job.queue,
        "ojs.job.priority": job.priority,
        "ojs.backend.type": "nats",
    }
    if operation != "publish":
        attributes |= {"ojs.job.state": job.state.value, "ojs.job.attempt": job.attempt}
    if worker := worker or job.worker:
        attributes["ojs.worker.id"] = worker
    if job.workflow is not None:
        attributes |= {"ojs.workflow.id": job.workflow.id, "ojs.workflow.type": job.workflow.kind}
        attributes["ojs.workflow.step"] = job.workflow.index
    return attributes


def _told(error: JobError) -> dict[str, Any]:
    return {"error.type": error.type, "error.message": error.message, "ojs.job.error.attempt": error.attempt}


def _fail(span: Span, error: BaseException) -> None:
    kind = error.code if isinstance(error, OjsError) else type(error).__name__
    message = error.message if isinstance(error, OjsError) else str(error)
    span.set_attributes({"error.type": kind, "error.message": message})
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, message))


# W3C trace context


def _context_of(carrier: Mapping[str, str]) -> Context | None:
    """The context that a carrier names; None if it names none that is valid."""
    if "traceparent" not in carrier:
        return None
    context = _propagator.extract(carrier, context=_NO_CONTEXT)
    return context if get_current_span(context).get_span_context().is_valid else None


def _carried(job: Job) -> _Carried:
    try:
        return _decode_carried(job.meta)
    except msgspec.DecodeError:
        return _Carried()


def _enqueuer(job: Job) -> Context | None:
    """The context in a job's meta."""
    carried = _carried(job)
    members = {"traceparent": carried.traceparent, "tracestate": carried.tracestate}
    texts = {name: msgspec.json.decode(value) for name, value in members.items() if value}
    return _context_of({name: text for name, text in texts.items() if isinstance(text, str)})


def _links(job: Job) -> list[Link]:
    context = _enqueuer(job)
    return [] if context is None else [Link(get_current_span(context).get_span_context())]


def _with_context(draft: Job, span: Span) -> Job:
    """The draft with the span's context in its meta, unless the client has put something there itself."""
    if _carried(draft).traceparent:
        return draft
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, set_span_in_context(span, _NO_CONTEXT))
    if not carrier:  # tracing is disabled by a variable of OpenTelemetry
        return draft
    members: dict[str, Any] = msgspec.json.decode(draft.meta, type=dict[str, Raw])
    return replace(draft, meta=Raw(msgspec.json.encode(members | carrier)))

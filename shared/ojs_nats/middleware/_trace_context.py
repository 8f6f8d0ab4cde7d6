"""Traces that lead from a push to its job, and on to the pushes of the job's handler (ojs-distributed-tracing)."""

from __future__ import annotations

import os
import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from ojs_nats._extras import extra
from ojs_nats._logging import bind_to_task
from ojs_nats.app import App
from ojs_nats.chains import EnqueueNext, ExecutionNext
from ojs_nats.errors import MissingDependencyError
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._context import JobContext

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

_TRACEPARENT: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")
_current: ContextVar[str | None] = ContextVar("ojs_nats_traceparent", default=None)


class TraceContext:
    """A middleware that gives each job a W3C `traceparent` in its `meta`, and its `trace_id` to the lines of the
    handler's log.

    The `traceparent` is that of the handler that pushes the job, or a new one. One that the job already has stays. With
    the extra `otel`, a push is a span `{queue} enqueue` (PRODUCER), and a run is a span `{queue} process` (CONSUMER) in
    a trace of its own, linked to the push.

    Args:
        provider: The provider that spans go to. None means that of the program.

    Example:
        ```python
        TraceContext().install(app)
        ```
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._api: Any = None
        try:
            self._api = extra("opentelemetry.trace", of="otel", what="spans")
            propagation = extra("opentelemetry.trace.propagation.tracecontext", of="otel", what="spans")
        except MissingDependencyError:
            return  # without spans, then
        self._propagator = propagation.TraceContextTextMapPropagator()
        self._tracer = self._api.get_tracer("ojs_nats", tracer_provider=provider)

    def install(self, app: App) -> None:
        """Add itself to an app, as the outermost middleware."""
        app.enqueue.prepend(self.on_push, "TraceContext")
        app.execution.prepend(self.on_run, "TraceContext")

    async def on_push(self, new: JobRequest[Any], next: EnqueueNext) -> JobRequest[Any] | None:
        """Give a job that is pushed its `traceparent`."""
        meta = new.options.get("meta", {})
        if "traceparent" in meta:
            return await next(new)
        if self._api is None:
            return await next(new.with_options(meta={**meta, "traceparent": _following(_current.get())}))
        queue = new.options.get("queue", "default")
        attributes = _attributes(new.id, new.type, queue)
        with self._tracer.start_as_current_span(f"{queue} enqueue", kind=self._api.SpanKind.PRODUCER, attributes=attributes):
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier)
            if not carrier:  # OpenTelemetry is there, and records nothing
                carrier = {"traceparent": _following(_current.get())}
            return await next(new.with_options(meta={**meta, **carrier}))

    async def on_run(self, context: JobContext, next: ExecutionNext) -> object:
        """Run the handler within the trace of its job."""
        job = context.job
        sent_by = _trace_id(job.meta.get("traceparent"))
        _current.set(job.meta.get("traceparent"))
        if self._api is None:
            return await _in_trace(sent_by, next)
        sent = self._propagator.extract(
            {name: job.meta[name] for name in ("traceparent", "tracestate") if isinstance(job.meta.get(name), str)}
        )
        pushed = self._api.get_current_span(sent).get_span_context()
        with self._tracer.start_as_current_span(
            f"{job.queue} process",
            context=self._api.set_span_in_context(self._api.INVALID_SPAN),
            kind=self._api.SpanKind.CONSUMER,
            links=[self._api.Link(pushed)] if pushed.is_valid else [],
            attributes={**_attributes(job.id, job.type, job.queue), "ojs.job.attempt": job.attempt},
        ) as span:
            own = span.get_span_context()
            return await _in_trace(self._api.format_trace_id(own.trace_id) if own.is_valid else sent_by, next)


async def _in_trace(trace_id: str | None, next: ExecutionNext) -> Any:
    if trace_id is not None:
        bind_to_task(trace_id=trace_id)
    return await next()


def _attributes(job_id: str, job_type: str, queue: str) -> dict[str, str]:
    return {
        "messaging.system": "ojs",
        "messaging.destination.name": queue,
        "messaging.message.id": job_id,
        "ojs.job.id": job_id,
        "ojs.job.type": job_type,
        "ojs.job.queue": queue,
    }


def _following(before: str | None) -> str:
    """A span of the same trace, else of a new one."""
    found = _TRACEPARENT.fullmatch(before) if isinstance(before, str) else None
    trace_id, flags = found.groups() if found else (os.urandom(16).hex(), "01")
    return f"00-{trace_id}-{os.urandom(8).hex()}-{flags}"


def _trace_id(traceparent: Any) -> str | None:
    found = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found else None

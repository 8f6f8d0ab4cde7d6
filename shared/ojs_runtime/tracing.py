"""Traces, when they are asked for: the hooks of the code that does the work. Without `otlp_endpoint` each is one comparison.

The spans are in `ojs_runtime.spans`, which needs OpenTelemetry (the extra `otel`).
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from ojs_engine.base.problems import StartupProblem
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions.result import Change
from ojs_link.timings import Timings

if TYPE_CHECKING:
    from ojs_runtime.spans import Spans

_MISSING: Final = (
    "otlp_endpoint is set, but OpenTelemetry is not installed: install ojs-nats-server with its extra otel, "
    "or set otlp_endpoint to off"
)

T = TypeVar("T")

_spans: Spans | None = None


class SpanTimings(Timings, frozen=True, kw_only=True):
    """How long a collector of spans is waited for."""

    export_s: float = 2.0
    """For its answer to one batch."""
    last_s: float = 0.3
    """For it to have the last ones, when the process stops."""


def start(endpoint: str | None, service: str, instance: str) -> None:
    """Trace from now on if there is an endpoint of a collector. Raises StartupProblem if OpenTelemetry isn't installed."""
    if endpoint is None:
        return
    try:
        spans = importlib.import_module("ojs_runtime.spans")
    except ImportError:
        raise StartupProblem(_MISSING) from None
    use(spans.exporting(endpoint, service, instance, SpanTimings()))


def use(spans: Spans | None) -> None:
    """Have this process's work recorded as `spans`; None turns it off."""
    global _spans  # noqa: PLW0603  # tracing, like metrics, belongs to the process
    _spans = spans


async def stop() -> None:
    """Deliver what was recorded, as far as the collector takes it quickly."""
    spans = _spans
    if spans is not None:
        use(None)
        await spans.close()


def answering(headers: Mapping[str, str]) -> None:
    """A request begins; its `traceparent` is the parent of what is done for it."""
    if _spans is not None:
        _spans.answering(headers)


async def enqueued(draft: Job, push: Callable[[Job], Awaitable[T]]) -> T:
    """Push a job, as the span `ojs.enqueue`. A job without `meta.traceparent` gets that of the span."""
    if _spans is None:
        return await push(draft)
    with _spans.enqueuing([draft]) as drafts:
        return await push(drafts[0])


async def enqueued_all(drafts: list[Job], push: Callable[[list[Job]], Awaitable[T]]) -> T:
    """Push jobs together, each with a span of its own."""
    if _spans is None:
        return await push(drafts)
    with _spans.enqueuing(drafts) as traced:
        return await push(traced)


def handed_out(jobs: Iterable[Job]) -> None:
    """Record the claims of a fetch as spans `ojs.fetch`, linked to those that enqueued the jobs."""
    if _spans is not None:
        for job in jobs:
            _spans.handed_out(job)


async def settled(operation: str, job_id: str, change: Awaitable[Change]) -> Change:
    """Make a worker's change of a job, as the span `ojs.ack` or `ojs.nack`, linked to the one that enqueued it."""
    if _spans is None:
        return await change
    return await _spans.settling(operation, job_id, change)

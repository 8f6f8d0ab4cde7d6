"""Metrics of the jobs that a worker runs, for Prometheus."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ojs_nats._extras import extra
from ojs_nats.chains import ExecutionNext
from ojs_nats.middleware._endings import ending
from ojs_nats.worker._context import JobContext

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""The buckets of ojs-observability §5.3, in seconds."""


class Metrics:
    """A middleware that counts and times jobs, with the extra `metrics`.

    Its metrics are `ojs_worker_jobs_started_total{queue,type}`, `ojs_worker_jobs_ended_total{queue,type,ending}` and
    `ojs_worker_job_duration_seconds{queue,type}`.

    Args:
        registry: Where the metrics are registered. None means prometheus-client's own registry, which can have them
            only once.

    Raises:
        MissingDependencyError: The package prometheus-client isn't installed.

    Example:
        ```python
        app.execution.add(Metrics())
        ```
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        prometheus = extra("prometheus_client", of="metrics", what="the middleware Metrics")
        into = registry or prometheus.REGISTRY
        by = ("queue", "type")
        self._started = prometheus.Counter("ojs_worker_jobs_started", "Attempts begun.", by, registry=into)
        self._ended = prometheus.Counter("ojs_worker_jobs_ended", "Attempts ended, by how.", (*by, "ending"), registry=into)
        self._durations = prometheus.Histogram(
            "ojs_worker_job_duration_seconds", "How long attempts took.", by, registry=into, buckets=_BUCKETS
        )

    async def __call__(self, context: JobContext, next: ExecutionNext) -> object:  # the specification's word
        """Run the rest of the chain, and count the job."""
        of = (context.queue, context.job.type)
        self._started.labels(*of).inc()
        began = time.perf_counter()
        error: BaseException | None = None
        try:
            return await next()
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._durations.labels(*of).observe(time.perf_counter() - began)
            self._ended.labels(*of, ending(error, context)).inc()

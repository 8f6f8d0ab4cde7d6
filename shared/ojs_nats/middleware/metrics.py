"""Prometheus' metrics of the jobs that a worker runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ojs_nats._extras import extra
from ojs_nats.chains import ExecutionNext
from ojs_nats.middleware.endings import ending
from ojs_nats.worker.context import JobContext

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Those of ojs-observability §5.3, in seconds."""


class Metrics:
    """In `registry`, else in prometheus-client's own, which may have one of them. Raises MissingDependencyError without
    prometheus-client.

    `ojs_worker_jobs_started_total{queue,type}`, `ojs_worker_jobs_ended_total{queue,type,ending}` and
    `ojs_worker_job_duration_seconds{queue,type}`.
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

    async def __call__(self, context: JobContext, next: ExecutionNext) -> Any:  # the specification's word
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

"""What a process counts and measures, for Prometheus. docs/metrics.md is made from this module.

Two documents of Open Job Spec name the metrics of jobs; those of ojs-observability are served (docs/adr/018). Each process
counts the transitions that it stored itself, so a figure of the system is the sum over its processes.

A metric belongs to the process, so everything here is a module's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from ojs_engine.domain.job import Entry, Job, State
from ojs_engine.telemetry.fast_metrics import CounterFamily, FastHistogram, HistogramFamily

F = TypeVar("F", CounterFamily, HistogramFamily)
P = TypeVar("P", Counter, Gauge)

log = structlog.get_logger(__name__)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each other one that says when it began

REGISTRY: Final = CollectorRegistry()

CONTENT_TYPE: Final = "text/plain"
"""Without parameters, which clients may compare literally; its version 0.0.4 is what scrapers take it for."""
OTHER: Final = "other"
MAX_SERIES: Final = 200
"""Pairs of job type and queue that get series of their own; types beyond that count as `other` in their queue."""
_MAX_QUEUES: Final = 100
"""Queues that get series of their own; those beyond count as `other`."""

_RUN_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_QUEUE_TIME_S: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600)
REQUEST_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROUND_TRIP_S: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2)
_LATENESS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300)


Family = CounterFamily | HistogramFamily | Counter | Gauge


class Listed(NamedTuple):
    """A metric for the documentation."""

    family: Family
    labels: tuple[str, ...]


FAMILIES: Final[list[Listed]] = []
"""What every process serves."""
OF_GATEWAY: Final[list[Listed]] = []
"""What only a gateway serves."""
OF_PROJECTOR: Final[list[Listed]] = []
"""What only a projector serves: in other processes its zeros would mean something that isn't so."""


def counter(name: str, text: str, *labels: str) -> CounterFamily:
    """Return a new counter of this process."""
    return _registered(CounterFamily(name, text, labels))


def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> HistogramFamily:
    """Return a new histogram of this process."""
    return _registered(HistogramFamily(name, text, labels, buckets))


def _registered(family: F) -> F:
    REGISTRY.register(family)
    FAMILIES.append(Listed(family, family.label_names))
    return family


def gauge(name: str, text: str, *labels: str) -> Gauge:
    """Return a new gauge of this process."""
    family = Gauge(name, text, labels, registry=REGISTRY)
    FAMILIES.append(Listed(family, labels))
    return family


def of_gateway(name: str, text: str) -> Gauge:
    """Return a new gauge that gateways alone serve."""
    family = Gauge(name, text, registry=None)
    OF_GATEWAY.append(Listed(family, ()))
    return family


def _projector(kind: type[P], name: str, text: str, *labels: str) -> P:
    family = kind(name, text, labels, registry=None)
    OF_PROJECTOR.append(Listed(family, labels))
    return family


# Jobs: names, labels and bounds of ojs-observability §8

_LABELS: Final = ("queue", "type")
_ENQUEUED: Final = counter("ojs_job_enqueued", "Jobs accepted, delayed and pending ones included.", *_LABELS)
_COMPLETED: Final = counter("ojs_job_completed", "Jobs completed.", *_LABELS)
_FAILED: Final = counter("ojs_job_failed", "Jobs discarded, dead letters included.", *_LABELS)
_RETRIED: Final = counter("ojs_job_retried", "Failed attempts that are followed by another.", *_LABELS)
_CANCELLED: Final = counter("ojs_job_cancelled", "Jobs cancelled.", *_LABELS)
_LEASES_EXPIRED: Final = counter(
    "ojs_job_lease_expired", "Attempts that ended because nobody beat for them: a worker died, hung or was cut off.", *_LABELS
)
_EXPIRED: Final = counter("ojs_job_expired", "Jobs discarded because they expired before they ran.", *_LABELS)
_DURATION: Final = histogram(
    "ojs_job_duration_seconds", "Time that attempts ran, by the state that they left the job in.", _RUN_S, *_LABELS, "state"
)
_QUEUE_TIME: Final = histogram(
    "ojs_job_queue_time_seconds", "Time from available to started, of first attempts.", _QUEUE_TIME_S, *_LABELS
)

# Queues, from the projector's index

QUEUE_DEPTH: Final = _projector(Gauge, "ojs_queue_depth", "Jobs stored, by state.", "queue", "state")
QUEUE_OLDEST: Final = _projector(
    Gauge, "ojs_queue_oldest_seconds", "How long the job has waited that is available and has waited longest.", "queue"
)
QUEUE_ACTIVE: Final = _projector(Gauge, "ojs_queue_active", "Active jobs.", "queue")
QUEUE_DEAD: Final = _projector(Gauge, "ojs_dead_letter_depth", "Dead letters, by the queue that they come from.", "queue")

# Requests

_REQUESTS: Final = histogram(
    "ojs_http_request_duration_seconds",
    "Requests by route template and status class. A long poll counts with its waiting.",
    REQUEST_S,
    "method",
    "route",
    "status",
)

CONNECTIONS: Final = gauge("ojs_http_connections", "Connections that are open to the HTTP API.")
CONNECTIONS_REFUSED: Final = counter(
    "ojs_http_connections_refused",
    "Connections refused at a limit: that of all connections, or that of one address.",
    "limit",
)

HANDSHAKES_FAILED: Final = counter(
    "ojs_tls_handshakes_failed",
    "Clients that got no connection by TLS: plain_http and no_tls don't speak it, version knows none that is new enough, "
    "client_certificate showed none that is trusted, distrusted doesn't trust the server's; timeout, closed, other.",
    "reason",
)
PROXY_HEADERS_REFUSED: Final = counter(
    "ojs_proxy_headers_refused",
    "Connections from trusted proxies that ended for want of a PROXY header; missing begins with something else.",
    "reason",
)
CERTIFICATE_ENDS: Final = Gauge(
    "ojs_tls_certificate_end_seconds", "When the server's certificate ends, in Unix seconds; 0 without TLS.", registry=None
)
OF_GATEWAY.append(Listed(CERTIFICATE_ENDS, ()))

# The store

COMMITS: Final = counter(
    "ojs_commits",
    "Writes of job records: stored, conflict (somebody else was faster; decided anew) or failed.",
    "outcome",
)
NATS_ROUND_TRIP: Final = histogram(
    "ojs_nats_request_duration_seconds",
    "Requests to NATS until their answer; a sample of one in 17.",
    _ROUND_TRIP_S,
    "connection",
)
NATS_TIMEOUTS: Final = counter("ojs_nats_request_timeouts", "Requests that NATS did not answer in time.", "connection")
NATS_RECONNECTS: Final = counter("ojs_nats_reconnects", "Connections to NATS that were lost and made again.", "connection")

REPLIES_REFUSED: Final = counter(
    "ojs_nats_replies_refused",
    "Requests over NATS that were not carried out, since their reply subject is no inbox: a mistake, or an attack.",
).labels()

_OF: Final = "of"
STORAGE_USED: Final = gauge(
    "ojs_storage_used_bytes",
    "What is used of nats-server's max_file_store (server), of the account's limit (account), and of the disk (disk).",
    _OF,
)
STORAGE_LIMIT: Final = gauge("ojs_storage_limit_bytes", "How much there is of each, as far as it is known.", _OF)
STORAGE_RESERVE: Final = gauge(
    "ojs_storage_reserve_bytes", "How much of it is kept for jobs that are there already: new ones are refused before.", _OF
)
STORAGE_FULL: Final = gauge("ojs_storage_full", "1 while new jobs are refused because there is no room for them, else 0.")
_ROLE: Final = ("role",)
SERVICES_UP: Final = Gauge(
    "ojs_service_up",
    "Processes of each role that were heard of in the last ten seconds; 0 means that its work waits.",
    _ROLE,
    registry=None,
)
OF_GATEWAY.append(Listed(SERVICES_UP, _ROLE))
UNREADABLE: Final = counter(
    "ojs_unreadable_records",
    "Revisions of records that this process met and can't read, by kind; GET /ojs/v1/admin/unreadable lists them.",
    "kind",
)

_LOST: Final = counter(
    "ojs_lost_records",
    "Settings, webhooks and keys that this process knew and NATS has lost; GET /ojs/v1/admin/findings names them.",
    "kind",
)

# Hand-out

_STARVED: Final = counter(
    "ojs_scheduling_starvation_events",
    "Queues of pools, and priorities, that waited for their rotation interval and were then served ahead of others.",
    "queue",
)

QUEUES_SKIPPED: Final = counter(
    "ojs_fetch_queues_skipped", "Queues that a fetch named and NATS couldn't serve at that moment; its others were looked into."
).labels()
CONSUMERS: Final = gauge(
    "ojs_nats_consumers",
    "Consumers of a stream, when this process last looked for jobs there. Only busy queues need one.",
    "stream",
)
CONSUMERS_LIMIT: Final = gauge(
    "ojs_nats_consumers_limit", "How many the stream may have; beyond, queues are served without, which costs more.", "stream"
)
CONSUMERS_REFUSED: Final = counter(
    "ojs_nats_consumers_refused", "Consumers of busy queues that NATS refused: the queues are served without."
).labels()

# Limits and bounds

_REJECTED: Final = counter("ojs_backpressure_rejected", "Pushes that full queues refused, a batch as one.", "queue")
_DROPPED: Final = counter("ojs_backpressure_dropped", "Jobs that made room for newer ones.", "queue")
PRESSURE: Final = _projector(
    Gauge, "ojs_backpressure_pressure", "How full a bounded queue is: its available jobs by its bound.", "queue"
)


def record_lost(kind: str) -> None:
    """Count a record that NATS has lost."""
    _LOST.labels(kind).inc()


# The services

DUE_LATENESS: Final = histogram(
    "ojs_due_lateness_seconds", "From a deadline to the moment when what follows from it was stored.", _LATENESS_S, "service"
)
PROJECTOR_LAG: Final = _projector(
    Gauge, "ojs_projector_lag_seconds", "Age of the last record read while more are waiting, else 0."
)
PROJECTOR_PROGRESS: Final = _projector(
    Gauge, "ojs_projector_progress_ratio", "How much of the index is there: 1 unless it is built anew."
)
RELAYING: Final = _projector(Gauge, "ojs_projector_relaying", "1 on the projector that publishes the events, 0 on the others.")
RELAYED_EVENTS: Final = _projector(Counter, "ojs_projector_relayed_events", "Lifecycle events published by this process.")
PRUNED: Final = _projector(
    Counter, "ojs_dead_letter_pruned", "Dead letters deleted because their queue had more than it keeps.", "queue"
)
SAFETY_NET: Final = _projector(
    Counter,
    "ojs_safety_net_finds",
    "Lost hints that were issued again, and records that were gone; anything but 0 deserves a look at the log.",
    "kind",
)

for _kind in ("token", "timer", "record"):
    SAFETY_NET.labels(_kind)  # so that the first find is an increase

_BUILD: Final = Info("ojs_build", "The process: service, version and the namespace of its system in NATS.", registry=REGISTRY)
ProcessCollector(registry=REGISTRY)


def identify(service: str, version: str, namespace: str) -> None:
    """Say what this process is: gateways and projectors serve metrics that others don't."""
    for family, _ in {"gateway": OF_GATEWAY, "projector": OF_PROJECTOR}.get(service, []):
        REGISTRY.register(family)
    _BUILD.info({"service": service, "version": version, "namespace": namespace})


_refreshers: Final[list[Callable[[], None]]] = []


def refresh_with(refresh: Callable[[], None]) -> Callable[[], None]:
    """Have `refresh` called ahead of each exposition, in the event loop's thread: it sets gauges. Returns the way to end it."""
    _refreshers.append(refresh)

    def end() -> None:
        if refresh in _refreshers:
            _refreshers.remove(refresh)

    return end


async def exposition() -> bytes:
    """Everything in the text format 0.0.4. Written in a thread: with many series it takes longer than a request may."""
    for refresh in _refreshers:
        try:
            refresh()
        except Exception:  # the other metrics are needed all the more
            log.exception("metrics could not be brought up to date")
    return await asyncio.to_thread(generate_latest, REGISTRY)


# Counting transitions


class _Series:
    """The metrics of one job type in one queue. A stored transition moves at most three of them."""

    __slots__ = (
        "cancelled",
        "completed",
        "durations",
        "enqueued",
        "expired",
        "failed",
        "labels",
        "leases_expired",
        "queue_time",
        "retried",
    )

    def __init__(self, queue: str, job_type: str) -> None:
        self.labels = labels = (queue, job_type)
        self.enqueued = _ENQUEUED.labels(*labels)
        self.completed = _COMPLETED.labels(*labels)
        self.failed = _FAILED.labels(*labels)
        self.retried = _RETRIED.labels(*labels)
        self.cancelled = _CANCELLED.labels(*labels)
        self.expired = _EXPIRED.labels(*labels)
        self.leases_expired = _LEASES_EXPIRED.labels(*labels)
        self.queue_time = _QUEUE_TIME.labels(*labels)
        self.durations: dict[State, FastHistogram] = {}

    def count(self, job: Job, entry: Entry) -> None:
        match entry.event:
            case "pushed":
                self.enqueued.inc()
            case "claimed":
                if entry.attempt == 1 and not job.generation:
                    self.queue_time.observe(max(0, entry.at - (job.enqueued_at or entry.at)) / 1_000)
            case _:
                if entry.before is State.ACTIVE and entry.after is not None and job.started_at is not None:
                    self._ran(entry.after, entry.event, max(0, entry.at - job.started_at) / 1_000)
                if entry.after is not entry.before:
                    self._ended(entry)

    def _ran(self, state: State, event: str, seconds: float) -> None:
        duration = self.durations.get(state)
        if duration is None:
            duration = self.durations[state] = _DURATION.labels(*self.labels, state.value)
        duration.observe(seconds)
        if state in {State.AVAILABLE, State.RETRYABLE} and event != "requeued":
            self.retried.inc()
        if event == "lease_expired":
            self.leases_expired.inc()

    def _ended(self, entry: Entry) -> None:
        match entry.after:
            case State.COMPLETED:
                self.completed.inc()
            case State.DISCARDED:
                self.failed.inc()
                if entry.event in {"expired", "ttl_expired"}:
                    self.expired.inc()
            case State.CANCELLED:
                self.cancelled.inc()
            case _:
                pass


class _AllSeries:
    """The series by (queue, job type), in a number that clients can't raise."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], _Series] = {}
        self._rest: dict[str, _Series] = {}
        self._queues: set[str] = set()

    def of(self, queue: str, job_type: str) -> _Series:
        found = self._series.get((queue, job_type))
        return found if found is not None else self._first(queue, job_type)

    def queue(self, name: str) -> str:
        """The queue if it has series of its own, or may have, else `other`."""
        if name not in self._queues and len(self._queues) >= _MAX_QUEUES:
            return OTHER
        self._queues.add(name)
        return name

    def _first(self, queue: str, job_type: str) -> _Series:
        queue = self.queue(queue)
        if queue in self._queues and len(self._series) < MAX_SERIES:
            series = self._series[queue, job_type] = _Series(queue, job_type)
            return series
        if queue not in self._rest:
            self._rest[queue] = _Series(queue, OTHER)
        return self._rest[queue]


_all_series: Final = _AllSeries()
_committed: Final = COMMITS.labels("stored")


def stored(job: Job, op: str) -> None:
    """Count a stored commit, and the transition `op` if it wrote one into the job's log: a longer lease does not."""
    _committed.inc()
    entry = job.transitions[-1] if job.transitions else None
    if entry is not None and entry.op == op:
        _all_series.of(job.queue, job.type).count(job, entry)


_consumers: Final[dict[str, tuple[int, int]]] = {}


def consumers(stream: str, used: int, limit: int) -> None:
    """Note how many consumers a stream has, and may have."""
    if _consumers.get(stream) != (used, limit):
        _consumers[stream] = used, limit
        CONSUMERS.labels(stream).set(used)
        CONSUMERS_LIMIT.labels(stream).set(limit)


def starved(queue: str) -> None:
    """Count a queue, or a priority of it, that had waited too long and was served."""
    _STARVED.labels(_all_series.queue(queue)).inc()


def queue_label(queue: str) -> str:
    """Return the label of a queue in metrics of features: its name, or `OTHER` beyond the queues that have series."""
    return _all_series.queue(queue)


def rejected(queue: str) -> None:
    """Count a push that a full queue refused."""
    _REJECTED.labels(_all_series.queue(queue)).inc()


def dropped(queue: str) -> None:
    """Count a job that made room for a newer one."""
    _DROPPED.labels(_all_series.queue(queue)).inc()


# Counting requests

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "NATS"})
_requests: dict[tuple[str, str, int], FastHistogram] = {}


def answered(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request that was answered. `route` is a template, never a path."""
    key = (method, route, status // 100)
    histogram = _requests.get(key)
    if histogram is None:
        known = method if method in _METHODS else OTHER
        histogram = _REQUESTS.labels(known, route, f"{status // 100}xx")
        if known is method:
            _requests[key] = histogram
    histogram.observe(seconds)

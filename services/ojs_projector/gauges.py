"""The projector's part of the metrics: what its index says of the queues, and how far it has come itself."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import Gauge

from ojs_engine.telemetry import metrics
from ojs_index.asking.messages import ProjectorStatus
from ojs_index.reading.waiting import oldest_available
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.numbers import DEAD, counts_of_queues

_MAX_QUEUES: Final = 500
"""Queues that get gauges of their own, those with the most jobs; the rest is added up as `other`."""


class Gauges:
    """Brings the gauges up to date ahead of each exposition."""

    def __init__(
        self, model: Model, status: Callable[[], ProjectorStatus], bound: Callable[[str], int], now: Callable[[], int]
    ) -> None:
        """`bound` says how many jobs of a queue may wait, 0 if any number; `now` is in Unix milliseconds."""
        self._model = model
        self._now = now
        self._bound = bound
        self._status = status
        self._shown: dict[Gauge, set[tuple[str, ...]]] = {}

    def refresh(self) -> None:
        status = self._status()
        metrics.PROJECTOR_LAG.set(status.lag_ms / 1_000)
        metrics.PROJECTOR_PROGRESS.set(status.progress)
        metrics.RELAYING.set(status.relaying)
        depth: Counter[tuple[str, ...]] = Counter()
        active: Counter[tuple[str, ...]] = Counter()
        dead: Counter[tuple[str, ...]] = Counter()
        pressure: dict[tuple[str, ...], float] = {}
        waited: dict[tuple[str, ...], float] = {}
        counts = counts_of_queues(self._model.db)
        letters = {queue: counts.pop((queue, DEAD)) for queue, state in list(counts) if state == DEAD}
        sizes: Counter[str] = Counter()
        for (name, _), number in counts.items():
            sizes[name] += number
        largest = set(heapq.nsmallest(_MAX_QUEUES, sizes, key=lambda name: (-sizes[name], name)))
        for (name, state), number in counts.items():
            queue = name if name in largest else metrics.OTHER
            depth[queue, state] += number
            if state == "available" and queue == name and (bound := self._bound(name)):
                pressure[name,] = number / bound
            active[queue,] += number if state == "active" else 0
            dead[queue,] += 0
        for name, number in letters.items():
            dead[name if name in largest else metrics.OTHER,] += number
        now = self._now()
        for name, since in oldest_available(self._model.db).items():
            queue = name if name in largest else metrics.OTHER
            waited[queue,] = max(waited.get((queue,), 0.0), max(0, now - since) / 1_000)
        self._show(metrics.QUEUE_DEPTH, depth)
        self._show(metrics.QUEUE_OLDEST, waited)
        self._show(metrics.QUEUE_ACTIVE, active)
        self._show(metrics.QUEUE_DEAD, dead)
        self._show(metrics.PRESSURE, pressure)

    def _show(self, gauge: Gauge, values: Mapping[tuple[str, ...], float]) -> None:
        for labels in self._shown.get(gauge, set()) - set(values):
            gauge.remove(*labels)
        for labels, value in values.items():
            gauge.labels(*labels).set(value)
        self._shown[gauge] = set(values)

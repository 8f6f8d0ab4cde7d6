"""Counters and histograms for what happens thousands of times a second: plain numbers, counted in one thread without locks.

prometheus_client's own cost several times as much, which is a few percent of a push. It reads and renders these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

C = TypeVar("C")


class FastCounter:
    """One counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def inc(self, by: float = 1) -> None:
        self.value += by


class FastHistogram:
    """One histogram."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum: float = 0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class _Family(Collector, Generic[C]):
    """Children by the values of their labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self.name: Final = name
        self.documentation: Final = documentation
        self.label_names: Final = tuple(labels)
        self._children: dict[tuple[str, ...], C] = {}

    def labels(self, *values: str) -> C:
        """The child with these labels, made when it is first asked for."""
        child = self._children.get(values)
        if child is None:
            assert len(values) == len(self.label_names), (self.name, values)
            child = self._children[values] = self._new()
        return child

    def remove(self, *values: str) -> None:
        del self._children[values]

    def describe(self) -> Iterator[Metric]:
        yield self._empty()

    def collect(self) -> Iterator[Metric]:
        # Exposition happens in another thread, and a new child may come at any moment.
        yield self._filled(list(self._children.items()))

    def _new(self) -> C:
        raise NotImplementedError

    def _empty(self) -> Metric:
        return self._filled([])

    def _filled(self, children: list[tuple[tuple[str, ...], C]]) -> Metric:
        raise NotImplementedError


class CounterFamily(_Family[FastCounter]):
    """A counter and its children."""

    def _new(self) -> FastCounter:
        return FastCounter()

    def _filled(self, children: list[tuple[tuple[str, ...], FastCounter]]) -> Metric:
        metric = CounterMetricFamily(self.name, self.documentation, labels=self.label_names)
        for values, child in children:
            metric.add_metric(values, child.value)
        return metric


class HistogramFamily(_Family[FastHistogram]):
    """A histogram and its children; `bounds` are those of its buckets, without infinity."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        super().__init__(name, documentation, labels)
        self._bounds = tuple(bounds)
        self._names = [floatToGoString(bound) for bound in (*self._bounds, float("inf"))]  # type: ignore[no-untyped-call]

    def _new(self) -> FastHistogram:
        return FastHistogram(self._bounds)

    def _filled(self, children: list[tuple[tuple[str, ...], FastHistogram]]) -> Metric:
        metric = HistogramMetricFamily(self.name, self.documentation, labels=self.label_names)
        for values, child in children:
            buckets = list(zip(self._names, accumulate(child.counts), strict=True))
            metric.add_metric(values, buckets, child.sum)
        return metric

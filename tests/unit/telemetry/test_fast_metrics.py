"""Own counters and histograms say what those of prometheus_client would say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from ojs_engine.telemetry.fast_metrics import CounterFamily, HistogramFamily

BOUNDS = (0.005, 0.5, 1, 10, 60_000)
LABELS = ("queue", "type")
CHILDREN = st.tuples(st.sampled_from(["a", 'b"\\\n']), st.sampled_from(["x", "y"]))


@given(st.lists(st.tuples(CHILDREN, st.integers(1, 5))))
def test_counters_are_rendered_alike(increments: list[tuple[tuple[str, str], int]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own, reference = CounterFamily("c", "Counts.", LABELS), Counter("c", "Counts.", LABELS, registry=theirs)
    ours.register(own)
    for labels, by in increments:
        own.labels(*labels).inc(by)
        reference.labels(*labels).inc(by)
    assert generate_latest(ours) == generate_latest(theirs)


@given(st.lists(st.tuples(CHILDREN, st.sampled_from([0, *BOUNDS, 0.25, 7, 1e9]))))
def test_histograms_are_rendered_alike(observations: list[tuple[tuple[str, str], float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    own = HistogramFamily("h", "Spreads.", LABELS, BOUNDS)
    reference = Histogram("h", "Spreads.", LABELS, buckets=BOUNDS, registry=theirs)
    ours.register(own)
    for labels, value in observations:
        own.labels(*labels).observe(value)
        reference.labels(*labels).observe(value)
    assert generate_latest(ours) == generate_latest(theirs)


def test_a_child_is_made_once_and_may_be_removed() -> None:
    counts = CounterFamily("c", "Counts.", ("type",))
    assert counts.labels("x") is counts.labels("x")
    counts.remove("x")
    assert [sample for metric in counts.collect() for sample in metric.samples] == []


def test_a_name_can_not_be_taken_twice() -> None:
    registry = CollectorRegistry()
    registry.register(CounterFamily("c", "Counts.", ()))
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(CounterFamily("c", "Counts.", ()))

from __future__ import annotations

import pytest

from bench.bars import BARS, Bar, judge
from bench.plan import Plan
from bench.report import summarise
from bench.scenarios.blocked import VARIANTS as BLOCKED
from unit.bench.results import enqueue

RATE = Bar("enqueue", "32 connections", "jobs/s", 7_000, at_least=True)
P50 = Bar("enqueue", "32 connections", "p50 ms", 3, at_least=False)


@pytest.mark.parametrize(
    ("bar", "rate", "p50", "met"),
    [(RATE, 7_000, 9, True), (RATE, 6_999, 1, False), (P50, 1, 3.0, True), (P50, 9_000, 3.01, False)],
)
def test_bars_are_met_at_their_bound(bar: Bar, rate: float, p50: float, met: bool) -> None:
    (verdict,) = judge([bar], summarise([enqueue(rate, p50=p50)]))
    assert verdict.met is met
    assert verdict.value == (rate if bar is RATE else p50)


def test_the_median_of_the_repetitions_counts() -> None:
    (verdict,) = judge([RATE], summarise([enqueue(8_000), enqueue(7_500), enqueue(100)]))
    assert verdict.met


def test_what_was_not_measured_is_missed() -> None:
    (verdict,) = judge([RATE], summarise([enqueue(9_000, variant="1 connection")]))
    assert (verdict.met, verdict.value, verdict.why) == (False, None, "not measured")


def test_a_fast_server_that_makes_errors_misses_its_bar() -> None:
    (verdict,) = judge([RATE], summarise([enqueue(9_000, errors={"500": 1})]))
    assert str(verdict) == "**missed**: enqueue (32 connections) jobs/s ≥ 7,000, is 9,000.00 (1 errors)"


def test_the_bars_name_variants_of_the_default_plan() -> None:
    plan = Plan()
    variants = {
        "enqueue": {f"{number} connections" for number in plan.connections},
        "dispatch": {f"{plan.rate:g}/s"},
        "batch": {f"{size:,} jobs" for size in plan.batches},
        "projector": {f"{plan.transitions:,.0f} transitions/s"},
        "blocked": set(BLOCKED),
    }
    assert all(bar.variant in variants[bar.scenario] for bar in BARS)

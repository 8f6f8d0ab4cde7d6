from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stats import from_schedule, percentile, quantiles


def test_percentiles_are_samples_by_nearest_rank() -> None:
    ordered = [float(value) for value in range(1, 101)]
    assert percentile(ordered, 0.50) == 50
    assert percentile(ordered, 0.99) == 99
    assert percentile(ordered, 0.07) == 7
    assert percentile(ordered, 0) == 1
    assert percentile(ordered, 1) == 100
    assert percentile([5.0], 0.99) == 5


@pytest.mark.parametrize(("ordered", "share"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_percentile_refuses_what_has_no_answer(ordered: list[float], share: float) -> None:
    with pytest.raises(ValueError, match=r"samples|share"):
        percentile(ordered, share)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.floats(0, 1))
def test_at_least_the_share_of_samples_lies_at_or_below_the_percentile(samples: list[float], share: float) -> None:
    value = percentile(sorted(samples), share)
    assert value in samples
    assert sum(sample <= value for sample in samples) >= share * len(samples) - 1e-6
    assert sum(sample < value for sample in samples) <= share * len(samples)


def test_quantiles_are_in_milliseconds_whatever_the_order() -> None:
    found = quantiles([0.004, 0.001, 0.003, 0.002])
    assert found is not None
    assert (found.count, found.p50, found.p99, found.max) == (4, 2.0, 4.0, 4.0)
    assert quantiles([]) is None


def test_a_stall_is_charged_to_the_pushes_it_held_up() -> None:
    # Pushes every 10 ms; the server stalls for 30 ms at the second. An uncorrected measurement would see one slow answer.
    scheduled = [0.00, 0.01, 0.02, 0.03]
    received = {0: 0.001, 1: 0.041, 2: 0.042, 3: 0.043}
    assert from_schedule(scheduled, received) == pytest.approx([0.001, 0.031, 0.022, 0.013])


def test_what_never_arrived_is_in_no_percentile() -> None:
    assert from_schedule([0.0, 1.0, 2.0], {0: 0.5, 2: 2.25}) == [0.5, 0.25]

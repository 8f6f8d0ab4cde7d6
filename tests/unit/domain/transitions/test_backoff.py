from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.domain.job import Backoff, Retry
from ojs_engine.domain.transitions.backoff import delay_ms
from support.tables import each


def _policy(strategy: Backoff, coefficient: float = 2.0, max_interval_ms: int = 300_000, *, jitter: bool = False) -> Retry:
    return Retry(
        initial_interval_ms=1_000,
        backoff_coefficient=coefficient,
        max_interval_ms=max_interval_ms,
        jitter=jitter,
        backoff_strategy=strategy,
    )


@each(
    ("strategy", "coefficient", "delays"),
    [
        ("none", 2.0, [1_000, 1_000, 1_000]),
        ("constant", 2.0, [1_000, 1_000, 1_000]),
        ("linear", 2.0, [1_000, 2_000, 3_000]),
        ("exponential", 2.0, [1_000, 2_000, 4_000]),
        ("exponential", 1.0, [1_000, 1_000, 1_000]),
        ("exponential", 1.5, [1_000, 1_500, 2_250]),
        ("polynomial", 2.0, [1_000, 4_000, 9_000]),
        ("polynomial", 4.0, [1_000, 16_000, 81_000]),
    ],
)
def test_the_delay_grows_as_its_strategy_says(strategy: Backoff, coefficient: float, delays: list[int]) -> None:
    assert [delay_ms(_policy(strategy, coefficient), n, 0.9) for n in (1, 2, 3)] == delays


@pytest.mark.parametrize(("chance", "factor"), [(0.0, 0.5), (0.5, 1.0), (0.75, 1.25)])
def test_jitter_multiplies_by_half_up_to_one_and_a_half(chance: float, factor: float) -> None:
    assert delay_ms(_policy("exponential", jitter=True), 3, chance) == 4_000 * factor


@pytest.mark.parametrize(("chance", "delay"), [(0.0, 2_500), (0.5, 5_000), (0.99, 5_000)])
def test_the_cap_holds_before_and_after_the_jitter(chance: float, delay: int) -> None:
    assert delay_ms(_policy("exponential", max_interval_ms=5_000, jitter=True), 10, chance) == delay


@pytest.mark.parametrize("strategy", ["exponential", "polynomial"])
def test_a_growth_beyond_all_numbers_ends_at_the_cap(strategy: Backoff) -> None:
    assert delay_ms(_policy(strategy, 1e300), 1_000, 0.5) == 300_000


@given(
    strategy=st.sampled_from(["none", "constant", "linear", "exponential", "polynomial"]),
    coefficient=st.floats(1.0, 1e6),
    failures=st.integers(1, 1_000_000),
    chance=st.floats(0, 1, exclude_max=True),
    jitter=st.booleans(),
)
def test_every_delay_lies_between_half_the_first_and_the_cap(
    strategy: Backoff, coefficient: float, failures: int, chance: float, *, jitter: bool
) -> None:
    assert 500 <= delay_ms(_policy(strategy, coefficient, jitter=jitter), failures, chance) <= 300_000

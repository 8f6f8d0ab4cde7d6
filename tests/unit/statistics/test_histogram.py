from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ojs_features.statistics.histogram import ACCURACY, Buckets, add, bucket_of, percentiles

TIMES = st.one_of(st.integers(0, 100), st.integers(0, 10_000), st.integers(0, 30 * 86_400_000))


def buckets_of(values: list[int]) -> Buckets:
    buckets: Buckets = {}
    for value in values:
        add(buckets, {bucket_of(value): 1})
    return buckets


@given(st.lists(TIMES, min_size=1, max_size=300))
def test_percentiles_are_near_those_of_the_sorted_values(values: list[int]) -> None:
    found = percentiles(buckets_of(values))
    assert found is not None
    assert found.count == len(values)
    values.sort()
    for p, told in ((50, found.p50), (90, found.p90), (95, found.p95), (99, found.p99), (100, found.max)):
        exact = values[-(-len(values) * p // 100) - 1]
        assert abs(told - exact) <= ACCURACY * exact


@given(st.lists(TIMES), st.lists(TIMES), st.lists(TIMES))
def test_distributions_can_be_added_up_in_any_order(a: list[int], b: list[int], c: list[int]) -> None:
    left, right = buckets_of(a), buckets_of(b)
    add(left, buckets_of(b))
    add(left, buckets_of(c))
    add(right, buckets_of(c))
    add(right, buckets_of(a))
    assert left == right == buckets_of(a + b + c)


def test_short_times_are_exact() -> None:
    for value in range(21):
        found = percentiles({bucket_of(value): 1})
        assert found is not None
        assert found.p50 == found.max == value


def test_what_is_beyond_all_buckets_counts_as_the_longest_and_what_is_below_zero_as_nothing() -> None:
    assert bucket_of(10**15) == bucket_of(366 * 86_400_000)
    assert bucket_of(-5) == bucket_of(0)
    assert percentiles({}) is None

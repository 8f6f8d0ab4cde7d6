from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Backoff, Retry
from ojs_engine.wire.jobs.retry import check_retry, retry_raw
from support.tables import each


def check(**members: Any) -> Retry:
    return check_retry(members, "retry", DEFAULT_LIMITS)


@pytest.mark.parametrize(
    "members",
    [
        {"initial_interval": "PT2S", "max_interval": "PT10M"},
        {"initial_interval": "2s", "max_interval": "10m"},
        {"initial_interval": "2000ms", "max_interval": "600s"},
        {"initial_interval_ms": 2_000, "max_interval_ms": 600_000},
        {"initialInterval": "PT2S", "maxInterval": "PT10M"},
        {"initialIntervalMs": 2_000, "maxIntervalMs": 600_000},
        {"base_delay_ms": 2_000, "max_delay_ms": 600_000},
    ],
)
def test_intervals_are_read_in_every_spelling(members: dict[str, Any]) -> None:
    assert check(**members) == Retry(initial_interval_ms=2_000, max_interval_ms=600_000)


@each(
    ("members", "expected"),
    [
        ({}, Retry()),
        ({"max_attempts": 0}, Retry(max_attempts=0)),
        ({"maxAttempts": 5, "backoffCoefficient": 3}, Retry(max_attempts=5, backoff_coefficient=3.0)),
        ({"multiplier": 1.5}, Retry(backoff_coefficient=1.5)),
        ({"jitter": False}, Retry(jitter=False)),
        ({"non_retryable_errors": ["auth.*"]}, Retry(non_retryable_errors=("auth.*",))),
        ({"onExhaustion": "dead_letter"}, Retry(on_exhaustion="dead_letter")),
        ({"strategy": "constant"}, Retry(backoff_strategy="constant")),
        ({"backoff": "linear"}, Retry(backoff_strategy="linear")),
        ({"max_attempts": None, "unknown": {"x": 1}}, Retry()),
        ({"initial_interval": "PT1H"}, Retry(initial_interval_ms=3_600_000, max_interval_ms=3_600_000)),
    ],
)
def test_members_are_merged_over_the_defaults(members: dict[str, Any], expected: Retry) -> None:
    assert check(**members) == expected


@each(
    ("members", "field"),
    [
        ({"max_attempts": -1}, "max_attempts"),
        ({"max_attempts": 1.5}, "max_attempts"),
        ({"max_attempts": "3"}, "max_attempts"),
        ({"max_attempts": True}, "max_attempts"),
        ({"backoff_coefficient": 0.5}, "backoff_coefficient"),
        ({"backoff_coefficient": "2"}, "backoff_coefficient"),
        ({"initial_interval": "soon"}, "initial_interval"),
        ({"initial_interval": 1_000}, "initial_interval"),
        ({"initial_interval": "PT0S"}, "initial_interval"),
        ({"initial_interval_ms": -1}, "initial_interval_ms"),
        ({"initial_interval": "PT5S", "max_interval": "PT1S"}, "max_interval"),
        ({"jitter": "yes"}, "jitter"),
        ({"non_retryable_errors": "x"}, "non_retryable_errors"),
        ({"non_retryable_errors": [1]}, "non_retryable_errors[0]"),
        ({"on_exhaustion": "explode"}, "on_exhaustion"),
        ({"backoff_strategy": "random"}, "backoff_strategy"),
        ({"maxAttempts": -1}, "maxAttempts"),
    ],
)
def test_a_bad_policy_is_a_validation_error_that_names_the_field(members: dict[str, Any], field: str) -> None:
    with pytest.raises(OjsError) as caught:
        check(**members)
    error = caught.value
    assert (error.code, error.info.status, error.type) == ("invalid_retry_policy", 422, "validation_error")
    assert error.details["field"] == f"retry.{field}"
    assert error.details["error_type"] == "validation.retry_policy_invalid"
    assert field in error.message


@given(
    st.builds(
        Retry,
        max_attempts=st.integers(0, 10_000),
        initial_interval_ms=st.integers(1, 1_000),
        max_interval_ms=st.integers(1_000, 10**8),
        backoff_coefficient=st.floats(1, 100),
        jitter=st.booleans(),
        non_retryable_errors=st.lists(st.text(min_size=1, max_size=20), max_size=3).map(tuple),
        on_exhaustion=st.sampled_from(["discard", "dead_letter"]),
        backoff_strategy=st.sampled_from(get_args(Backoff)),
    )
)
def test_the_answered_policy_is_read_back(policy: Retry) -> None:
    assert check(**msgspec.json.decode(retry_raw(policy))) == policy

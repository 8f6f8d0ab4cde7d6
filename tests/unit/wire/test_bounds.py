"""Numbers, durations and moments are bounded where they come in, and what is written needs no bounds (docs/adr/028)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.errors import OjsError
from ojs_engine.base.numbers import EARLIEST_MS, LATEST_MS, LONGEST_MS
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.base.times import format_ms, parse_moment, parse_timestamp
from ojs_engine.domain.rate_limits.policy import read_policy
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.queues.requests import parse_config
from ojs_features.bulk.requests import parse_confirmed
from ojs_features.maintenance.answers import parse_maintenance
from support.tables import each

NOW = 1_790_000_000_000
HUGE = 10**400
Parse = Callable[[dict[str, Any]], Any]


def _push(body: dict[str, Any]) -> Any:
    return parse_enqueue(json.dumps({"type": "t", "args": []} | body).encode(), NOW, DEFAULT_LIMITS)


def _nested(*path: str) -> Callable[[Any], dict[str, Any]]:
    def body(value: Any) -> dict[str, Any]:
        for name in reversed(path):
            value = {name: value}
        return dict(value)

    return body


MOMENTS = ["scheduled_at", "delay_until", "expires_at", "options.expires_at"]
FAR = [
    "+P3661D",
    "P3000000D",
    "+P9999999999999999999999999999D",
    "+PT99999999999999999999999999999999999999S",
    "9999-12-31T23:59:59-12:00",
    "9999-12-31T23:59:60Z",
    "0001-01-01T00:00:00+00:01",
]


@each("far", FAR)
@each("path", MOMENTS)
def test_a_moment_that_nothing_could_write_is_refused(path: str, far: str) -> None:
    with pytest.raises(OjsError) as refused:
        _push(_nested(*path.split("."))(far))
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", path)
    assert "3660 days" in refused.value.message or "9999 of UTC" in refused.value.message


def test_the_last_and_the_longest_are_taken() -> None:
    assert _push({"expires_at": "9999-12-31T23:59:59.999Z"}).expires_at == LATEST_MS
    assert _push({"scheduled_at": "+P3660D"}).scheduled_at == NOW + LONGEST_MS


@given(st.integers(0, 10**9), st.sampled_from("WD"))
def test_every_relative_moment_that_is_taken_can_be_written(number: int, unit: str) -> None:
    try:
        at, absolute = parse_moment(f"+P{number}{unit}", NOW)
    except ValueError:
        assert number * (7 if unit == "W" else 1) > LONGEST_MS // 86_400_000
        return
    assert not absolute
    assert parse_timestamp(format_ms(at)) == at


@given(st.integers())
def test_every_number_is_written_as_a_moment(at: int) -> None:
    assert EARLIEST_MS <= parse_timestamp(format_ms(at)) <= LATEST_MS


def test_moments_beyond_all_years_are_written_as_the_last() -> None:
    assert format_ms(HUGE) == "9999-12-31T23:59:59.999Z"
    assert format_ms(-HUGE) == "0001-01-01T00:00:00.000Z"


def _config(body: dict[str, Any]) -> Any:
    return parse_config(json.dumps(body).encode(), DEFAULT_LIMITS)


def _bulk(body: dict[str, Any]) -> Any:
    return parse_confirmed(json.dumps({"confirm": True, "filter": {}} | body).encode(), "cancel", NOW, DEFAULT_LIMITS)


def _maintenance(body: dict[str, Any]) -> Any:
    return parse_maintenance(json.dumps({"enabled": True} | body).encode(), NOW, DEFAULT_LIMITS)


INTEGERS: list[tuple[Parse, str]] = [
    *((_push, name) for name in ("timeout", "timeout_ms", "visibility_timeout", "visibility_timeout_ms", "total_timeout")),
    *((_push, name) for name in ("enqueue_ttl", "heartbeat_timeout_ms", "grace_period", "result_ttl", "result_size_limit")),
    *((_push, f"retry.{name}") for name in ("initial_interval_ms", "max_interval_ms", "backoff_coefficient", "max_attempts")),
    *((_push, name) for name in ("priority", "options.timeout", "unique.period", "max_attempts")),
    *((_push, f"rate_limit.{name}") for name in ("concurrency", "max_per_second", "period")),
    *((_config, name) for name in ("visibility_timeout", "default_timeout", "dead_letter_ttl", "max_size", "concurrency")),
    *((_config, name) for name in ("retention.completed", "default_retry.initial_interval_ms", "rotation_interval")),
    *((_maintenance, name) for name in ("duration", "estimated_duration")),
    *((_bulk, name) for name in ("filter.older_than", "limit")),
]


@each("value", [HUGE, -HUGE, 10**25, 10**310], ids=["400", "-400", "25", "310"])
@each(("parse", "path"), INTEGERS, ids=[f"{at}-{path}" for at, (_, path) in enumerate(INTEGERS)])
def test_an_integer_of_any_length_is_refused_naming_its_member(parse: Parse, path: str, value: int) -> None:
    body = _nested(*path.split("."))(value)
    if path == "rate_limit.period":
        body["rate_limit"]["rate"] = 5
    with pytest.raises(OjsError) as refused:
        parse(body)
    assert refused.value.code in {"invalid_request", "invalid_retry_policy"}
    assert path.rpartition(".")[2] in refused.value.message


@each("name", ["since", "until", "enqueued_before", "enqueued_after", "older_than"])
@each("far", ["P99999999999999999D", "9999-12-31T23:59:59-12:00"])
def test_filters_take_no_moment_that_the_index_can_not_take(name: str, far: str) -> None:
    with pytest.raises(OjsError) as refused:
        _bulk({"filter": {name: far}, "confirm": True})
    assert refused.value.details["field"] == f"filter.{name}"


def test_a_period_of_any_number_of_digits_is_refused() -> None:
    with pytest.raises(OjsError):
        read_policy({"key": "k", "rate": 1, "period": HUGE}, "rate_limit")

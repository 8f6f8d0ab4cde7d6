from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.queues.requests import parse_queue_limit
from ojs_features.limits.answers import limit_answer, parse_override
from ojs_features.limits.rules import LimitOverride, LimitRecord
from support.tables import each

NOW = 1_800_000_000_000
SOON = "2027-01-15T08:00:01Z"


def override(body: Any) -> LimitOverride:
    return parse_override(msgspec.json.encode(body), NOW, DEFAULT_LIMITS)


@each(
    ("body", "field"),
    [
        ({"concurrency": 1, "duration": "5m"}, "duration"),
        ({"concurrency": 1, "expires": SOON}, "expires"),
        ({"concurrency": -1}, "concurrency"),
        ({"rate": {"limit": 1}}, "rate.period"),
        ({"rate": 5, "period": "soon"}, "period"),
        ({"throttle": {"limit": 1, "period": -1.7e308}}, "throttle.period"),
        ({"concurrency": 1, "expires_at": "2027-01-15T08:00:00Z"}, "expires_at"),
        ({"expires_at": SOON}, "concurrency"),
    ],
)
def test_an_override_that_would_do_something_else_than_it_says_is_refused(body: Any, field: str) -> None:
    with pytest.raises(OjsError) as refused:
        override(body)
    assert refused.value.details["field"] == field


def test_an_override_is_shown_until_it_is_over() -> None:
    record = LimitRecord(name="key.k", override=override({"concurrency": 0, "expires_at": SOON}))
    during = msgspec.to_builtins(limit_answer("k", record, 0, NOW))
    assert (during["concurrency"]["limit"], during["override"]) == (
        0,
        {"concurrency": 0, "expires_at": "2027-01-15T08:00:01.000Z"},
    )
    assert msgspec.to_builtins(limit_answer("k", record, 0, NOW + 1_000)) == {
        "key": "k",
        "on_limit": "wait",
        "waiting_count": 0,
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"concurency": 5}, "concurency"),
        ({"rate_limit": {"limit": 5, "period": "PT1S"}}, "rate_limit"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 1, "on_limit": "drop"}, "on_limit"),
        ({"throttle": {"limit": 5, "period": "PT1S"}}, "throttle"),
    ],
)
def test_a_queues_limit_is_not_lifted_by_mistake(body: Any, field: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_queue_limit(msgspec.json.encode(body), DEFAULT_LIMITS)
    assert refused.value.details["field"] == field

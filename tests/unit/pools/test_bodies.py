from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.members import bare
from ojs_features.pools.bodies import parse_pool, pool_answer
from ojs_features.pools.rules import Pool, Prevention

LIMITS = PayloadLimits()
QUEUES = {"queues": ["a", "b"], "strategy": "strict"}


def pool(**members: Any) -> Pool:
    return parse_pool(msgspec.json.encode(QUEUES | members), "p", LIMITS)


def test_prevention_is_off_unless_enabled_and_has_the_specifications_defaults() -> None:
    assert pool().prevention is None
    assert pool(starvation_prevention={"rotation_interval": "PT5S"}).prevention is None
    found = pool(starvation_prevention={"enabled": True})
    assert found.prevention == Prevention(interval_ms=30_000, ratio=0.05)
    assert msgspec.to_builtins(pool_answer(found))["starvation_prevention"] == {
        "enabled": True,
        "rotation_interval": "PT30S",
        "min_dispatch_ratio": 0.05,
    }
    assert msgspec.to_builtins(pool_answer(pool()))["starvation_prevention"] == {"enabled": False}
    many = pool(queues=[f"q{n}" for n in range(50)], starvation_prevention={"enabled": True})
    assert many.prevention is not None
    assert many.prevention.ratio == 1 / 50, "more can't be guaranteed to each of 50"


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"enabled": 1}, "enabled"),
        ({"enabled": True, "rotation_interval": "PT0.5S"}, "rotation_interval"),
        ({"enabled": True, "rotation_interval": "soon"}, "rotation_interval"),
        ({"enabled": True, "min_dispatch_ratio": 0.51}, "min_dispatch_ratio"),
        ({"enabled": True, "min_dispatch_ratio": -0.1}, "min_dispatch_ratio"),
        ({"enabled": True, "min_dispatch_ratio": True}, "min_dispatch_ratio"),
        ({"interval": 5}, "interval"),
    ],
)
def test_a_bad_member_is_named(sent: dict[str, Any], field: str) -> None:
    with pytest.raises(OjsError) as caught:
        pool(starvation_prevention=sent)
    assert (caught.value.code, caught.value.details["field"]) == ("invalid_request", f"starvation_prevention.{field}")


@pytest.mark.parametrize(("weights", "field"), [({"c": 2}, "weights.c"), ([1], "weights"), ({"a": 0}, "queues.a.weight")])
def test_weights_that_would_mean_nothing_are_refused(weights: Any, field: str) -> None:
    with pytest.raises(OjsError) as caught:
        pool(strategy="weighted", weights=weights)
    assert caught.value.details["field"] == field


@pytest.mark.parametrize("strategy", [None, "strict", "round-robin"])
def test_weights_are_refused_where_no_strategy_heeds_them(strategy: str | None) -> None:
    assert pool(strategy=strategy, weights={"a": 1}).weights == {"a": 1, "b": 1}
    with pytest.raises(OjsError) as caught:
        pool(strategy=strategy, weights={"a": 2})
    assert (caught.value.details["field"], "weighted" in caught.value.message) == ("strategy", True)


def test_a_pool_says_whether_it_is_isolated_and_refuses_what_it_can_not_do() -> None:
    assert bare(pool_answer(pool(isolated=True))).isolated is True
    assert pool(isolated=None, concurrency=None) == pool()
    for member, value, code in (("isolated", 1, "invalid_request"), ("concurrency", 5, "unsupported")):
        with pytest.raises(OjsError) as caught:
            pool(**{member: value})
        assert (caught.value.code, caught.value.details["field"]) == (code, member)

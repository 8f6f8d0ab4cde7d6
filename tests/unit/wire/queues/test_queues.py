from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ojs_api.queues import QueueSettings
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Retention
from ojs_engine.domain.queues.config import NOT_SET, SETTINGS, QueueConfig, not_honoured, patched
from ojs_engine.wire.members import bare
from ojs_engine.wire.queues.requests import parse_config
from ojs_features.all import FEATURES
from ojs_gateway.answers.queues import queue_settings
from support.tables import each

DAY_S = 86_400
BEFORE = QueueConfig(retention=Retention(completed_s=DAY_S, dead_letter_s=2 * DAY_S), dead_letter_max=7)


def configured(body: Any, before: QueueConfig = NOT_SET) -> QueueConfig:
    return patched(before, parse_config(msgspec.json.encode(body), DEFAULT_LIMITS))


@pytest.mark.parametrize(
    "body",
    [
        {"dead_letter": {"retention": {"max_age": "P90D", "max_count": 50}}},
        {"dead_letter_ttl": "P90D", "dead_letter_max_size": 50},
        {"retention": {"dead_letter": "P90D"}, "dead_letter_max_size": 50},
    ],
)
def test_the_retention_of_dead_letters_has_three_spellings(body: Any) -> None:
    config = configured(body)
    assert config == QueueConfig(retention=Retention(dead_letter_s=90 * DAY_S), dead_letter_max=50)
    assert msgspec.to_builtins(bare(queue_settings(config)).dead_letter) == {"retention": {"max_age": "P90D", "max_count": 50}}


@pytest.mark.parametrize(
    ("body", "age_s", "number"),
    [
        ({"dead_letter": {"retention": {"max_count": 0}}}, 2 * DAY_S, 0),
        ({"dead_letter_max_size": None}, 2 * DAY_S, None),
        ({"dead_letter_ttl": None}, None, 7),
        ({"dead_letter": None}, None, None),
        ({"dead_letter": {"retention": None}}, None, None),
        ({"dead_letter": {}}, 2 * DAY_S, 7),
    ],
)
def test_one_limit_is_changed_without_the_rest(body: Any, age_s: int | None, number: int | None) -> None:
    config = configured(body, BEFORE)
    assert (config.retention, config.dead_letter_max) == (Retention(completed_s=DAY_S, dead_letter_s=age_s), number)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"retention": {"discarded": "P3D"}}, Retention(completed_s=DAY_S, discarded_s=3 * DAY_S, dead_letter_s=2 * DAY_S)),
        ({"retention": {"completed": None}}, Retention(dead_letter_s=2 * DAY_S)),
        ({"retention": {}}, BEFORE.retention),
        ({"retention": None}, None),
        ({"retention": "7d"}, Retention(**dict.fromkeys(Retention.__struct_fields__, 7 * DAY_S))),
        ({"retention": {"completed": "P3D"}, "dead_letter_ttl": None}, Retention(completed_s=3 * DAY_S)),
    ],
)
def test_a_retention_is_changed_end_by_end(body: Any, expected: Retention | None) -> None:
    assert configured(body, BEFORE) == replace(BEFORE, retention=expected)


def test_nothing_is_left_of_a_retention_that_is_taken_back() -> None:
    assert configured({"dead_letter": None}, configured({"dead_letter_ttl": "P1D"})) == NOT_SET
    assert msgspec.to_builtins(queue_settings(NOT_SET)) == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"dead_letter": {"queue": "x"}}, "dead_letter.queue"),
        ({"dead_letter": {"retention": {"max": 1}}}, "dead_letter.retention.max"),
        ({"dead_letter": {"retention": {"max_count": -1}}}, "dead_letter.retention.max_count"),
        ({"dead_letter": {"retention": {"max_age": "soon"}}}, "dead_letter.retention.max_age"),
        ({"dead_letter_max_size": "many"}, "dead_letter_max_size"),
    ],
)
def test_a_wrong_limit_is_refused_by_name(body: Any, field: str) -> None:
    with pytest.raises(OjsError) as refusal:
        configured(body)
    assert refusal.value.details["field"] == field


@each(
    ("body", "field", "status"),
    [
        ({"visibility_timeout": 0}, "visibility_timeout", 400),
        ({"retention": {"done": "P1D"}}, "retention.done", 400),
        ({"retention": {"completed": "soon"}}, "retention.completed", 400),
        ({"default_retry": {"max_attempts": -1}}, "default_retry.max_attempts", 422),
        ({"allowed_job_types": "mail.*"}, "allowed_job_types", 400),
        ({"allowed_job_types": ["mail.*", "*.sent"]}, "allowed_job_types[1]", 400),
        ({"allowed": []}, "allowed", 400),
        ({"strict_pause": "yes"}, "strict_pause", 400),
        ({"overflow_policy": "block"}, "overflow_policy", 422),
        ({"producers": ["me"]}, "producers", 422),
        ({"dead_letter_queue": "dead"}, "dead_letter_queue", 422),
        ({"backpressure": {"depth": 1}}, "backpressure.depth", 400),
    ],
)
def test_a_wrong_setting_is_refused_by_name(body: Any, field: str, status: int) -> None:
    with pytest.raises(OjsError) as refusal:
        configured(body)
    error = refusal.value
    assert (error.info.status, error.details["field"]) == (status, field)
    assert field in error.message


def test_max_depth_is_another_name_of_max_size() -> None:
    assert parse_config(b'{"max_depth":5}', DEFAULT_LIMITS) == parse_config(b'{"max_size":5}', DEFAULT_LIMITS)


def test_a_queue_rotates_its_priorities_and_has_no_ratio() -> None:
    def parsed(value: Any) -> Any:
        return parse_config(msgspec.json.encode({"starvation_prevention": value}), DEFAULT_LIMITS)

    assert parsed({"enabled": True, "rotation_interval": "PT10M"}) == {"rotation_ms": 600_000}
    assert parsed({"enabled": False}) == {"rotation_ms": 0}
    assert parsed(None) == {"rotation_ms": None}
    with pytest.raises(OjsError) as caught:
        parsed({"enabled": True, "min_dispatch_ratio": 0.1})
    assert caught.value.code == "unsupported"
    for rotation_ms, expected in ((600_000, {"enabled": True, "rotation_interval": "PT10M"}), (0, {"enabled": False})):
        answer = msgspec.to_builtins(queue_settings(QueueConfig(rotation_ms=rotation_ms)))
        assert answer == {"starvation_prevention": expected}


def test_each_setting_has_a_row_that_says_where_it_is_and_whose() -> None:
    assert [setting.name for setting in SETTINGS] == [*QueueSettings.__struct_encode_fields__]
    assert {setting.attribute for setting in SETTINGS} | {"extensions"} == {*QueueConfig.__struct_fields__}
    assert {setting.feature for setting in SETTINGS} - {""} <= {feature.name for feature in FEATURES}
    assert not_honoured([feature.name for feature in FEATURES]) == ()

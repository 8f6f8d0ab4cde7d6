from __future__ import annotations

from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.members import AnswerWarning, encode
from ojs_features.crons.requests import parse_registration
from support.tables import each

NOW = 1_780_000_000_000


def told(sent: dict[str, Any]) -> list[AnswerWarning]:
    warnings: list[AnswerWarning] = []
    parse_enqueue(encode({"type": "a.b", "args": []} | sent), NOW, DEFAULT_LIMITS, warnings)
    return warnings


@each(
    ("sent", "field", "meant"),
    [
        ({"retry": {"max_atempts": 9}}, "retry.max_atempts", "max_attempts"),
        ({"retry": {"maxAtempts": 9}}, "retry.max_atempts", "max_attempts"),
        ({"rate_limit": {"key": "k", "concurrency": 1, "on_limt": "drop"}}, "rate_limit.on_limt", "on_limit"),
        ({"rate_limit": {"key": "k", "rate": {"limit": 1, "period": "PT1M", "limt": 2}}}, "rate_limit.rate.limt", "limit"),
        ({"rate_limit": {"throttle": {"limit": 1, "period": "PT1M", "peroid": 2}}}, "rate_limit.throttle.peroid", "period"),
        ({"options": {"delay": "PT5S"}}, "options.delay", "delay_until"),
        ({"options": {"priorty": 5}}, "options.priorty", "priority"),
        ({"max_atempts": 5}, "max_atempts", "max_attempts"),
        ({"option": {"queue": "x"}}, "option", "options"),
    ],
)
def test_a_member_without_effect_is_told_with_what_it_may_mean(sent: dict[str, Any], field: str, meant: str) -> None:
    (warning,) = told(sent)
    assert warning.field == field
    assert f"did you mean {meant}?" in warning.message


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"ext_agent": 1, "x_custom": 2, "x-other": 3, "tenant": "acme"},
        {"options": {"ext_agent": {}, "x_custom": 1, "queue": "q", "max_attempts": 2}},
        {"retry": {"maxAttempts": 3, "x_own": 1}},
        {"rate_limit": {"key": "k", "rate": 1, "period": "second"}},
    ],
)
def test_members_of_extensions_and_of_ones_own_are_no_slips(sent: dict[str, Any]) -> None:
    assert told(sent) == []


@each(
    ("sent", "field"),
    [
        ({"retry": {"evil": 1}}, "retry.evil"),
        ({"options": {"retry": {"evilName": None, "max_attempts": 1}}}, "options.retry.evil_name"),
        ({"rate_limit": {"key": "k", "concurrency": 1, "evil": 1}}, "rate_limit.evil"),
        ({"options": {"rate_limit": {"key": "k", "evil": 1}}}, "options.rate_limit.evil"),
        ({"rate_limit": {"key": "k", "rate": {"limit": 1, "period": "PT1M", "evil": 1}}}, "rate_limit.rate.evil"),
        ({"rate_limit": {"throttle": {"limit": 1, "period": "PT1M", "evil": 1}}}, "rate_limit.throttle.evil"),
    ],
)
def test_in_strict_mode_a_policys_member_without_effect_is_refused_unless_it_is_an_extensions(
    sent: dict[str, Any], field: str
) -> None:
    body = encode({"type": "a.b", "args": []} | sent)
    with pytest.raises(OjsError) as caught:
        parse_enqueue(body, NOW, PayloadLimits(strict=True))
    assert (caught.value.code, caught.value.details) == ("unknown_attributes", {"field": field, "attributes": [field]})
    for name in (b"x_evil", b"ext_evil"):
        parse_enqueue(body.replace(b"evilName", b"evil").replace(b"evil", name), NOW, PayloadLimits(strict=True))


def test_an_option_that_resembles_nothing_is_told_all_the_same() -> None:
    assert [warning.field for warning in told({"options": {"colour": "red"}})] == ["options.colour"]


def test_a_rate_limit_whose_limit_is_misspelt_is_refused() -> None:
    with pytest.raises(OjsError, match="did you mean concurrency") as refused:
        told({"rate_limit": {"key": "acme", "concurency": 1}})
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", "rate_limit.concurency")


def test_a_rate_limit_without_a_limit_is_told() -> None:
    assert [warning.field for warning in told({"rate_limit": {"key": "acme"}})] == ["rate_limit"]


def test_warnings_of_one_job_are_bounded() -> None:
    assert len(told({"retry": {f"odd{n}": n for n in range(100)}})) == 20


def test_a_cron_entrys_misspelt_member_is_told() -> None:
    warnings: list[AnswerWarning] = []
    sent = {"name": "n", "cron": "* * * * *", "type": "a", "overlap": "allow", "timezone": "UTC"}
    parse_registration(encode(sent), PayloadLimits(), warnings)
    assert [(one.field, "overlap_policy" in one.message) for one in warnings] == [("overlap", True)]

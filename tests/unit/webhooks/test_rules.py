from __future__ import annotations

import hashlib
import hmac
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.transitions import Moment
from ojs_features.webhooks.records import ROTATION_MS, DeliveryRecord, Subscription, Tally, TargetHealth
from ojs_features.webhooks.rules import DELAYS_MS, Verdict, delivery_id, judge, signature

DAY_MS = 86_400_000


def subscription() -> Subscription:
    return Subscription(id="sub_1", url="https://a.b/", events=("job.*",), secret="first-secret")


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_a_delivery(status: int) -> None:
    assert judge(status, 1) == Verdict("delivered")


@pytest.mark.parametrize("status", [400, 401, 404, 408, 422])
def test_a_client_error_is_not_tried_again(status: int) -> None:
    assert judge(status, 1) == Verdict("dead")


def test_a_target_that_is_gone_says_so_for_all_events() -> None:
    assert judge(410, 1) == Verdict("dead", gone=True)


@pytest.mark.parametrize("status", [0, 301, 302, 429, 500, 503])
def test_what_may_pass_is_tried_eight_times_over_some_forty_hours(status: int) -> None:
    verdicts = [judge(status, attempt) for attempt in range(1, 9)]
    assert [verdict.outcome for verdict in verdicts] == ["again"] * 7 + ["dead"]
    assert sum(verdict.delay_ms for verdict in verdicts) == sum(DELAYS_MS)
    assert 40 * 3_600_000 < sum(DELAYS_MS) < 48 * 3_600_000


def test_a_target_with_too_many_requests_chooses_when_it_is_asked_again_within_a_day() -> None:
    assert judge(429, 1, 7) == Verdict("again", 7_000)
    assert judge(429, 1, 10**9) == Verdict("again", DAY_MS)
    assert judge(503, 1, 7) == Verdict("again", DELAYS_MS[0])


def test_the_signature_is_of_timestamp_and_body_by_each_secret() -> None:
    expected = [hmac.new(secret, b"1708030665.{}", hashlib.sha256).hexdigest() for secret in (b"new-secret", b"old-secret")]
    assert signature(("new-secret", "old-secret"), 1708030665, b"{}") == f"sha256={expected[0]},sha256={expected[1]}"


def test_a_rotated_secret_counts_beside_the_new_one_for_a_day() -> None:
    rotated = subscription().rotated("second-secret", Moment(1_000, "op"))
    assert rotated.secrets(1_000 + ROTATION_MS - 1) == ("second-secret", "first-secret")
    assert rotated.secrets(1_000 + ROTATION_MS) == ("second-secret",)


def test_nothing_of_the_secrets_stays_when_a_subscription_is_deleted() -> None:
    rotated = subscription().rotated("second-secret", Moment(1_000, "op"))
    left = msgspec.json.encode(rotated.ended(Moment(2_000, "op2")))
    assert b"secret-" not in left
    assert b"-secret" not in left
    assert msgspec.json.decode(left)["deleted"] is True


def test_a_delivery_has_one_id_for_all_attempts_and_another_for_another_event_or_subscription() -> None:
    assert delivery_id("sub_1", "evt_1", 7) == delivery_id("sub_1", "evt_1", 7)
    assert len({delivery_id(sub, event, 7) for sub in ("sub_1", "sub_2") for event in ("evt_1", "evt_2")}) == 4


def test_deliveries_of_later_events_have_later_ids() -> None:
    assert delivery_id("sub_2", "evt_9", 1_770_000_000_000) < delivery_id("sub_1", "evt_1", 1_770_000_000_001)


def delivery(**members: Any) -> DeliveryRecord:
    known = {"id": "del_1", "subscription_id": "sub_1", "event_id": "evt_1", "event_type": "job.failed", "event": Raw(b"{}")}
    return DeliveryRecord(**known | {"created_at": 1, "updated_at": 1} | members)


def test_a_delivery_counts_its_attempts_and_knows_its_next() -> None:
    after = delivery().after(500, "", Verdict("again", 30_000), 10).after(0, "refused", Verdict("again", 120_000), 40_010)
    assert (after.status, after.attempts, after.next_at) == ("failing", 2, 160_010)
    assert (after.last_status, after.error) == (0, "refused")
    through = after.after(204, "", Verdict("delivered"), 160_020)
    assert (through.status, through.attempts, through.next_at, through.error) == ("delivered", 3, 0, "")


@pytest.mark.parametrize("status", ["failing", "delivered"])
def test_only_a_dead_delivery_is_tried_again_by_hand(status: str) -> None:
    delivery(status="dead").check_dead()
    with pytest.raises(OjsError) as refused:
        delivery(status=status).check_dead()
    assert refused.value.code == "conflict"


def test_a_subscription_that_a_client_has_paused_is_not_paused_again() -> None:
    paused = subscription().paused_by("gone", Moment(5, "op"))
    assert paused is not None
    assert (paused.active, paused.paused) == (False, "gone")
    assert paused.paused_by("failing", Moment(6, "op")) is None


def tally(*successes: bool, at: int) -> Tally:
    counted = Tally()
    for success in successes:
        counted.count(200 if success else 500, at, success=success)
    return counted


def test_failures_in_a_row_are_counted_across_what_processes_tell() -> None:
    target = TargetHealth().noted(tally(True, False, False, at=10), Moment(20, "a")).noted(tally(False, at=30), Moment(40, "b"))
    assert (target.succeeded, target.failed, target.in_a_row, target.failing_since) == (1, 3, 3, 10)
    target = target.noted(tally(False, True, False, at=50), Moment(60, "c"))
    assert (target.in_a_row, target.failing_since, target.last_status) == (1, 50, 500)
    target = target.noted(tally(True, at=70), Moment(80, "d"))
    assert (target.in_a_row, target.failing_since) == (0, 0)


def test_a_subscription_is_given_up_after_many_failures_and_a_day_without_a_success() -> None:
    many = TargetHealth().noted(tally(*[False] * 50, at=1), Moment(2, "a"))
    few = TargetHealth().noted(tally(*[False] * 49, at=1), Moment(2, "a"))
    assert not many.given_up(0, DAY_MS)
    assert many.given_up(0, DAY_MS + 1)
    assert not few.given_up(0, DAY_MS + 1)


def test_a_change_of_the_subscription_gives_it_as_much_time_again() -> None:
    health = TargetHealth().noted(tally(*[False] * 50, at=1), Moment(2, "a"))
    assert not health.given_up(1_000, DAY_MS + 999)
    assert health.given_up(1_000, DAY_MS + 1_000)

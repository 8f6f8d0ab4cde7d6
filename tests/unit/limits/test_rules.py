from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.config import Rate
from ojs_engine.domain.rate_limits.policy import LimitPolicy, read_policy
from ojs_engine.domain.transitions import Moment
from ojs_features.limits.rules import (
    COMING_MS,
    FreePermits,
    Grant,
    Hit,
    LimitOverride,
    LimitRecord,
    PermitHolder,
    closed,
    effective,
    forgotten,
    granted,
    granting,
    room,
    standing,
    taken,
    withdrawn,
)
from support.tables import each

T0 = 1_000_000_000
EMPTY = LimitRecord(name="key.k")


def holders(number: int, at: int = T0) -> list[PermitHolder]:
    return [PermitHolder(f"j{n}", f"op{n}", n, at) for n in range(number)]


@pytest.mark.parametrize(
    ("sent", "policy"),
    [
        ({"key": "k", "concurrency": 5}, LimitPolicy(key="k", concurrency=5)),
        ({"key": "k", "rate": {"limit": 100, "period": "PT1M"}}, LimitPolicy(key="k", rate=Rate(100, 60_000))),
        ({"key": "k", "rate": 1, "period": "second"}, LimitPolicy(key="k", rate=Rate(1, 1_000))),
        ({"max_per_second": 3}, LimitPolicy(rate=Rate(3, 1_000))),
        ({"key": "k", "throttle": {"limit": 10, "period": 2}}, LimitPolicy(key="k", throttle=Rate(10, 2_000))),
        ({"key": "k", "concurrency": 0, "on_limit": "drop"}, LimitPolicy(key="k", concurrency=0, on_limit="drop")),
    ],
)
def test_every_dialect_of_a_policy_is_read(sent: dict[str, Any], policy: LimitPolicy) -> None:
    assert read_policy(sent, "rate_limit") == policy


@each(
    ("sent", "field"),
    [
        ({"key": "-k"}, "key"),
        ({"key": 7}, "key"),
        ({"key": "k", "concurrency": -1}, "concurrency"),
        ({"key": "k", "concurrency": 1_001}, "concurrency"),
        ({"max_per_second": 0}, "max_per_second"),
        ({"key": "k", "rate": {"limit": 1, "period": "soon"}}, "rate.period"),
        ({"key": "k", "rate": {"limit": 1}}, "rate.period"),
        ({"key": "k", "rate": 5, "period": -1}, "period"),
        ({"key": "k", "throttle": {"period": "PT1S"}}, "throttle.limit"),
        ({"key": "k", "on_limit": "explode"}, "on_limit"),
    ],
)
def test_a_wrong_policy_is_refused_by_name(sent: dict[str, Any], field: str) -> None:
    with pytest.raises(OjsError) as caught:
        read_policy(sent, "rate_limit")
    assert caught.value.details["field"] == f"rate_limit.{field}"


def test_concurrency_leaves_what_holders_do_not_take() -> None:
    policy = LimitPolicy(key="k", concurrency=3)
    record = taken(EMPTY, holders(2), policy, T0, "op")
    assert room(record, policy, T0) == FreePermits(1)
    full = taken(record, holders(3)[2:], policy, T0, "op")
    assert room(full, policy, T0 + 10**6) == FreePermits(0, None, Hit("concurrency", 3, 3))
    assert room(forgotten(full, full.holders[:1], "op"), policy, T0) == FreePermits(1)


def test_a_rate_slides() -> None:
    policy = LimitPolicy(key="k", rate=Rate(3, 10_000))
    record = taken(EMPTY, holders(2), policy, T0, "op")
    record = taken(record, holders(1), policy, T0 + 5_000, "op")
    assert room(record, policy, T0 + 9_999) == FreePermits(0, T0 + 10_000, Hit("rate", 3, 3))
    assert room(record, policy, T0 + 10_000) == FreePermits(2)
    assert record.holders == ()  # a rate needs no permit to be given back


def test_a_clock_that_goes_back_grants_nothing_early() -> None:
    policy = LimitPolicy(key="k", rate=Rate(1, 1_000))
    record = taken(EMPTY, holders(1), policy, T0, "op")
    assert room(record, policy, T0 - 5_000).number == 0
    assert taken(record, holders(1), policy, T0 - 5_000, "op").grants == ((T0, 2),)


def test_a_throttle_spaces_starts() -> None:
    policy = LimitPolicy(key="k", throttle=Rate(4, 1_000))
    assert room(EMPTY, policy, T0) == FreePermits(1)
    record = taken(EMPTY, holders(1), policy, T0, "op")
    assert room(record, policy, T0 + 249) == FreePermits(0, T0 + 250, Hit("throttle", 4, 1))
    assert room(record, policy, T0 + 250) == FreePermits(1)


def test_all_that_is_given_must_be_satisfied() -> None:
    policy = LimitPolicy(key="k", concurrency=3, rate=Rate(3, 10_000), throttle=Rate(1, 1_000))
    record = EMPTY
    for n in range(3):
        assert room(record, policy, T0 + n * 1_000).number == 1
        record = taken(record, holders(n + 1)[n:], policy, T0 + n * 1_000, "op")
        assert room(record, policy, T0 + n * 1_000 + 999).number == 0
    assert room(record, policy, T0 + 3_000).hit == Hit("concurrency", 3, 3)
    ended = forgotten(record, record.holders, "op")
    assert room(ended, policy, T0 + 3_000) == FreePermits(0, T0 + 10_000, Hit("rate", 3, 3))
    assert room(ended, policy, T0 + 10_000).number == 1


def test_nothing_starts_before_the_time_that_a_handler_was_told() -> None:
    policy = LimitPolicy(key="k", concurrency=3)
    record = closed(EMPTY, T0 + 5_000, "op")
    assert record is not None
    assert closed(record, T0 + 4_000, "op") is None
    assert room(record, policy, T0) == FreePermits(0, T0 + 5_000, Hit("dynamic", 0, 0))
    assert room(record, policy, T0 + 5_000) == FreePermits(3)


def test_a_record_stays_small_and_never_grants_too_much() -> None:
    rate = Rate(1_000, 60_000)
    policy = LimitPolicy(key="k", rate=rate)
    record = EMPTY
    starts: list[int] = []
    for n in range(4_000):
        now = T0 + 40 * n
        if room(record, policy, now).number:
            record = taken(record, holders(1), policy, now, "op")
            starts.append(now)
    assert len(record.grants) < 140
    assert all(later - earlier >= 60_000 for earlier, later in zip(starts, starts[1_000:], strict=False))
    assert granted(record, rate, starts[-1])[0] <= 1_000
    assert len(starts) > 2_500


@pytest.mark.parametrize("policy", [LimitPolicy(rate=Rate(10, 60_000)), LimitPolicy(throttle=Rate(10, 60_000))])
def test_permits_that_were_withdrawn_are_as_if_nobody_had_asked(policy: LimitPolicy) -> None:
    record = taken(EMPTY, holders(2), policy, T0, "op1")
    later = taken(record, holders(1), policy, T0 + 5_000, "op2")
    found = withdrawn(later, [], 1, granting(later, policy, T0 + 5_000), "op3")
    assert found == replace(record, op="op3")


def test_a_withdrawn_start_is_found_among_those_that_count_with_it() -> None:
    policy = LimitPolicy(rate=Rate(10, 128_000), concurrency=10)  # starts within a second count as one
    record = taken(EMPTY, holders(1), policy, T0, "op")
    grant = granting(record, policy, T0)
    record = taken(record, [PermitHolder("other", "op9", 9, T0)], policy, T0 + 400, "op")
    found = withdrawn(record, holders(1), 1, grant, "op")
    assert found is not None
    assert (found.grants, [holder.job for holder in found.holders]) == (((T0 + 400, 1),), ["other"])


def test_a_start_that_has_left_its_period_is_not_taken_from_another() -> None:
    policy = LimitPolicy(rate=Rate(10, 1_000))
    old = taken(EMPTY, holders(1), policy, T0, "op")
    new = taken(old, holders(1), policy, T0 + 2_000, "op")
    assert withdrawn(new, [], 1, granting(old, policy, T0), "op") is None
    assert withdrawn(new, [], 1, Grant(T0 + 2_000), "op") is None


def test_an_override_holds_until_it_expires() -> None:
    policy = LimitPolicy(key="k", concurrency=5)
    record = replace(EMPTY, override=LimitOverride(concurrency=0, expires_at=T0 + 1_000))
    assert effective(record, policy, T0).concurrency == 0
    assert room(record, policy, T0) == FreePermits(0, T0 + 1_000, Hit("concurrency", 0, 0))
    assert room(record, policy, T0 + 1_000) == FreePermits(5)


def test_what_has_become_of_a_claim_is_seen_from_its_jobs_record() -> None:
    job = transitions.push(Job(id="j", type="t", args=Raw(b"[]"), state=State.AVAILABLE), Moment(T0, "op1")).job
    holder = PermitHolder("j", "op2", 7, T0)
    assert standing(holder, 7, job, T0 + COMING_MS - 1) == "coming"
    assert standing(holder, 7, job, T0 + COMING_MS) == "stuck"
    active = transitions.claim(job, "w", None, Moment(T0, "op2")).job
    assert standing(holder, 8, active, T0 + 10**9) == "held"
    other = transitions.claim(job, "w", None, Moment(T0, "op3")).job
    assert standing(holder, 8, other, T0) == "over"
    ended = transitions.ack(active, Raw(b"1"), transitions.JobHolder(), Moment(T0, "op4")).job
    assert standing(holder, 9, ended, T0) == "over"
    assert standing(holder, 0, None, T0) == "over"

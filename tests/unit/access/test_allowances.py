"""Limits of a key."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_features.access.allowances import BY_SETTINGS, UNLIMITED, Allowance, KeyLimits
from ojs_features.access.keys import Key, make_key, renewed
from ojs_features.access.known_keys import KnownKeys

TOKEN = "one-key-for-everything-that-is-long-enough"


class Clock:
    """Stands still until a test moves it; in seconds."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def allowance(clock: Clock, limits: KeyLimits) -> Allowance:
    return Allowance("0123456789ab", "shop", limits.filled(UNLIMITED), clock)


def refused(one: Allowance, number: int = 1) -> OjsError:
    with pytest.raises(OjsError) as error:
        one.count_pushes(number)
    return error.value


def test_pushes_are_counted_by_the_second_and_a_refusal_names_limit_and_remedy(clock: Clock) -> None:
    one = allowance(clock, KeyLimits(pushes_per_second=10))
    for _ in range(10):
        one.count_pushes(1)
    error = refused(one)
    assert (error.code, error.info.status, error.number, error.retryable) == ("rate_limited", 429, "OJS-6000", True)
    assert (error.retry_after, error.details) == (1, {"limit": "pushes_per_second", "allowed": 10, "key": "0123456789ab"})
    assert "10 jobs a second" in error.message
    assert "ojs-nats keys limit 0123456789ab --pushes-per-second N" in error.hint
    clock.at += 0.25
    one.count_pushes(1)
    one.count_pushes(1)
    assert refused(one).retry_after == 1
    clock.at += 3_600
    for _ in range(10):  # an hour of silence is no more than a second's worth
        one.count_pushes(1)
    assert refused(one).retry_after == 1


def test_a_batch_counts_its_jobs_and_what_comes_next_waits_for_it(clock: Clock) -> None:
    one = allowance(clock, KeyLimits(pushes_per_second=10))
    one.count_pushes(1_000)
    assert refused(one).retry_after == 100
    clock.at += 99
    assert refused(one).retry_after == 1
    clock.at += 1
    one.count_pushes(1)


def test_places_are_held_until_they_are_given_back_whatever_ends_them(clock: Clock) -> None:
    one = allowance(clock, KeyLimits(streams=2, waiting=1))
    with ExitStack() as held:
        held.enter_context(one.place("streams"))
        with pytest.raises(RuntimeError), one.place("streams"):
            raise RuntimeError
        held.enter_context(one.place("streams"))
        with one.place("waiting"), pytest.raises(OjsError) as error, one.place("streams"):
            pytest.fail("there was no place")
        assert (error.value.code, error.value.details["limit"]) == ("rate_limited", "streams")
        assert "2 streams" in error.value.message
        assert (error.value.retry_after or 0) > 0
        with one.place("waiting"), pytest.raises(OjsError), one.place("waiting"):
            pytest.fail("there was no place")
    with one.place("streams"), one.place("streams"):
        pass


def test_zero_is_any_number_and_what_a_key_leaves_open_is_as_the_gateway_is_set(clock: Clock) -> None:
    free = allowance(clock, UNLIMITED)
    with ExitStack() as held:
        for _ in range(1_000):
            free.count_pushes(1_000)
            held.enter_context(free.place("streams"))
            held.enter_context(free.place("waiting"))
    filled = KeyLimits(streams=0).filled(KeyLimits(pushes_per_second=5, streams=6, waiting=7))
    assert filled == KeyLimits(pushes_per_second=5, streams=0, waiting=7)


def test_all_holders_of_a_key_share_its_allowance_and_no_other_key_does(clock: Clock) -> None:
    first, second = make_key("first", "producer"), make_key("second", "producer")
    known = KnownKeys(lambda: 0, limits=KeyLimits(pushes_per_second=1), clock=clock)
    known.replace([first.key, second.key])
    one, other = (known.check_header(f"{word} {first.token}").allowance for word in ("Bearer", "bearer"))
    assert one is other
    assert isinstance(one, Allowance)
    one.count_pushes(1)
    refused(one)
    theirs = known.check_header(f"Bearer {second.token}").allowance
    assert theirs is not None
    theirs.count_pushes(1)


def test_a_change_of_limits_counts_at_once_and_ends_nothing(clock: Clock) -> None:
    new = make_key("shop", "producer", limits=KeyLimits(pushes_per_second=1))
    known = KnownKeys(lambda: 0, clock=clock)
    known.replace([new.key])
    admission = known.check_header(f"Bearer {new.token}")
    assert isinstance(admission.allowance, Allowance)
    admission.allowance.count_pushes(1)
    refused(admission.allowance)

    def changed(limits: KeyLimits) -> Key:
        return replace(new.key, limits=limits, op="other")

    known.replace([changed(KeyLimits(pushes_per_second=100))])
    assert (admission.over, known.of_header(f"Bearer {new.token}")) == (False, admission)
    clock.at += 0.1
    admission.allowance.count_pushes(9)
    known.replace([changed(BY_SETTINGS)])
    admission.allowance.count_pushes(1_000_000)


def test_a_key_that_ended_leaves_nothing_behind(clock: Clock) -> None:
    new = make_key("shop", "producer", limits=KeyLimits(streams=1))
    known = KnownKeys(lambda: 5, clock=clock)
    known.replace([new.key])
    before = known.check_header(f"Bearer {new.token}").allowance
    assert before is not None
    with before.place("streams"):
        known.replace([replace(new.key, revoked_at=5)])
    known.replace([new.key])
    assert known.check_header(f"Bearer {new.token}").allowance is not before


def test_the_environments_key_has_no_limits_and_a_renewed_one_those_of_before(clock: Clock) -> None:
    known = KnownKeys(lambda: 0, TOKEN, limits=KeyLimits(pushes_per_second=1, streams=1, waiting=1), clock=clock)
    found = known.check_header(f"Bearer {TOKEN}").allowance
    assert isinstance(found, Allowance)
    assert found.limits == UNLIMITED
    new = make_key("shop", "producer", limits=KeyLimits(waiting=3))
    assert renewed(new.key, 0).key.limits == KeyLimits(waiting=3)

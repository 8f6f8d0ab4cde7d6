from __future__ import annotations

from math import inf

import pytest
from msgspec import UNSET

from ojs_features.audit.entry import SEVERAL, Detail, Entry
from ojs_features.audit.repeats import Acts, Owner, Repeats

ADA = Owner("ada")
BOB = Owner("bob")


def entry(at: int, principal: str = "ada", ip: str = "10.0.0.1", operation: str = "createJob", **more: str) -> Entry:
    return Entry(
        timestamp=f"2026-01-01T00:00:{at:02d}Z",
        event_type=more.get("event_type", "auth.login_failure"),
        principal=principal,
        source_ip=ip,
        correlation_id=f"req_{at}",
        outcome="failure",
        detail=Detail(operation=operation, principal_id=principal, target={"queue": "mail"}),
    )


def stranger(number: int) -> Owner:
    return Owner(f"10.0.{number // 256}.{number % 256}", stranger=True)


def test_the_first_act_is_told_at_once_and_the_others_as_one_when_the_window_is_over() -> None:
    repeats = Repeats(window_s=60)
    assert [repeats.is_first(ADA, "x", entry(at), at) for at in (0, 1, 2, 3)] == [True, False, False, False]
    assert repeats.next_end == 60
    assert repeats.over(59.9) == []
    [told] = repeats.over(60)
    assert (told.timestamp, told.correlation_id) == ("2026-01-01T00:00:03Z", "req_3")
    assert (told.detail.count, told.detail.first_at) == (3, "2026-01-01T00:00:00Z")
    assert (told.detail.operations, told.detail.addresses) == (UNSET, UNSET)
    assert repeats.over(inf) == []
    assert repeats.is_first(ADA, "x", entry(61), 61)


def test_an_act_that_is_not_repeated_is_told_once() -> None:
    repeats = Repeats(window_s=60)
    assert repeats.is_first(ADA, "x", entry(0), 0)
    assert repeats.over(inf) == []


def test_different_acts_have_windows_of_their_own() -> None:
    repeats = Repeats(window_s=60)
    assert repeats.is_first(ADA, "x", entry(0), 0)
    assert repeats.is_first(BOB, "x", entry(30, "bob"), 30)
    repeats.is_first(BOB, "x", entry(31, "bob"), 31)
    assert repeats.over(60) == []
    [told] = repeats.over(90)
    assert (told.principal, told.detail.count) == ("bob", 1)


@pytest.mark.parametrize("flood", [40, 10_000])
def test_a_flood_of_one_is_a_bounded_number_of_entries_and_hides_nobody_else(flood: int) -> None:
    """A scanner without a key asks for everything: what a key is refused stands beside it, by name and operation."""
    repeats = Repeats(window_s=60, most=30)
    scanner = stranger(1)
    scan = [entry(0, "unknown", "10.0.0.9", f"operation{number}") for number in range(flood)]
    assert sum(repeats.is_first(scanner, number, one, 0) for number, one in enumerate(scan)) == 30
    for number, operation in enumerate(("purgeQueue", "createKey")):
        assert repeats.is_first(Owner("thief"), number, entry(1, "thief", operation=operation), 1)
    assert repeats.is_first(stranger(2), 0, entry(1, "unknown", "10.0.0.2"), 1)
    [told] = repeats.over(60)
    assert (told.principal, told.source_ip, told.detail.count) == ("unknown", "10.0.0.9", flood - 30)
    assert (told.detail.operation, told.detail.target) == (SEVERAL, {})
    assert told.detail.operations == [f"operation{number}" for number in range(30, min(flood, 50))]


def test_beyond_its_entries_a_principal_has_one_for_each_type_of_event_by_its_name() -> None:
    repeats = Repeats(window_s=60, most=1)
    denied = "auth.permission_denied"
    assert repeats.is_first(ADA, 0, entry(0), 0)
    for number in range(3):
        assert not repeats.is_first(ADA, f"a{number}", entry(number, operation=f"a{number}"), 1)
    assert not repeats.is_first(ADA, "b", entry(4, ip="10.0.0.2", operation="purgeQueue", event_type=denied), 2)
    assert not repeats.is_first(ADA, "b", entry(5, ip="10.0.0.3", operation="purgeQueue", event_type=denied), 2)
    failures, denials = repeats.over(inf)
    assert (failures.event_type, failures.detail.operations) == ("auth.login_failure", ["a0", "a1", "a2"])
    assert (denials.principal, denials.event_type, denials.detail.operation) == ("ada", denied, "purgeQueue")
    assert (denials.source_ip, denials.detail.addresses, denials.detail.count) == (SEVERAL, ["10.0.0.2", "10.0.0.3"], 2)


def test_strangers_from_very_many_addresses_share_entries_and_leave_keys_theirs() -> None:
    repeats = Repeats(window_s=60, strangers=100)
    asked = [repeats.is_first(stranger(number), "x", entry(0, "unknown", f"ip{number}"), 0) for number in range(10_000)]
    assert sum(asked) == 100
    assert repeats.is_first(ADA, "x", entry(1), 1)
    [told] = repeats.over(inf)
    assert (told.source_ip, told.detail.count, told.detail.target) == (SEVERAL, 9_900, {})
    assert told.detail.addresses == [f"ip{number}" for number in range(100, 120)]
    assert repeats.is_first(stranger(20_000), "x", entry(2), 61)


def test_the_first_acts_on_a_target_have_entries_of_their_own_and_the_others_are_counted() -> None:
    acts = Acts(window_s=60, alone=3)
    assert [acts.is_first(("ada", "mail"), entry(at), at) for at in range(5)] == [True, True, True, False, False]
    assert acts.is_first(("ada", "sms"), entry(5), 5)
    [told] = acts.over(60)
    assert (told.detail.count, told.detail.first_at, told.correlation_id) == (2, "2026-01-01T00:00:00Z", "req_4")


def test_very_many_different_acts_are_all_written() -> None:
    acts = Acts(window_s=60, alone=1, most=10)
    assert all(acts.is_first(number, entry(0), 0) for number in range(1_000))
    assert acts.over(inf) == []
    assert acts.next_end is None

from __future__ import annotations

from math import inf

import pytest
from msgspec import UNSET

from ojs_core.audit.entry import SEVERAL, Detail, Entry
from ojs_core.audit.repeats import Repeats


def entry(at: int, principal: str = "ada", ip: str = "10.0.0.1") -> Entry:
    return Entry(
        timestamp=f"2026-01-01T00:00:{at:02d}Z",
        event_type="auth.login_failure",
        principal=principal,
        source_ip=ip,
        correlation_id=f"req_{at}",
        outcome="failure",
        detail=Detail(operation="createJob", principal_id=principal, target={"queue": "mail"}),
    )


def test_the_first_act_is_told_at_once_and_the_others_as_one_when_the_window_is_over() -> None:
    repeats = Repeats(window_s=60)
    assert [repeats.is_first("ada", entry(at), at) for at in (0, 1, 2, 3)] == [True, False, False, False]
    assert repeats.next_end == 60
    assert repeats.over(59.9) == []
    [told] = repeats.over(60)
    assert (told.timestamp, told.correlation_id) == ("2026-01-01T00:00:03Z", "req_3")
    assert (told.detail.count, told.detail.first_at) == (3, "2026-01-01T00:00:00Z")
    assert repeats.over(inf) == []
    assert repeats.is_first("ada", entry(61), 61)


def test_an_act_that_is_not_repeated_is_told_once() -> None:
    repeats = Repeats(window_s=60)
    assert repeats.is_first("ada", entry(0), 0)
    assert repeats.over(inf) == []


def test_different_acts_have_windows_of_their_own() -> None:
    repeats = Repeats(window_s=60)
    assert repeats.is_first("ada", entry(0), 0)
    assert repeats.is_first("bob", entry(30, "bob"), 30)
    repeats.is_first("bob", entry(31, "bob"), 31)
    assert repeats.over(60) == []
    [told] = repeats.over(90)
    assert (told.principal, told.detail.count) == ("bob", 1)


@pytest.mark.parametrize("flood", [40, 10_000])
def test_a_flood_of_different_acts_leaves_a_bounded_number_of_entries(flood: int) -> None:
    repeats = Repeats(window_s=60, most=30)
    at_once = sum(repeats.is_first(f"{number}", entry(0, f"p{number}", f"10.0.0.{number}"), 0) for number in range(flood))
    assert at_once == 30
    [told] = repeats.over(60)
    assert (told.principal, told.source_ip, told.detail.count) == (SEVERAL, SEVERAL, flood - 30)
    assert (told.detail.principal_id, told.detail.target) == (UNSET, {})

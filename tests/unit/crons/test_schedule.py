from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_features.crons.schedule import BadZone, Gap, check_zone, coming, following
from support.examples import costly
from support.tables import each

MINUTE = 60_000


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def shown(at: int, zone: str) -> str:
    return datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).isoformat()


def ticks(expression: str, zone: str, start: str, number: int) -> list[str]:
    at = ms(start)
    found = []
    for _ in range(number):
        at = following(expression, zone, 0, at).at
        found.append(shown(at, zone))
    return found


@pytest.mark.parametrize("name", ["UTC", "America/New_York", "Asia/Kolkata", "America/Argentina/Buenos_Aires", "Etc/UTC"])
def test_a_zone_of_the_database_is_accepted(name: str) -> None:
    assert check_zone(name) == name


@each(
    "name",
    ["", "EST", "PST", "CST", "CET", "EST5EDT", "GMT", "utc", "Japan", "+05:00", "-08:00", "UTC+5", "Europe/Atlantis",
     "europe/berlin", "../UTC", "/etc/passwd", "right/UTC", "posix/Europe/Berlin", "Europe/", "Europe", "Europe/Berlin\0"],
)  # fmt: skip
def test_offsets_abbreviations_and_all_else_are_refused(name: str) -> None:
    with pytest.raises(BadZone):
        check_zone(name)


def test_a_tick_is_strictly_later() -> None:
    at = ms("2026-03-01T09:00:00+00:00")
    assert following("0 9 * * *", "UTC", 0, at - 1).at == at
    assert following("0 9 * * *", "UTC", 0, at).at == at + 86_400_000
    assert following("0 9 * * *", "UTC", 0, at + 1).at == at + 86_400_000


@each(
    ("expression", "zone", "start", "expected"),
    [
        ("0 9 * * *", "Asia/Tokyo", "2026-01-31T12:00:00+00:00", "2026-02-01T09:00:00+09:00"),
        ("0 9 * * *", "Asia/Kolkata", "2026-01-31T12:00:00+00:00", "2026-02-01T09:00:00+05:30"),
        ("*/20 * * * * *", "UTC", "2026-01-31T23:59:45+00:00", "2026-02-01T00:00:00+00:00"),
        ("0 0 * * 7", "UTC", "2026-03-03T00:00:00+00:00", "2026-03-08T00:00:00+00:00"),
        ("0 0 * * 5-7", "UTC", "2026-03-07T12:00:00+00:00", "2026-03-08T00:00:00+00:00"),
        ("0 0 L * *", "UTC", "2028-02-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("0 0 15W * *", "UTC", "2026-03-01T00:00:00+00:00", "2026-03-16T00:00:00+00:00"),  # a Sunday
        ("0 0 1W * *", "UTC", "2026-07-31T12:00:00+00:00", "2026-08-03T00:00:00+00:00"),  # a Saturday: stays in the month
        ("0 0 * * 5#3", "UTC", "2026-03-01T00:00:00+00:00", "2026-03-20T00:00:00+00:00"),
        ("0 0 * * 5L", "UTC", "2026-03-01T00:00:00+00:00", "2026-03-27T00:00:00+00:00"),
        ("0 0 13 * FRI", "UTC", "2026-03-01T00:00:00+00:00", "2026-03-06T00:00:00+00:00"),  # either, as POSIX says
        ("0 0 15 * 1#1", "UTC", "2026-03-03T00:00:00+00:00", "2026-03-15T00:00:00+00:00"),
        ("0 0 15 * 5L", "UTC", "2026-03-16T00:00:00+00:00", "2026-03-27T00:00:00+00:00"),
        ("0 0 L * 1#1", "UTC", "2026-03-03T00:00:00+00:00", "2026-03-31T00:00:00+00:00"),
        ("0 0 29 2 1#5", "UTC", "2026-03-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("0 0 15W * 1", "UTC", "2026-12-14T12:00:00+00:00", "2026-12-15T00:00:00+00:00"),
        ("0 0 15W * 1", "UTC", "2026-12-15T12:00:00+00:00", "2026-12-21T00:00:00+00:00"),
        ("0 0 31W * *", "UTC", "2026-03-31T12:00:00+00:00", "2026-05-29T00:00:00+00:00"),  # April has no 31st
        ("0 0 30W */2 *", "UTC", "2026-01-31T00:00:00+00:00", "2026-03-30T00:00:00+00:00"),
        ("0 0 29W 2 *", "UTC", "2026-01-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("0 0 31 * *", "UTC", "2026-02-01T00:00:00+00:00", "2026-03-31T00:00:00+00:00"),
        ("0 0 29 2 *", "UTC", "2097-03-01T00:00:00+00:00", "2104-02-29T00:00:00+00:00"),
    ],
)
def test_the_next_tick(expression: str, zone: str, start: str, expected: str) -> None:
    assert ticks(expression, zone, start, 1) == [expected]


# Clocks put forward: what doesn't exist doesn't fire, and is told


@each(
    ("expression", "zone", "start", "expected", "gap_at", "tick", "count"),
    [
        ("30 2 * * *", "America/New_York", "2026-03-07T02:30:00-05:00", "2026-03-09T02:30:00-04:00",
         "2026-03-08T02:00:00-05:00", "2026-03-08T02:30:00-05:00", 1),
        ("*/15 * * * *", "America/New_York", "2026-03-08T01:45:00-05:00", "2026-03-08T03:00:00-04:00",
         "2026-03-08T02:00:00-05:00", "2026-03-08T02:00:00-05:00", 4),
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00",
         "2026-03-29T02:00:00+01:00", "2026-03-29T02:30:00+01:00", 1),
        ("15 2 * * *", "Australia/Sydney", "2026-10-03T02:15:00+10:00", "2026-10-05T02:15:00+11:00",
         "2026-10-04T02:00:00+10:00", "2026-10-04T02:15:00+10:00", 1),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T00:00:00-03:00", "2018-11-05T00:00:00-02:00",
         "2018-11-04T00:00:00-03:00", "2018-11-04T00:00:00-03:00", 1),
        ("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T02:10:00+10:30", "2026-10-05T02:10:00+11:00",
         "2026-10-04T02:00:00+10:30", "2026-10-04T02:10:00+10:30", 1),
        ("30 2 * * *", "Africa/Casablanca", "2026-03-21T02:30:00+00:00", "2026-03-23T02:30:00+01:00",
         "2026-03-22T02:00:00+00:00", "2026-03-22T02:30:00+00:00", 1),
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00",
         "2011-12-30T00:00:00-10:00", "2011-12-30T12:00:00-10:00", 1),
    ],
)  # fmt: skip
def test_a_time_that_does_not_exist_is_skipped_and_told(
    expression: str, zone: str, start: str, expected: str, gap_at: str, tick: str, count: int
) -> None:
    found = following(expression, zone, 0, ms(start))
    assert shown(found.at, zone) == expected
    assert found.gap == Gap(ms(gap_at), ms(tick), count)


# Clocks put back: once, the first time


@pytest.mark.parametrize(
    ("expression", "zone", "start", "expected"),
    [
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00:00-04:00",
         ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00+02:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("30 2 * * *", "Australia/Sydney", "2026-04-04T12:00:00+11:00",
         ["2026-04-05T02:30:00+11:00", "2026-04-06T02:30:00+10:00"]),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00-02:00",
         ["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"]),
        ("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00+01:00",
         ["2026-02-15T02:30:00+01:00", "2026-02-16T02:30:00+00:00"]),
        ("*/30 * * * *", "America/New_York", "2026-11-01T00:45:00-04:00",
         ["2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T02:00:00-05:00"]),
        ("0 * * * *", "America/New_York", "2026-11-01T01:30:00-05:00", ["2026-11-01T02:00:00-05:00"]),
    ],
)  # fmt: skip
def test_a_time_that_comes_twice_fires_the_first_time(expression: str, zone: str, start: str, expected: list[str]) -> None:
    assert ticks(expression, zone, start, len(expected)) == expected


def test_a_zone_follows_the_rules_of_its_time() -> None:
    before = ticks("0 12 * * *", "Europe/Moscow", "2014-10-24T18:00:00+04:00", 3)
    assert before == ["2014-10-25T12:00:00+04:00", "2014-10-26T12:00:00+03:00", "2014-10-27T12:00:00+03:00"]
    assert ticks("0 12 * * *", "America/Sao_Paulo", "2026-11-01T18:00:00+00:00", 1) == ["2026-11-02T12:00:00-03:00"]


# @every


def test_an_interval_counts_from_its_anchor_and_keeps_its_phase() -> None:
    anchor = 1_000_123
    assert following("@every 30s", "UTC", anchor, anchor).at == anchor + 30_000
    assert following("@every 30s", "UTC", anchor, anchor + 29_999).at == anchor + 30_000
    assert following("@every 30s", "UTC", anchor, anchor + 30_000).at == anchor + 60_000
    assert following("@every 30s", "UTC", anchor, anchor + 100_000).at == anchor + 120_000
    assert following("@every 30s", "UTC", anchor, anchor - 5_000).at == anchor + 30_000


# Against a model: every minute that passes, look at the clock on the wall

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Europe/Dublin",
]
CHANGES = [
    f"{day}T00:00:00Z"
    for day in [
        "2026-03-08",
        "2026-11-01",
        "2026-03-29",
        "2026-10-25",
        "2026-04-04",
        "2026-10-03",
        "2018-11-04",
        "2018-02-17",
        "2021-09-21",
        "2026-02-15",
        "2026-03-22",
    ]
]
"""Days on which some of these zones change their clocks."""


def field(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    every = frozenset(range(low, high + 1))
    some = st.sets(st.integers(low, high), min_size=1, max_size=4)
    steps = st.integers(1, high)
    return st.one_of(
        st.just(("*", every)),
        some.map(lambda values: (",".join(map(str, sorted(values))), frozenset(values))),
        steps.map(lambda step: (f"*/{step}", frozenset(range(low, high + 1, step)))),
        st.tuples(st.integers(low, high), st.integers(low, high)).map(
            lambda ends: (f"{min(ends)}-{max(ends)}", frozenset(range(min(ends), max(ends) + 1)))
        ),
    )


@given(
    zone=st.sampled_from(ZONES),
    minute=field(0, 59),
    hour=field(0, 23),
    day=st.sampled_from([("*", frozenset(range(1, 32))), ("1-25", frozenset(range(1, 26)))]),
    start=st.one_of(
        st.integers(ms("2017-01-01T00:00:00Z"), ms("2035-01-01T00:00:00Z")),
        st.builds(lambda day, minutes: ms(day) + minutes * MINUTE, st.sampled_from(CHANGES), st.integers(-600, 1_800)),
    ),
)
def test_the_next_tick_is_the_models(
    zone: str,
    minute: tuple[str, frozenset[int]],
    hour: tuple[str, frozenset[int]],
    day: tuple[str, frozenset[int]],
    start: int,
) -> None:
    found = following(f"{minute[0]} {hour[0]} {day[0]} * *", zone, 0, start).at
    assert found > start

    there = ZoneInfo(zone)
    at = start // MINUTE * MINUTE + MINUTE
    for _ in range(2 * 1_440):
        wall = datetime.fromtimestamp(at // 1000, there)
        if wall.fold == 0 and wall.minute in minute[1] and wall.hour in hour[1] and wall.day in day[1] and wall.second == 0:
            assert found == at, (shown(found, zone), shown(at, zone))
            return
        at += MINUTE
    assert found >= at


@costly
@given(zone=st.sampled_from(ZONES), start=st.integers(1_767_225_600_000, 1_830_297_600_000), step=st.integers(1, 59))
def test_ticks_grow_and_gaps_lie_between_them(zone: str, start: int, step: int) -> None:
    at = start
    for _ in range(50):
        found = following(f"*/{step} */3 * * *", zone, 0, at)
        assert found.at > at
        assert found.gap is None or at < found.gap.at <= found.at
        at = found.at


def test_the_runs_to_come_follow_each_other_and_count_from_the_anchor() -> None:
    assert coming("@every 1m", "UTC", 0, 30_000, 3) == [MINUTE, 2 * MINUTE, 3 * MINUTE]
    assert coming("0 0 29 2 *", "UTC", 0, 0, 2) == [68_169_600_000, 194_400_000_000]

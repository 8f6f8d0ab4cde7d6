from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.times import format_duration, format_ms, parse_duration_ms, parse_moment, parse_timestamp
from support.tables import each

YEAR_1 = -62_135_596_800_000
YEAR_9999 = 253_402_300_799_999
DAY = 86_400_000
OUT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")


@given(st.integers(YEAR_1, YEAR_9999))
def test_what_is_written_is_read_back(at: int) -> None:
    text = format_ms(at)
    assert OUT.fullmatch(text)
    assert parse_timestamp(text) == at


@given(st.integers(YEAR_1 + DAY, YEAR_9999 - DAY), st.integers(-1439, 1439))
def test_every_offset_names_the_same_moment(at: int, offset_minutes: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    text = moment.astimezone(timezone(timedelta(minutes=offset_minutes))).isoformat()
    assert parse_timestamp(text) == at


@each(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1970-01-01T00:00:00.1Z", 100),
        ("1970-01-01T00:00:00.0019999Z", 1),
        ("2016-12-31T23:59:60Z", 1_483_228_800_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("2026-02-12T10:30:00.123456789+05:30", 1_770_872_400_123),
    ],
)
def test_rfc_3339_in_its_variants(text: str, expected: int) -> None:
    assert parse_timestamp(text) == expected


@each(
    "text",
    [
        "",
        "2026-02-12",
        "2026-02-12T10:30:00",
        "2026-02-12 10:30:00Z",
        "2026-02-30T10:30:00Z",
        "2026-13-01T10:30:00Z",
        "2026-02-12T24:00:00Z",
        "2026-02-12T10:30:00+0100",
        "2026-02-12T10:30:00+24:00",
        "2026-02-12T10:30:00+01:60",
        "0000-01-01T00:00:00Z",
        "2026-02-12T10:30:00Z\n",
        "\uff12026-02-12T10:30:00Z",
        "2026-02-12T10:30:00." + "0" * 100 + "Z",
    ],
)
def test_other_texts_are_no_timestamps(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_timestamp(text)


@given(st.integers(0, 10**13))
def test_durations_are_read_back(ms: int) -> None:
    assert parse_duration_ms(format_duration(ms)) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "PT0S"),
        (1_000, "PT1S"),
        (1_500, "PT1.5S"),
        (300_000, "PT5M"),
        (90_500, "PT1M30.5S"),
        (86_400_000, "PT24H"),
        (1, "PT0.001S"),
    ],
)
def test_durations_are_written_short(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@each(
    ("text", "ms"),
    [
        ("PT1S", 1_000),
        ("PT0.5S", 500),
        ("PT0,5S", 500),
        ("P1D", 86_400_000),
        ("P2W", 1_209_600_000),
        ("P1DT2H3M4S", 93_784_000),
        ("PT300S", 300_000),
        ("PT1.5M", 90_000),
        ("1s", 1_000),
        ("500ms", 500),
        ("1h30m", 5_400_000),
        ("1.5h", 5_400_000),
        ("300s", 300_000),
        ("1500us", 2),
        ("2000000ns", 2),
    ],
)
def test_both_ways_of_writing_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@each("text", ["", "P", "PT", "P1DT", "P1Y", "P1M", "-PT1S", "PT1", "1", "s", "1y", "1s ", "PT1S1M", "PT" + "9" * 80 + "S"])
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ms(text)


def test_a_moment_is_a_timestamp_or_counts_from_now() -> None:
    assert parse_moment("+PT2S", 1_000_000) == (1_002_000, False)
    assert parse_moment("PT2S", 1_000_000) == (1_002_000, False)
    assert parse_moment("1970-01-01T00:00:01Z", 1_000_000) == (1_000, True)

"""Day fields as cron daemons read them, and remarks about schedules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

from ojs_features.crons.expression import Fields, parse_expression
from ojs_features.crons.remarks import remarks
from support.tables import each

FIRST, LAST = datetime(2026, 1, 1), datetime(2028, 1, 1)  # noqa: DTZ001  # wall clocks
AFTER = round(datetime(2026, 11, 28, tzinfo=UTC).timestamp()) * 1_000
EITHER = "both day fields are restricted, so it fires on the days of either"
BOTH = "a day field begins with *, so it fires only on days that fit both day fields"


def fits(day: int, field: str, low: int, high: int) -> bool:
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = ("*" if span == "*" else span).partition("-")
        start, end = (low, high) if first == "*" else (int(first), int(last or (high if step else first)))
        if day in range(start, end + 1, int(step or 1)):
            return True
    return False


def vixie(days: str, weekdays: str) -> list[datetime]:
    """Return the days of two years on which crontab fires: its rule, written down from its manual."""
    found = []
    day = FIRST
    while day < LAST:
        of_month = fits(day.day, days, 1, 31)
        of_week = fits(day.isoweekday() % 7, weekdays, 0, 6)
        star = days.startswith("*") or weekdays.startswith("*")
        if (of_month and of_week) if star else (of_month or of_week):
            found.append(day)
        day += timedelta(days=1)
    return found


@each(
    "days, weekdays",
    [
        ("*", "1"),
        ("*/1", "1"),
        ("*,10", "1"),
        ("*/2", "1"),
        ("*/2", "*/2"),
        ("1,15", "*/2"),
        ("1,15", "*"),
        ("10,*", "1"),
        ("1,15", "1"),
        ("13", "5"),
        ("1-7", "1-5"),
        ("*/10", "*"),
        ("1-31/3", "0"),
    ],
)
def test_days_are_those_of_crontab(days: str, weekdays: str) -> None:
    fields = parse_expression(f"0 0 {days} * {weekdays}")
    assert isinstance(fields, Fields)
    assert list(takewhile(lambda time: time < LAST, fields.times(FIRST - timedelta(seconds=1)))) == vixie(days, weekdays)


@each(
    "expression, zone, said",
    [
        ("0 0 * * *", "UTC", []),
        ("0 0 */1 * 1", "UTC", []),
        ("0 0 1,15 * 1", "UTC", [EITHER]),
        ("0 0 */2 * 1", "UTC", [BOTH]),
        ("@every 1h", "Europe/Berlin", []),
        (
            "30 2 * * *",
            "Europe/Berlin",
            ["clocks in Europe/Berlin are put forward on 2027-03-28, and 1 run is left out then"],
        ),
        (
            "*/15 * * * *",
            "Europe/Berlin",
            ["clocks in Europe/Berlin are put forward on 2027-03-28, and 4 runs are left out then"],
        ),
        ("30 2 1 * *", "Europe/Berlin", []),
        ("30 3 * * *", "Europe/Berlin", []),
        ("@daily", "Africa/Cairo", ["clocks in Africa/Cairo are put forward on 2027-04-30, and 1 run is left out then"]),
    ],
)
def test_remarks_name_what_may_surprise(expression: str, zone: str, said: list[str]) -> None:
    assert remarks(expression, zone, AFTER) == said

"""Cron expressions (ojs-cron §3, §4): five or six fields, the aliases, and `@every`.

What a field may hold is checked here, so that a refusal names the field and the value; when an expression matches is
croniter's business. It gets wall-clock times without a zone, see `ojs_features.crons.schedule`. Of expressions that
restrict both day fields, or that mix `L`, `W` and `#` with other days, croniter reads some differently from POSIX and
some not at all: it gets each way of naming a day by itself. As in Vixie's cron and its successors, a day field that
begins with `*` (`*/2`) restricts the other one instead of adding days to it.
"""

from __future__ import annotations

import calendar
import heapq
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import product
from typing import Final, Literal, NamedTuple

from croniter import croniter
from croniter.croniter import CroniterBadDateError, CroniterError

from ojs_engine.base.fields import shown
from ojs_engine.base.numbers import whole_number

MAX_CHARS: Final = 255
_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = re.compile(r"@every\s+((?:\d+(?:\.\d+)?(?:ms|s|m|h))+)", re.ASCII)
_EVERY_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_SHORTEST_MS: Final = 1_000
_LONGEST_MS: Final = 366 * 86_400_000
_ITEM: Final = re.compile(r"(?:\*|([0-9a-z]+)(?:-([0-9a-z]+))?)(?:/([0-9]+))?", re.ASCII)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_SUNDAY: Final = 7
_SPECIAL: Final = re.compile("[lw#]")
_LEAP_YEAR: Final = 2024


class BadExpression(ValueError):
    """An expression that can't be used; the message says which part of it and why."""


class Every(NamedTuple):
    """`@every`: an interval in milliseconds, counted from when the entry was registered."""

    interval_ms: int


class Fields(NamedTuple):
    """A calendar expression as croniter reads it: six fields, seconds first, without names.

    It matches where one of `alternatives` does. `days` says what two restricted day fields mean together.
    """

    alternatives: tuple[str, ...]
    days: Literal["either", "both", "one"] = "one"

    def times(self, after: datetime) -> Iterator[datetime]:
        """When it matches, in order, later than `after`; wall-clock times without a zone."""
        last: datetime | None = None
        for time in heapq.merge(*(_times(text, after) for text in self.alternatives)):
            if time != last:
                yield time
            last = time


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]


_SECOND: Final = _Field("second", 0, 59, {})
_DAY_OF_MONTH: Final = _Field("day of month", 1, 31, {})
_DAY_OF_WEEK: Final = _Field("day of week", 0, _SUNDAY, {name: number for number, name in enumerate(_DAYS)})
_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _DAY_OF_MONTH,
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _DAY_OF_WEEK,
)


def parse_expression(text: str) -> Every | Fields:
    """Check an expression. Raises BadExpression."""
    if len(text) > MAX_CHARS:
        raise BadExpression(f"it has {len(text)} characters; the limit is {MAX_CHARS}")
    stripped = text.strip(" \t")
    if not stripped:
        raise BadExpression("it is empty")
    if stripped.startswith("@"):
        alias = _ALIASES.get(stripped.lower())
        return _every(stripped) if alias is None else Fields((f"0 {alias}",))
    tokens = stripped.lower().split()
    if not 5 <= len(tokens) <= 6:
        raise BadExpression(
            f"it has {len(tokens)} field{'' if len(tokens) == 1 else 's'}; there are 5 (minute, hour, day of month, month, "
            "day of week), or 6 with seconds before them"
        )
    fields = (_SECOND, *_FIELDS)[-len(tokens) :]
    checked = [_checked(token, field) for token, field in zip(tokens, fields, strict=True)]
    second, minute, hour, days, month, weekdays = (["0"], *checked)[-6:]
    clock = f"{','.join(second)} {','.join(minute)} {','.join(hour)}"
    months = ",".join(month)
    either = [f"{clock} {day} {months} {weekday}" for day, weekday in _alternatives(days, weekdays)]
    matching = tuple(text for text in either if _matches(text))
    if not matching:
        raise BadExpression("none of its months has such a day, so it would never fire")
    restricted = "*" not in days and "*" not in weekdays
    return Fields(matching, ("both" if _begins_with_star(days, weekdays) else "either") if restricted else "one")


def _begins_with_star(days: list[str], weekdays: list[str]) -> bool:
    return days[0].startswith("*") or weekdays[0].startswith("*")


def _alternatives(days: list[str], weekdays: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of day fields that croniter is to match both; the expression matches where one of the pairs does."""
    if _begins_with_star(days, weekdays):
        yield from product(_apart(days), _apart(weekdays))
    else:
        yield from ((day, "*") for day in _apart(days))
        yield from (("*", weekday) for weekday in _apart(weekdays))


def _apart(items: list[str]) -> Iterator[str]:
    """Plain days together, each with `L`, `W` or `#` by itself."""
    plain = [item for item in items if not _SPECIAL.search(item)]
    if plain:
        yield "*" if "*" in plain else ",".join(plain)
    yield from (item for item in items if _SPECIAL.search(item))


def _every(text: str) -> Every:
    match = _EVERY.fullmatch(text)
    if match is None:
        known = ", ".join(_ALIASES)
        raise BadExpression(f"{shown(text)} is none of {known}, nor '@every' and a duration such as 1h30m or 45s")
    interval_ms = round(sum(float(number) * _UNIT_MS[unit] for number, unit in _EVERY_PART.findall(match[1])))
    if not _SHORTEST_MS <= interval_ms <= _LONGEST_MS:
        raise BadExpression(f"the interval {match[1]} must be from 1s to 8784h (366 days)")
    return Every(interval_ms)


def _checked(token: str, field: _Field) -> list[str]:
    """The items of one field in croniter's words."""
    return [_item(item, field) for item in token.split(",")]


def _item(item: str, field: _Field) -> str:
    special = _special(item, field)
    if special is not None:
        return special
    match = _ITEM.fullmatch(item)
    if match is None:
        raise BadExpression(f"{field.name} {shown(item)} is neither *, a value, a range nor a step")
    first, last, step = match.groups()
    if step is not None and not 1 <= int(step[:9]) <= field.high:
        raise BadExpression(f"{field.name} {shown(item)} has the step {step[:9]}; it must be from 1 to {field.high}")
    stride = 1 if step is None else int(step)
    if first is None:
        return "*" if stride == 1 else f"*/{stride}"
    start = _value(first, field)
    open_end = start if step is None else field.high
    end = open_end if last is None else _value(last, field)
    if field is _DAY_OF_WEEK and end == 0 and start > 0:  # SAT-SUN
        end = _SUNDAY
    if start > end:
        raise BadExpression(f"{field.name} {shown(item)} is a range that ends before it starts")
    values = range(start, end + 1, stride)  # spelt out: croniter takes 0-0 for the whole field
    return ",".join([str(value % _SUNDAY if field is _DAY_OF_WEEK else value) for value in values])


def _special(item: str, field: _Field) -> str | None:
    """`L`, `W`, `#` and Quartz's `?`, where the field may have them; None for everything else."""
    if field is _DAY_OF_MONTH:
        if item == "?":
            return "*"
        if item == "l":
            return "l"
        if item.endswith("w") and whole_number(item[:-1], 9) is not None:
            return f"{_value(item[:-1], field)}w"
    if field is _DAY_OF_WEEK:
        if item == "?":
            return "*"
        if item.endswith("l") and len(item) > 1:
            return f"l{_value(item[:-1], field) % _SUNDAY}"
        if item.startswith("l") and whole_number(item[1:], 9) is not None:
            return f"l{_value(item[1:], field) % _SUNDAY}"
        day, hash_, nth = item.partition("#")
        if hash_:
            if nth not in {"1", "2", "3", "4", "5"}:
                raise BadExpression(f"day of week {shown(item)} must name one of the first to fifth: #1 to #5")
            return f"{_value(day, field) % _SUNDAY}#{nth}"
    return None


def _value(text: str, field: _Field) -> int:
    if text in field.names:
        return field.names[text]
    number = whole_number(text, MAX_CHARS)
    if number is None:
        expected = "a number" if not field.names else f"a number or a name such as {next(iter(field.names)).upper()}"
        raise BadExpression(f"{field.name} {shown(text)} is not {expected}")
    if not field.low <= number <= field.high:
        raise BadExpression(f"{field.name} {text[:9]} is not from {field.low} to {field.high}")
    return number


def _times(text: str, after: datetime) -> Iterator[datetime]:
    day = text.split()[3]
    nearest_to = int(day[:-1]) if day.endswith("w") else 0
    times = croniter(text, after, second_at_beginning=True, day_or=False)
    while True:
        time = times.get_next(datetime)
        # For croniter the weekday nearest to the 31st of a shorter month is the one nearest to its end.
        if nearest_to <= calendar.monthrange(time.year, time.month)[1]:
            yield time


def _matches(text: str) -> bool:
    """Whether it ever does. Raises BadExpression if croniter can't read it."""
    day, months = text.split()[3:5]
    if day.endswith("w"):
        lengths = [calendar.monthrange(_LEAP_YEAR, month)[1] for item in months.split(",") for month in _months(item)]
        if int(day[:-1]) > max(lengths):
            return False
    try:
        next(_times(text, datetime(_LEAP_YEAR, 1, 1)))  # noqa: DTZ001  # wall clock
    except CroniterBadDateError:
        return False
    except CroniterError as problem:
        raise BadExpression(f"it can't be used: {problem}") from None
    return True


def _months(item: str) -> range:
    if item.startswith("*"):
        return range(1, 13, int(item[2:] or 1))
    return range(int(item), int(item) + 1)

"""A trend tells what goes on growing from what has come to rest."""

from __future__ import annotations

import math

from reliability.trend import Trend, trends

MINUTE = 60.0


def trend(name: str, *values: float) -> Trend:
    [found] = trends([(number * MINUTE, {name: value}) for number, value in enumerate(values)])
    return found


def test_what_comes_to_rest_is_level() -> None:
    found = trend("RSS MiB", *(100 - 50 * math.exp(-number / 5) for number in range(60)))
    assert found.level
    assert (found.quarter < found.half < found.end) is True


def test_what_grows_to_the_end_is_not() -> None:
    found = trend("RSS MiB", *(100 + number for number in range(60)))
    assert not found.level
    assert round(found.slope_h) == 60


def test_what_falls_is_level() -> None:
    assert trend("RSS MiB", *(200 - number for number in range(60))).level


def test_a_saw_is_level() -> None:
    assert trend("files MiB", *(100 + number % 10 for number in range(60))).level


def test_little_is_noise_by_its_unit() -> None:
    assert trend("gateway open files", *(10 + number / 30 for number in range(60))).level
    assert not trend("gateway open files", *(10 + number for number in range(60))).level


def test_too_few_samples_say_nothing() -> None:
    assert trends([(number * MINUTE, {"RSS MiB": 1.0}) for number in range(10)]) == []

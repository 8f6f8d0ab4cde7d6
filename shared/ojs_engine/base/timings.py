"""Choosing the durations of a feature among those that were given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ojs_link.timings import Timings

T = TypeVar("T", bound=Timings)


def of_kind(kind: type[T], features: Iterable[Timings]) -> T:
    """Return the durations of a feature: those among `features`, or the usual ones."""
    return next((one for one in features if isinstance(one, kind)), kind())

"""Durations of a component in one frozen struct, an argument of the component. Only tests give others than the defaults.

`docs/reference/timings.md` lists them all.
"""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar, Final

from msgspec import Struct

Order = tuple[tuple[str, str, str], ...]
_UNITS: Final = {"ms": 0.001, "s": 1.0}


class Timings(Struct, frozen=True, kw_only=True):
    """Durations, each with its unit (`_s`, `_ms`) in its name, and what belongs to them, with structs of parts."""

    order: ClassVar[Order] = ()
    """Two names (with dots into parts), the first at most as long as the second, and what goes wrong if it is not."""
    usual: ClassVar[Order] = ()
    """The order that holds for the defaults alone, since tests shorten one of the two."""

    def __post_init__(self) -> None:
        """Raise ValueError unless the order holds."""
        self.check(self.order)

    def check(self, order: Order) -> None:
        """Raise ValueError unless an order holds."""
        for shorter, longer, reason in order:
            if _seconds(self, shorter) > _seconds(self, longer):
                raise ValueError(f"{type(self).__name__}: {shorter} is longer than {longer}: {reason}")


def _seconds(timings: Timings, name: str) -> float:
    value: float = attrgetter(name)(timings)
    return value * _UNITS[name.rpartition("_")[2]]

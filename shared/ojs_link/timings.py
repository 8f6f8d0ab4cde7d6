"""Durations of a component in one frozen struct, an argument of the component. Only tests give others than the defaults.

`docs/reference/timings.md` lists them all, with those of the server (`ojs_core.base.timings`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar

from msgspec import Struct

Order = tuple[tuple[str, str, str], ...]


class Timings(Struct, frozen=True, kw_only=True):
    """Durations, each with its unit in its name (`_s`; `_ms` for those of requests), with structs of parts."""

    order: ClassVar[Order] = ()
    """Two names (with dots into parts) of one unit, the first at most as long, and the reason why it has to be."""
    usual: ClassVar[Order] = ()
    """The order that holds for the defaults alone, since tests shorten one of the two."""

    def __post_init__(self) -> None:
        """Raise ValueError unless the order holds."""
        self.check(self.order)

    def check(self, order: Order) -> None:
        """Raise ValueError unless an order holds."""
        for shorter, longer, reason in order:
            if attrgetter(shorter)(self) > attrgetter(longer)(self):
                raise ValueError(f"{type(self).__name__}: {shorter} is longer than {longer}: {reason}")

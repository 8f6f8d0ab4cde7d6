"""Floods of acts as few entries: counted by who acts, so that one principal hides nothing of another."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import takewhile
from typing import Final, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from ojs_features.audit.entry import SEVERAL, Entry

K = TypeVar("K", bound=Hashable)

MOST: Final = 30
"""How many different acts of one principal, or of one stranger's address, get entries of their own in a window."""
STRANGERS: Final = 100
"""The addresses of strangers that get entries of their own in a window; those beyond share theirs."""
ALONE: Final = 30
"""Acts of the same principal on the same target that get entries of their own in a window."""
MOST_ACTS: Final = 10_000
_MOST_NAMED: Final = 20
"""Operations and addresses that one entry names."""


class Owner(NamedTuple):
    """The one whose act it is: a principal by its id, or a stranger by address."""

    name: str
    stranger: bool = False


_OTHERS: Final = Owner(SEVERAL, stranger=True)


class _Counted:
    """Acts since the first one, which has an entry of its own."""

    __slots__ = ("addresses", "alone", "count", "ends", "first_at", "last", "operations")

    def __init__(self, ends: float) -> None:
        self.ends = ends
        self.alone = 0
        self.count = 0
        self.first_at = ""
        self.last: Entry | None = None
        self.operations: dict[str, None] = {}
        self.addresses: dict[str, None] = {}

    def add(self, entry: Entry) -> None:
        self.first_at = self.first_at or entry.timestamp
        self.last = entry
        self.count += 1
        for names, name in ((self.operations, entry.detail.operation), (self.addresses, entry.source_ip)):
            if len(names) < _MOST_NAMED:
                names[name] = None

    def entry(self) -> Entry | None:
        """Return the entry for all that were counted; None if none were."""
        if self.last is None:
            return None
        detail = replace(self.last.detail, count=self.count, first_at=self.first_at)
        entry = replace(self.last, detail=detail)
        if len(self.operations) > 1:
            detail = replace(detail, operation=SEVERAL, operations=list(self.operations), target={})
            entry = replace(entry, detail=detail)
        if len(self.addresses) > 1:
            entry = replace(entry, source_ip=SEVERAL, detail=replace(detail, addresses=list(self.addresses)))
        return entry


class _Windows(dict[K, _Counted]):
    """The windows that are open, in the order in which they end: all are equally long."""

    @property
    def next_end(self) -> float | None:
        """When the next one is over."""
        return next((counted.ends for counted in self.values()), None)

    def count(self, key: K, entry: Entry, ends: float, alone: int) -> bool:
        """Whether it is one of the first `alone`; else it is counted."""
        counted = self.get(key)
        if counted is None:
            counted = self[key] = _Counted(ends)
        if counted.alone < alone:
            counted.alone += 1
            counted.first_at = counted.first_at or entry.timestamp
            return True
        counted.add(entry)
        return False

    def over(self, now: float) -> list[tuple[K, Entry | None]]:
        """Take out those that are over, each with the entry for what was counted in it, if anything was."""
        ended = list(takewhile(lambda one: one[1].ends <= now, self.items()))
        for key, _ in ended:
            del self[key]
        return [(key, counted.entry()) for key, counted in ended]


class Repeats:
    """Counts requests that changed nothing. Times are in seconds.

    An owner has `most` different ones in a window. Those beyond are one entry for each type of event, and so are those
    of strangers from more than `strangers` addresses.
    """

    def __init__(self, window_s: float, most: int = MOST, strangers: int = STRANGERS) -> None:
        self._window_s = window_s
        self._most = most
        self._strangers = strangers
        self._open: _Windows[tuple[Owner, Hashable]] = _Windows()
        self._acts: dict[Owner, int] = {}
        """How many different acts of each have a window."""

    def is_first(self, owner: Owner, act: Hashable, entry: Entry, now: float) -> bool:
        """Whether the entry is to be written now; else it is counted, and `over` tells of it."""
        if owner.stranger and owner not in self._acts and sum(one.stranger for one in self._acts) >= self._strangers:
            owner = _OTHERS
            entry = replace(entry, detail=replace(entry.detail, target={}, key_prefix=UNSET))
        alone = 1
        key: tuple[Owner, Hashable] = (owner, act)
        if owner is _OTHERS or (self._acts.get(owner, 0) >= self._most and key not in self._open):
            key, alone = (owner, (SEVERAL, entry.event_type)), 0
        if key not in self._open:
            self._acts[owner] = self._acts.get(owner, 0) + 1
        return self._open.count(key, entry, now + self._window_s, alone)

    @property
    def next_end(self) -> float | None:
        """When the next window is over."""
        return self._open.next_end

    def over(self, now: float) -> list[Entry]:
        """Return one entry for each act that was repeated in a window that is over."""
        ended = self._open.over(now)
        for (owner, _), _ in ended:
            self._acts[owner] -= 1
            if not self._acts[owner]:
                del self._acts[owner]
        return [entry for _, entry in ended if entry is not None]


class Acts:
    """Counts acts that may have changed something: the first ones of a window, and all others of it as one entry.

    Acts beyond `most` different ones aren't counted: each of them is written.
    """

    def __init__(self, window_s: float, alone: int = ALONE, most: int = MOST_ACTS) -> None:
        self._window_s = window_s
        self._alone = alone
        self._most = most
        self._open: _Windows[Hashable] = _Windows()

    def is_first(self, act: Hashable, entry: Entry, now: float) -> bool:
        """Return as that of `Repeats` does."""
        if act not in self._open and len(self._open) >= self._most:
            return True
        return self._open.count(act, entry, now + self._window_s, self._alone)

    @property
    def next_end(self) -> float | None:
        """When the next window is over."""
        return self._open.next_end

    def over(self, now: float) -> list[Entry]:
        """Return one entry for each act that was done more often in a window that is over."""
        return [entry for _, entry in self._open.over(now) if entry is not None]

"""Which ready subjects of a queue hold tokens, as far as one process knows without asking (docs/adr/029).

A token's arrival is heard, and its message stays in the stream until it is answered for, in whosever hands it is. So
what the stream has said once holds on: a subject that it named may have tokens to give, and a queue of which it named
none is empty until something arrives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from ojs_engine.jetstream.subjects import LANES, lane_of
from ojs_engine.store.records.tokens import priority_of
from ojs_link.timings import Order, Timings

_NEVER: Final = float("-inf")


class ReadyTimings(Timings, frozen=True, kw_only=True):
    """When a ready subject is tried again that had nothing to give."""

    dry_s: float = 1.0
    """A subject whose tokens are in others' hands, or put off, may have something to give again after so long."""
    ahead_s: float = 0.1
    """So young an arrival may be ahead of what can be pulled."""
    ahead_dry_s: float = 0.003
    """Then the subject is tried again after so long."""
    order: ClassVar[Order] = (("ahead_dry_s", "dry_s", "a token that is just coming would come after one that was put off"),)


class _Arrival(NamedTuple):
    number: int
    at: float


class ReadySubjects:
    """One queue's. All times are loop times. What the stream said is trusted for `sure_s` seconds."""

    __slots__ = (
        "_dry",
        "_found",
        "_highest",
        "_in_order",
        "_left",
        "_pulled",
        "_spent",
        "_sure_s",
        "_timings",
        "arrivals",
        "asked_at",
    )

    def __init__(self, sure_s: float, timings: ReadyTimings) -> None:
        self._timings = timings
        self._sure_s = sure_s
        self.asked_at = _NEVER
        """When the question was sent that the stream has answered last."""
        self._found: dict[str, _Arrival] = {}
        self._dry: dict[str, float] = {}
        """Until when which subjects are passed over."""
        self._left: dict[str, int] = {}
        """How many tokens a subject has to give at most, but for those that come back without a sound; it may be unknown."""
        self._highest: dict[str, int] = {}
        """The place of the last token that was pulled: what comes again has been counted."""
        self._pulled: dict[str, int] = {}
        """How many of them pulls are under way for."""
        self._spent: dict[str, float] = {}
        """Until when which subjects are passed over of which pulls have brought all."""
        self._in_order: list[str] | None = None
        self.arrivals = 0
        """How many tokens have arrived."""

    def arrived(self, subject: str, now: float) -> None:
        """A token is there, or has been let go."""
        self.arrivals += 1
        if subject not in self._found:
            self._in_order = None
            self._left[subject] = 0
        self._found[subject] = _Arrival(self.arrivals, now)
        if subject in self._left:
            self._left[subject] += 1
        self._dry.pop(subject, None)
        self._spent.pop(subject, None)

    def told(self, subjects: Mapping[str, int], since: int, asked_at: float) -> None:
        """The stream holds so many tokens of these subjects, and no others but those that arrived after the first `since`."""
        before = self._found
        self._found = {subject: before.get(subject) or _Arrival(0, _NEVER) for subject in subjects}
        self._found.update((subject, one) for subject, one in before.items() if one.number > since)
        late = self.arrivals - since
        self._left = {subject: subjects.get(subject, 0) + late for subject in self._found}
        self.let_go()
        self._in_order = None
        self.asked_at = asked_at

    def dry(self, subject: str, since: int, now: float) -> None:
        """The subject had nothing more to give, by a request sent when `since` tokens had arrived."""
        last = self._found.get(subject)
        if last is not None and last.number <= since:
            young = now - last.at < self._timings.ahead_s
            self._dry[subject] = now + (self._timings.ahead_dry_s if young else self._timings.dry_s)
            self._left[subject] = 0

    def pulling(self, subject: str, number: int) -> None:
        """A pull for so many tokens begins; it has to be `pulled`."""
        self._pulled[subject] = self._pulled.get(subject, 0) + number

    def pulled(self, subject: str, number: int, places: Sequence[int], now: float) -> None:
        """A pull for so many has brought the tokens at these places, in order."""
        left = self._pulled[subject] - number
        if left:
            self._pulled[subject] = left
        else:
            del self._pulled[subject]
        highest = self._highest.get(subject, 0)
        new = sum(place > highest for place in places)
        if new:
            self._highest[subject] = places[-1]
        known = self._left.get(subject)
        if known is None or new > known:  # more than was heard of
            self._left.pop(subject, None)
        elif new:
            self._left[subject] = known - new
            if new == known:
                self._spent[subject] = now + self._timings.dry_s

    def ahead(self, subject: str, now: float) -> bool:
        """Whether a pull that brought nothing may have been ahead of a token that was heard of."""
        last = self._found.get(subject)
        young = last is not None and now - last.at < self._timings.ahead_s
        return young and subject not in self._pulled and self._left.get(subject) != 0

    def overdue(self, subject: str, now: float) -> bool:
        """Whether tokens of which nothing came have been there for a while: in others' hands, unless their consumer
        has lost count.
        """
        last = self._found.get(subject)
        return last is not None and now - last.at >= self._timings.ahead_s and subject not in self._pulled

    def let_go(self) -> None:
        """Whatever had nothing to give may have something again."""
        self._dry.clear()
        self._spent.clear()

    def forget(self) -> None:
        """Arrivals may have been missed: the stream has to be asked."""
        self.asked_at = _NEVER

    def sure(self, now: float) -> bool:
        """Whether the stream needn't be asked what there is."""
        return now - self.asked_at < (self._timings.dry_s if self._dry else self._sure_s)

    def empty(self, now: float) -> bool:
        """Whether there surely is nothing until something arrives."""
        return not self._found and self.sure(now)

    def giving(self, now: float) -> list[str]:
        """Those that may have something to give, in the order of hand-out: without those whose tokens are all being pulled."""
        if self._in_order is None:
            self._in_order = sorted(self._found, key=hand_out_order)
        if not self._dry and not self._pulled and not self._spent:
            return self._in_order.copy()
        return [subject for subject in self._in_order if self._gives(subject, now)]

    def _gives(self, subject: str, now: float) -> bool:
        if now < self._dry.get(subject, _NEVER) or now < self._spent.get(subject, _NEVER):
            return False
        under_way = self._pulled.get(subject, 0)
        return not under_way or subject not in self._left or under_way < self._left[subject]


def hand_out_order(subject: str) -> tuple[int, int]:
    """A sort key: priorities from high to low, and within one what had been handed out before."""
    lane = lane_of(subject)
    return -priority_of(subject), LANES.index(lane) if lane in LANES else len(LANES)

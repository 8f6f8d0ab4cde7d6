"""Waiting for work that takes as long as it takes."""

from __future__ import annotations

import pytest

from support.waiting import in_the_end


class Work:
    """Has `steps` to do, one for each look at its progress, and stops after so many."""

    def __init__(self, steps: int, stops_after: int) -> None:
        self.left = steps
        self._stops_at = steps - stops_after

    async def over(self) -> bool:
        return self.left == 0

    async def progress(self) -> int:
        self.left = max(self.left - 1, self._stops_at)
        return self.left


async def test_what_goes_on_is_waited_for_beyond_the_patience_with_what_stands_still() -> None:
    work = Work(20, stops_after=20)
    await in_the_end(work.over, work.progress, 0.05, every=0.01)
    assert work.left == 0


async def test_what_stands_still_is_given_up_and_says_how_far_it_had_come() -> None:
    work = Work(20, stops_after=5)
    with pytest.raises(AssertionError, match=r"Work\.over .* didn't hold within 0\.05 s after it had come to 15"):
        await in_the_end(work.over, work.progress, 0.05, every=0.01)

"""The request of a fetch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from ojs_engine.domain.handlers import Handled
from ojs_engine.jetstream.subjects import handled_by_lane, lane_of

GivenUp = Callable[[], Awaitable[bool]]
"""Says whether the client of a fetch has left."""


async def never_given_up() -> bool:
    """Answer that the client waits to the end of its fetch."""
    return False


class FetchRequest(NamedTuple):
    """From which queues how many jobs, for whom, and leased for how long (None for what their own say). `pool` is the
    worker's. `handled` is what the worker can run, None for everything.
    """

    queues: Sequence[str]
    most: int
    worker: str | None
    lease_ms: int | None
    handled: Handled | None = None
    pool: str | None = None

    def but(self, most: int) -> FetchRequest:
        """Return the same request for another number of jobs."""
        return self if most == self.most else self._replace(most=most)

    def takes(self, subject: str) -> bool:
        """Return whether tokens of a ready subject may stand for jobs that the worker can run."""
        for_whom = handled_by_lane(lane_of(subject))
        return for_whom is None or self.handled is None or self.handled.runs(*for_whom)

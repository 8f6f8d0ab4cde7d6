"""Jobs that ask for a limit, and the lane of their tokens (docs/adr/014)."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from ojs_engine.domain.job import Job
from ojs_engine.domain.rate_limits.policy import policy_of
from ojs_engine.jetstream.subjects import Lane
from ojs_engine.store.gates import Asks, LaneRule

limited: Final[Asks] = attrgetter("rate_limit")
"""Whether a job brings a limit."""


def _lane(job: Job) -> Lane:
    """Return the lane of a limited job's next token: one of its own if a key limits it."""
    policy = policy_of(job)
    return "line" if policy is None or policy.key is None else "key"


LIMITED_LANE: Final = LaneRule(limited, _lane)
"""The lane of the tokens of limited jobs."""

"""What becomes of each item of a bulk request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from ojs_engine.base.errors import OjsError, require_backend
from ojs_engine.domain.job import Job
from ojs_engine.operations.job_checks import JobWarning


class ItemOutcome(Struct, frozen=True, kw_only=True):
    """What became of one item of a bulk request. `existing`: the job was there before, or makes this one superfluous."""

    job: Job | None = None
    job_id: str = ""
    """Of an item that is about an existing job."""
    existing: bool = False
    error: OjsError | None = None
    rolled_back: bool = False
    warnings: Sequence[JobWarning] = ()
    """What is wrong with a job that was taken nevertheless."""


class Rest(NamedTuple):
    """What a filter has still before it: where it goes on, and how many jobs it may find there if that is known."""

    cursor: str | None
    remaining: int | None


def failed(outcome: ItemOutcome) -> bool:
    """Whether it was not the item's fault."""
    return outcome.error is not None and outcome.error.info.status >= 500


def final(outcomes: Sequence[ItemOutcome]) -> bool:
    return not any(failed(outcome) for outcome in outcomes)


def require_outcome(outcomes: Sequence[ItemOutcome]) -> None:
    """Raise 503 if nothing was done, and nothing but the backend was in the way (`require_backend`)."""
    require_backend([outcome.error for outcome in outcomes if not outcome.rolled_back])

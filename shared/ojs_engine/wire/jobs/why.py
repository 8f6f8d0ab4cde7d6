"""Why a job is where it is, as operators read of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.domain.job import Job, State
from ojs_engine.operations.why import Reason
from ojs_engine.wire.members import Uuid


class ReasonAnswer(Struct, kw_only=True, omit_defaults=True):
    """One reason: a code that stays, a sentence, and what can be done about it."""

    code: str
    message: str
    remedy: str | UnsetType = UNSET


class Explanation(Struct):
    """Why a job is in its state, what matters most first."""

    job_id: Uuid
    state: State
    reasons: list[ReasonAnswer]


def explanation(job: Job, found: Sequence[Reason]) -> Explanation:
    """Tell of reasons that are in order already."""
    told = [ReasonAnswer(code=one.code, message=one.message, remedy=one.remedy or UNSET) for one in found]
    return Explanation(job.id, job.state, told)

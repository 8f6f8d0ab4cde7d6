"""What is wrong with a system, and why its jobs are where they are (docs/admin.md)."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from ojs_api.members import Moment, Uuid, one_of
from ojs_api.operations import Operation, Subject
from ojs_api.words import JobState, Severity

MOST: Final = 50
"""Findings in one answer, the worst first."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem that the server has found, or something to know of.

    Attributes:
        check: The name of the check that has found it.
        severity: `problem` if something doesn't work, else `warning`.
        message: What it has seen.
        meaning: What follows from it.
        remedy: What to do.
        link: Where the dashboard shows it.
    """

    check: str
    severity: Annotated[str, one_of(Severity)]
    message: str
    meaning: str
    remedy: str
    link: str | None = None


class Findings(Struct, frozen=True, kw_only=True):
    """The problems that the server has found, the worst first.

    Attributes:
        findings: The problems.
        checks: The names of all checks.
        checked_at: When the server looked.
    """

    findings: Annotated[list[Finding], Meta(extra_json_schema={"maxItems": MOST})]
    checks: list[str]
    checked_at: Moment


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reason for a job's state.

    Attributes:
        code: A word for programs, which stays the same.
        message: The reason as a sentence.
        remedy: What can be done about it. None if nothing has to be.
    """

    code: str
    message: str
    remedy: str | None = None


class Explanation(Struct, frozen=True, kw_only=True):
    """An explanation of a job's state, with the most important reason first.

    Attributes:
        job_id: The job's id.
        state: The job's state.
        reasons: The reasons.
    """

    job_id: Uuid
    state: Annotated[str, one_of(JobState)]
    reasons: list[Reason]


# fmt: off
LIST: Final = Operation(
    "listFindings", "GET /admin/findings", "read", "Read what is wrong", {200: Findings},
    "Up to 50 sentences, the worst first, each with what to do. Answers of one second are the same.",
)
EXPLAIN: Final = Operation(
    "explainJob", "GET /admin/jobs/{job_id}/why", "read", "Read why a job is where it is", {200: Explanation},
    "Reasons as sentences, what matters most first, each with a code that stays.",
    errors=("not_found",), narrowing="job",
)
FINDINGS: Final = Subject("Findings", "What is wrong, and why jobs are where they are", (LIST, EXPLAIN))

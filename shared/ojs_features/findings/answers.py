"""Findings and reasons as clients read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ojs_api import findings as contract
from ojs_engine.domain.job import Job
from ojs_engine.operations.finding import Finding, Reason, warning
from ojs_engine.wire.members import moment

MOST: Final = contract.MOST


def unknown(check: str, why: str) -> Finding:
    """Return the finding of a check that could not be made."""
    return warning(check, f"could not be checked: {why}", "it may be well or not", "mend the other problems, and ask again")


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return up to `MOST` findings: problems before warnings, checks in their order, and of a check the weightiest first."""
    listed = list(found)
    order = {check: place for place, check in enumerate(dict.fromkeys(one.check for one in listed))}
    return sorted(listed, key=lambda one: (one.severity != "problem", order[one.check], -one.weight))[:MOST]


def findings_answer(found: Sequence[Finding], checks: Sequence[str], now: int) -> contract.Findings:
    """Return the answer with findings that are in order already."""
    return contract.Findings(
        findings=[
            contract.Finding(
                check=one.check,
                severity=one.severity,
                message=one.message,
                meaning=one.meaning,
                remedy=one.remedy,
                link=one.link,
            )
            for one in found
        ],
        checks=list(checks),
        checked_at=moment(now),
    )


def explanation(job: Job, found: Sequence[Reason]) -> contract.Explanation:
    """Return the answer with reasons that are in order already."""
    reasons = [contract.Reason(code=one.code, message=one.message, remedy=one.remedy) for one in found]
    return contract.Explanation(job_id=job.id, state=job.state, reasons=reasons)

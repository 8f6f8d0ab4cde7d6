"""What is wrong, as operators read of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_engine.base.times import format_ms
from ojs_engine.operations.findings.finding import MOST, Finding, Severity
from ojs_engine.wire.members import Timestamp


class FindingAnswer(Struct, kw_only=True, omit_defaults=True):
    """Something that doesn't work (`problem`) or is to be known (`warning`): what was seen, what follows, and what to do.

    `link` is the page of the dashboard that shows it.
    """

    check: str
    severity: Severity
    message: str
    meaning: str
    remedy: str
    link: str | UnsetType = UNSET


class Findings(Struct):
    """What is wrong, the worst first. `checks` are the names of all that were made."""

    findings: Annotated[list[FindingAnswer], Meta(max_length=MOST)]
    checks: list[str]
    checked_at: Timestamp


def findings_answer(found: Sequence[Finding], checks: Sequence[str], now: int) -> Findings:
    """Tell of findings that are in order already."""
    return Findings(
        [
            FindingAnswer(
                check=one.check,
                severity=one.severity,
                message=one.message,
                meaning=one.meaning,
                remedy=one.remedy,
                link=one.link or UNSET,
            )
            for one in found
        ],
        list(checks),
        format_ms(now),
    )

"""A finding: something that is wrong or to be known, what follows from it, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

MOST: Final = 50
"""Findings in one answer, the worst first."""

Severity = Literal["problem", "warning"]


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a rule has found. `message` says what was seen, `meaning` what follows from it, `remedy` what to do.

    `link` is where the dashboard shows it. Of a rule's findings those with the larger `weight` are worse.
    """

    check: str
    severity: Severity
    message: str
    meaning: str
    remedy: str
    link: str | None = None
    weight: float = 0.0


def problem(check: str, message: str, meaning: str, remedy: str, link: str | None = None, weight: float = 0.0) -> Finding:
    """Return a finding that something doesn't work, or that jobs may be lost."""
    return _finding("problem", check, message, meaning, remedy, link, weight)


def warning(check: str, message: str, meaning: str, remedy: str, link: str | None = None, weight: float = 0.0) -> Finding:
    """Return a finding to know of, or to see to before it becomes a problem."""
    return _finding("warning", check, message, meaning, remedy, link, weight)


def _finding(
    severity: Severity, check: str, message: str, meaning: str, remedy: str, link: str | None, weight: float
) -> Finding:
    return Finding(check=check, severity=severity, message=message, meaning=meaning, remedy=remedy, link=link, weight=weight)


def unknown(check: str, why: str) -> Finding:
    """Return the finding of a check that could not be made."""
    return warning(check, f"could not be checked: {why}", "it may be well or not", "mend the other problems, and ask again")


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Return up to `MOST` findings: problems before warnings, rules in their order, and of a rule the weightiest first."""
    listed = list(found)
    order = {check: place for place, check in enumerate(dict.fromkeys(one.check for one in listed))}
    return sorted(listed, key=lambda one: (one.severity != "problem", order[one.check], -one.weight))[:MOST]

"""Findings of checks and reasons to wait, which features give, too."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ojs_api.words import Severity

SHOWN: Final = 5
"""Names in one sentence."""


class Finding(Struct, frozen=True, kw_only=True):
    """Something that is wrong or to be known. `message` says what was seen, `meaning` what follows, `remedy` what to do.

    `link` is where the dashboard shows it. Of a check's findings those with the larger `weight` are worse.
    """

    check: str
    severity: Severity
    message: str
    meaning: str
    remedy: str
    link: str | None = None
    weight: float = 0.0


class Reason(Struct, frozen=True, kw_only=True):
    """A reason for a job's state, by a code that stays and as a sentence; `remedy` where something can be done."""

    code: str
    message: str
    remedy: str | None = None


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

"""What a check has found."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True):
    """One check's result. `found` is what was seen; `meaning` and `remedy`, of what isn't ok, what follows and what to do."""

    check: str
    status: Status
    found: str
    meaning: str = ""
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def warning(check: str, found: str, meaning: str, remedy: str) -> Finding:
    """Something to know, or to see to before it becomes a problem."""
    return Finding(check, "warning", found, meaning, remedy)


def problem(check: str, found: str, meaning: str, remedy: str) -> Finding:
    """Something doesn't work, or jobs may be lost."""
    return Finding(check, "problem", found, meaning, remedy)

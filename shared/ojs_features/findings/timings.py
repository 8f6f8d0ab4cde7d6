"""Durations of findings."""

from __future__ import annotations

from ojs_link.timings import Timings


class FindingTimings(Timings, frozen=True, kw_only=True):
    """How old an answer may be."""

    findings_s: float = 1.0
    """For so long all who ask for findings get one answer."""

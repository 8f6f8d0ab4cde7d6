"""Durations of what gateways know of backups."""

from __future__ import annotations

from ojs_link.timings import Timings


class BackupAgeTimings(Timings, frozen=True, kw_only=True):
    """How often a gateway looks how old the last backup is."""

    backup_s: float = 60.0
    """Between two looks."""

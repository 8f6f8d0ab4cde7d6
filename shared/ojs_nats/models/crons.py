"""Cron entries and their runs."""

from __future__ import annotations

from ojs_api.crons import Cron, CronHistory, CronRun, JobTemplate, TriggeredCron

__all__ = ["Cron", "CronHistory", "CronRun", "JobTemplate", "TriggeredCron"]

"""Cron entries (ojs-cron; requirements §15): records, expressions, schedules and what is due. Pure, like `transitions`."""

from __future__ import annotations

from ojs_nats.cron.birth import newborn
from ojs_nats.cron.changes import Registration, delete, register, run_now, switch
from ojs_nats.cron.expression import BadExpression, parse_expression
from ojs_nats.cron.record import OVERLAPS, Cron, CronTimer, Occurrence, Overlap, Run
from ojs_nats.cron.schedule import BadZone, check_zone, following
from ojs_nats.cron.step import Step, job_id_of
from ojs_nats.cron.ticks import GRACE_MS, MAX_WAITING, tick

__all__ = [
    "GRACE_MS",
    "MAX_WAITING",
    "OVERLAPS",
    "BadExpression",
    "BadZone",
    "Cron",
    "CronTimer",
    "Occurrence",
    "Overlap",
    "Registration",
    "Run",
    "Step",
    "check_zone",
    "delete",
    "following",
    "job_id_of",
    "newborn",
    "parse_expression",
    "register",
    "run_now",
    "switch",
    "tick",
]

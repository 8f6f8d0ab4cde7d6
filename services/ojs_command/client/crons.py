"""`ojs-nats cron`."""

from __future__ import annotations

import argparse
from typing import Final, get_args

from ojs_api import words
from ojs_api.crons import Cron, CronRun
from ojs_command.client.arguments import job_args, member, positive, pushable
from ojs_command.client.output import at, json_text
from ojs_command.client.parser import CommandParser, add_action, add_actions
from ojs_command.client.session import Session

_COLUMNS: Final = ("name", "schedule", "zone", "job", "enabled", "last run", "next run", "runs")
_RUN_COLUMNS: Final = ("number", "due", "status", "by hand", "job", "state", "reason")
_ADD_EXAMPLES: Final = """\
  ojs-nats cron add nightly '0 3 * * *' report.build daily --queue reports --timezone Europe/Berlin
  ojs-nats cron add pulse '@every 5m' health.check --overlap skip

An entry of that name is replaced. ARGs are those of the job, as 'ojs-nats push' takes them.
"""


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(actions, "list", "list entries", _list, examples="  ojs-nats cron\n")
    listed.add_argument("--limit", type=positive, metavar="N", help="at most so many")
    add = add_action(actions, "add", "run a job on a schedule", _add, examples=_ADD_EXAMPLES)
    add_actions(
        actions, "NAME", "nightly",
        ("get", "show one", _get),
        ("pause", "don't run it until it is resumed", _pause),
        ("resume", "run it again", _resume),
        ("trigger", "run it now, besides its schedule", _trigger),
        ("delete", "remove it", _delete),
        ("history", "show its last runs", _history),
    )  # fmt: skip
    add.add_argument("name", metavar="NAME")
    add.add_argument("schedule", metavar="SCHEDULE", help="five or six fields, @daily, @every 5m")
    add.add_argument("type", metavar="TYPE", help="of the job")
    add.add_argument("args", nargs="*", metavar="ARG", help="its arguments, as JSON")
    add.add_argument("--queue", metavar="NAME", help="[default]")
    add.add_argument("--priority", type=int, metavar="N")
    add.add_argument("--meta", action="append", type=member, default=[], metavar="NAME=VALUE", help="again for more")
    add.add_argument("--timezone", metavar="ZONE", help="Europe/Berlin [UTC]")
    add.add_argument("--overlap", choices=get_args(words.Overlap), help="while the run before hasn't ended")
    add.add_argument("--description", metavar="TEXT")
    add.add_argument("--paused", action="store_true", help="it doesn't run until it is resumed")
    actions.choices["history"].add_argument("--limit", type=positive, default=20, metavar="N", help="at most so many [20]")


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = [cron async for cron in session.client.crons.list(limit=given.limit)]
    session.out.listed(found, _COLUMNS, _row, empty="No cron entries: make one with 'ojs-nats cron add'.")


def _row(cron: Cron) -> tuple[object, ...]:
    job = cron.job_template.type
    return (cron.name, cron.expression, cron.timezone, job, cron.enabled, cron.last_run_at, cron.next_run_at, cron.run_count)


async def _add(session: Session, given: argparse.Namespace) -> None:
    meta = dict(given.meta) or None
    made = await session.client.crons.register(
        given.name,
        given.schedule,
        pushable(given.type, job_args(given.args), queue=given.queue, priority=given.priority, meta=meta),
        timezone=given.timezone,
        overlap=given.overlap,
        enabled=not given.paused,
        description=given.description,
    )
    session.out.done(f"Cron entry {made.name} runs next at {at(made.next_run_at) or 'no time: it is paused'}.", made)


async def _get(session: Session, given: argparse.Namespace) -> None:
    cron = await session.client.crons.get(given.name)
    template = cron.job_template
    session.out.one(
        cron,
        [
            ("name", cron.name),
            ("description", cron.description),
            ("schedule", cron.expression),
            ("zone", cron.timezone),
            ("enabled", cron.enabled),
            ("overlap", cron.overlap_policy),
            ("job", template.type),
            ("arguments", json_text(template.args)),
            ("metadata", json_text(template.meta) if template.meta else None),
            ("options", json_text(template.options) if template.options else None),
            ("last run", at(cron.last_run_at)),
            ("next run", at(cron.next_run_at)),
            ("runs", cron.run_count),
            ("runs that wait", cron.waiting_runs or None),
        ],
    )


async def _pause(session: Session, given: argparse.Namespace) -> None:
    session.out.done(f"Cron entry {given.name} is paused.", await session.client.crons.pause(given.name))


async def _resume(session: Session, given: argparse.Namespace) -> None:
    cron = await session.client.crons.resume(given.name)
    session.out.done(f"Cron entry {given.name} runs next at {at(cron.next_run_at)}.", cron)


async def _trigger(session: Session, given: argparse.Namespace) -> None:
    answer = await session.client.crons.trigger(given.name)
    session.out.done(f"Cron entry {given.name} has made job {answer.job_id}.", answer)


async def _delete(session: Session, given: argparse.Namespace) -> None:
    session.out.done(f"Cron entry {given.name} is removed.", await session.client.crons.delete(given.name))


async def _history(session: Session, given: argparse.Namespace) -> None:
    runs = await session.client.crons.history(given.name, limit=given.limit)
    session.out.listed(runs, _RUN_COLUMNS, _run_row, empty="It hasn't run yet.")


def _run_row(run: CronRun) -> tuple[object, ...]:
    return (run.number, run.scheduled_at, run.status, run.manual, run.job_id, run.job_state, run.reason)

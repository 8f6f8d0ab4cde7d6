"""`ojs-nats list`: jobs in a table."""

from __future__ import annotations

import argparse
from typing import Any, Final

from ojs_command.client.arguments import STATES, ago, in_help, member, positive
from ojs_command.client.output import json_text
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.domain.members import FOUND_BY
from ojs_nats import Job

COLUMNS: Final = ("id", "type", "queue", "state", "attempt", "created", "error")

_EXAMPLES: Final = """\
  ojs-nats list                                                     the newest 50
  ojs-nats list --state discarded --queue email --since 1h
  ojs-nats list --type 'report.*' --meta tenant=acme --limit 500
  ojs-nats list --state active --json | jq -r '.[].id'
"""


def define(parser: CommandParser) -> None:
    add_filters(parser)
    parser.add_argument("--limit", type=positive, default=50, metavar="N", help="at most so many [50]")
    parser.does(_list, examples=_EXAMPLES)


def add_filters(parser: CommandParser) -> None:
    """Add the options that say which jobs."""
    parser.add_argument("--queue", metavar="NAME")
    parser.add_argument("--state", choices=STATES)
    parser.add_argument("--type", metavar="TYPE", help="may end in '*'")
    for by in FOUND_BY:
        flag, called = f"--{by.name.replace('_', '-')}", by.name.rpartition("_")[2].upper()
        parser.add_argument(flag, metavar=called, help=in_help(by.about))
    parser.add_argument("--meta", action="append", type=member, default=[], metavar="NAME=VALUE", help="again for more")
    parser.add_argument("--since", type=ago, metavar="WHEN", help="created since then: 1h, or 2026-11-24T08:00Z")
    parser.add_argument("--until", type=ago, metavar="WHEN", help="created until then")


def filters_of(given: argparse.Namespace) -> dict[str, Any]:
    """Return the filters as the client takes them."""
    return {
        "queue": given.queue,
        "state": given.state,
        "type": given.type,
        "meta": {name: value if isinstance(value, str) else json_text(value) for name, value in given.meta},
        **{by.name: getattr(given, by.name) for by in FOUND_BY},
        "since": given.since,
        "until": given.until,
    }


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = session.client.jobs.list(**filters_of(given), limit=given.limit)
    session.out.listed([job async for job in found], COLUMNS, row, empty="No jobs fit that.")


def row(job: Job) -> tuple[object, ...]:
    """Of the table."""
    attempts = f"{job.attempt}/{job.max_attempts}" if job.max_attempts else job.attempt
    return (job.id, job.type, job.queue, job.state, attempts, job.created_at, job.error.message if job.error else None)

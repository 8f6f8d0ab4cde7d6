"""`ojs-nats audit`."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, Final, get_args

from rich.text import Text

from ojs_api import words
from ojs_command.client.arguments import ago, positive
from ojs_command.client.output import clean
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_nats.models.system import AuditEntry

_EXAMPLES: Final = """\
  ojs-nats audit                                         the last 50 entries
  ojs-nats audit --type 'auth.*' --outcome failure --since 24h
  ojs-nats audit --principal deploy --operation purgeQueue --target mail
  ojs-nats audit --follow --json | jq -c 'select(.outcome == "failure")'
"""
_LAST: Final = 50
_FILTERS: Final = ("principal", "operation", "target", "outcome")


def define(parser: CommandParser) -> None:
    parser.add_argument("--type", metavar="TYPE", help="a type such as auth.login_failure, or auth.*")
    parser.add_argument("--principal", metavar="NAME", help="the name or id of who did it")
    parser.add_argument("--operation", metavar="ID", help="an operation, such as pauseQueue")
    parser.add_argument("--target", metavar="NAME", help="what it was done to: a queue, a job's id, a key's id …")
    parser.add_argument("--outcome", choices=get_args(words.AuditOutcome))
    parser.add_argument("--since", type=ago, metavar="TIME", help="a timestamp, or so long ago: 30m, 24h, 7d")
    parser.add_argument("--until", type=ago, metavar="TIME")
    parser.add_argument("--limit", type=positive, metavar="N", help=f"the last so many, {_LAST} unless given")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens from now on")
    parser.does(_audit, examples=_EXAMPLES)


async def _audit(session: Session, given: argparse.Namespace) -> None:
    filters: dict[str, Any] = {name: getattr(given, name) for name in _FILTERS} | {"event_type": given.type}
    if given.follow:
        if given.since or given.until:
            raise UsageProblem("--since and --until are for what has happened; --follow is for what happens from now on.")
        await _follow(session, filters, given.limit or _LAST)
        return
    system = session.client.system
    found = [entry async for entry in system.audit(**filters, since=given.since, until=given.until, limit=given.limit or _LAST)]
    for entry in reversed(found):
        session.out.streamed(entry, line)


async def _follow(session: Session, filters: dict[str, Any], last: int) -> None:
    page = await session.client.system.audit_page(**filters, limit=last)
    for entry in reversed(page.entries):
        session.out.streamed(entry, line)
    after = page.after
    while True:
        page = await session.client.system.audit_page(**filters, after=after)
        for entry in page.entries:
            session.out.streamed(entry, line)
        if page.after == after:
            await asyncio.sleep(session.timings.follow_s)
        after = page.after


def line(entry: AuditEntry) -> Text:
    """An entry in a line: when, what, who, from where, to what, and what became of it."""
    detail = entry.detail
    about = [detail.operation, *(f"{name}={clean(value)}" for name, value in detail.target.items())]
    if detail.reason:
        about.append(f"reason={clean(detail.reason)}")
    if detail.key_prefix:
        about.append(f"key={clean(detail.key_prefix)}")
    if detail.operations:
        about.append(f"operations={','.join(map(clean, detail.operations))}")
    if detail.addresses:
        about.append(f"addresses={','.join(map(clean, detail.addresses))}")
    if detail.count > 1:
        about.append(f"{detail.count:,} times since {clean(detail.first_at)}")
    return Text.assemble(
        (f"{entry.timestamp:%Y-%m-%d %H:%M:%S}", "dim"), "  ",
        (f"{clean(entry.event_type):<26}", "red" if entry.outcome == "failure" else "green"), "  ",
        f"{clean(entry.principal):<16}", "  ", (f"{clean(entry.source_ip):<15}", "dim"), "  ", " ".join(about),
    )  # fmt: skip

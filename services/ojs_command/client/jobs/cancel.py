"""`ojs-nats cancel`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from ojs_command.client.jobs.selection import add_selection, change_selection
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_nats.models.jobs import ChangedItem

_EXAMPLES: Final = """\
  ojs-nats cancel 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f
  ojs-nats cancel --queue email --type 'newsletter.*'            asks first
  ojs-nats cancel --queue email --state scheduled --yes --reason 'wrong list'

Active jobs are cancelled by id, or if --state names them; their workers are told to stop.
"""


def define(parser: CommandParser) -> None:
    add_selection(parser, "cancel")
    parser.add_argument("--reason", metavar="TEXT", help="kept with the jobs")
    parser.does(_cancel, examples=_EXAMPLES)


async def _cancel(session: Session, given: argparse.Namespace) -> None:
    change = partial(session.client.jobs.cancel_many, reason=given.reason)

    async def named(ids: list[str]) -> list[ChangedItem]:
        return (await change(ids)).items

    await change_selection(session, given, named, change, "cancel", "cancelled")

"""`ojs-nats priority`: another priority for a job that was not fetched yet."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session

_EXAMPLES: Final = """\
  ojs-nats priority 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f 10
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the job")
    parser.add_argument("priority", metavar="N", type=int, help="-100 to 100, the highest first")
    parser.does(_reprioritise, examples=_EXAMPLES)


async def _reprioritise(session: Session, given: argparse.Namespace) -> None:
    changed = await session.client.jobs.set_priority(given.id, given.priority)
    session.out.done(f"Job {given.id} has priority {given.priority}.", changed)

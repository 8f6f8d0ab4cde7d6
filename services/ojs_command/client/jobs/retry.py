"""`ojs-nats retry`."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.jobs.selection import add_selection, change_selection
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session

_EXAMPLES: Final = """\
  ojs-nats retry 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f
  ojs-nats retry --queue email --state discarded                 asks first
  ojs-nats retry --type report.build --yes

Their attempts are counted anew. Dead letters have a command of their own: ojs-nats dead-letter retry.
"""


def define(parser: CommandParser) -> None:
    add_selection(parser, "retry")
    parser.does(_retry, examples=_EXAMPLES)


async def _retry(session: Session, given: argparse.Namespace) -> None:
    await change_selection(session, given, session.client.jobs.retry_many, "retry", "retried")

"""`ojs-nats run`: a job that waits for its time runs now."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session

_EXAMPLES: Final = """\
  ojs-nats run 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f

It may be scheduled, pending, or wait for its next attempt.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the job")
    parser.does(_run, examples=_EXAMPLES)


async def _run(session: Session, given: argparse.Namespace) -> None:
    job = await session.client.jobs.run_now(given.id)
    session.out.done(f"Job {job.id} is {job.state}.", job)

"""`ojs-nats why`: why a job is where it is."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session

_EXAMPLES: Final = """\
  ojs-nats why 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f
"""
_AFTER_AN_ERROR: Final = frozenset({"retryable", "discarded"})


def define(parser: CommandParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the job")
    parser.does(_why, examples=_EXAMPLES)


async def _why(session: Session, given: argparse.Namespace) -> None:
    found = await session.client.jobs.why(given.id)
    if session.out.as_json:
        session.out.json(found)
        return
    session.out.text(f"It is {found.state}.")
    for reason in found.reasons:
        session.out.text(f"{reason.message} {reason.remedy or ''}".rstrip())
    if found.state in _AFTER_AN_ERROR:
        await _tell_last_error(session, given.id)


async def _tell_last_error(session: Session, job_id: str) -> None:
    job = await session.client.jobs.get(job_id)
    if not job.errors:
        return
    last = job.errors[-1]
    place = f" at {last.where}" if last.where else ""
    trace = f" 'ojs-nats get {job_id}' has the backtrace." if last.trace else ""
    session.out.text(f"Attempt {last.attempt} failed{place}: {last.type or last.code}: {last.message}.{trace}")

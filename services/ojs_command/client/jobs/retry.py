"""`ojs-nats retry`."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.jobs.selection import add_selection, change_selection
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_nats.errors import RefusedError
from ojs_nats.models.jobs import ChangedItem
from ojs_nats.operations.jobs import Jobs

_EXAMPLES: Final = """\
  ojs-nats retry 019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f
  ojs-nats retry --queue email                                   asks first
  ojs-nats retry --type report.build --yes

By id it may be one that was cancelled, or waits for its next attempt; by options it is those that are discarded. Dead
letters have a command of their own: ojs-nats dead-letter retry.
"""


def define(parser: CommandParser) -> None:
    add_selection(parser, "retry")
    parser.does(_retry, examples=_EXAMPLES)


async def _retry(session: Session, given: argparse.Namespace) -> None:
    jobs = session.client.jobs

    async def named(ids: list[str]) -> list[ChangedItem]:
        """One by one: only so are those retried as well that were cancelled, or wait for their next attempt."""
        return [await _one(jobs, place, job_id) for place, job_id in enumerate(ids)]

    await change_selection(session, given, named, jobs.retry_many, "retry", "retried")


async def _one(jobs: Jobs, place: int, job_id: str) -> ChangedItem:
    try:
        await jobs.retry(job_id)
    except RefusedError as refusal:
        return ChangedItem(index=place, job_id=job_id, status="skipped", reason=str(refusal))
    return ChangedItem(index=place, job_id=job_id, status="retried")

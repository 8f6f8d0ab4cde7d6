"""The outbox: jobs are written into the application's own database, in the transaction that they belong to, and pushed later.

A push inside a transaction would be there though the transaction was rolled back, or would run before it was committed; one
behind it would be lost when the process ends in between. A row has its job's id, so it may be pushed twice and is one job.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from ojs_nats import App
from ojs_nats.client import JobHandle
from ojs_nats.errors import RefusedError
from ojs_nats.jobs import JobRequest

Row = tuple[str, str, str]
"""A job's id, type and arguments as JSON."""

TABLE = "CREATE TABLE IF NOT EXISTS outbox (id TEXT PRIMARY KEY, type TEXT NOT NULL, args TEXT NOT NULL)"
MOST = 500


def row(new: JobRequest[Any]) -> Row:
    """What is kept of `send_receipt.job(order)`. Its options are those of its definition when it is pushed."""
    return new.id, new.type, msgspec.json.encode(new.args).decode()


async def push(app: App, rows: Sequence[Row]) -> tuple[list[str], list[RefusedError]]:
    """The ids of those that the server has now, which can be deleted, and why others were refused.

    Raises UnavailableError if the server can't be reached: they stay, to be pushed later.
    """
    jobs = [
        JobRequest[Any](kind, tuple(json.loads(args)), app.definitions[kind].defaults, job_id) for job_id, kind, args in rows
    ]
    told = await app.client.push_each(jobs)
    return [each.id for each in told if isinstance(each, JobHandle)], [each for each in told if isinstance(each, RefusedError)]

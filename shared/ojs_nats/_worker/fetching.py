"""Asks the server for jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from ojs_nats._errors import OjsError
from ojs_nats._jobs import Job
from ojs_nats._logging import get_logger
from ojs_nats._operations import FETCH, Request
from ojs_nats._transport import Transport
from ojs_nats._worker import outcome
from ojs_nats._worker.reports import Reports

log = get_logger(__name__)

_PAUSE_S: Final = 1.0


class _Fetched(msgspec.Struct):
    jobs: list[msgspec.Raw]


class _Claimed(msgspec.Struct):
    """What has to be known of a job to report it."""

    id: str
    type: str
    attempt: int


class Fetching:
    """For one worker; `queue` is that of all its jobs, if they have the same. Jobs that can't be read are reported failed.

    The server keeps a fetch that finds nothing for `wait_ms`, and so an idle worker that is to stop: a fetch isn't broken off,
    since the jobs of an answer that nobody read would stay claimed until their leases end.
    """

    def __init__(
        self, transport: Transport, reports: Reports, worker_id: str, queues: Sequence[str], queue: str | None, wait_ms: int
    ) -> None:
        self._transport = transport
        self._reports = reports
        self._asked = {"queues": list(queues), "worker_id": worker_id, "wait_ms": wait_ms}
        self._answer_s = wait_ms / 1_000 + 10
        self._queue = queue

    async def fetch(self, count: int) -> list[Job]:
        """Up to `count` jobs, none if there were none for as long, or after a pause if nobody answers."""
        body = {**self._asked, "count": count}
        request = Request(FETCH, body=body, queue=self._queue, answer_s=self._answer_s)
        try:
            answer = await self._transport.send(request, patience_s=0.0)
        except OjsError as error:
            log.warning("a fetch failed", reason=str(error))
            await asyncio.sleep(_PAUSE_S)
            return []
        jobs: list[Job] = []
        for raw in msgspec.json.decode(answer, type=_Fetched).jobs:
            try:
                jobs.append(msgspec.json.decode(raw, type=Job))
            except msgspec.ValidationError as error:
                claimed = msgspec.json.decode(raw, type=_Claimed)
                unread = Job(claimed.id, claimed.type, "active", attempt=claimed.attempt)
                await self._reports.send(unread, outcome.raised(error))
        return jobs

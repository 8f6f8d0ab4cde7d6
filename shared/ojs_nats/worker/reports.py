"""Tells the server how jobs ended."""

from __future__ import annotations

from typing import Final

import structlog

from ojs_nats._errors import OjsError, Refused
from ojs_nats._jobs import Job
from ojs_nats._operations import ACK, NACK, Request
from ojs_nats._transport import Transport
from ojs_nats.worker import outcome
from ojs_nats.worker.outcome import Report

log = structlog.get_logger(__name__)

_NOT_OURS: Final = frozenset({404, 409})
"""Answers by which an attempt is somebody else's, or has been ended."""
_PATIENCE_S: Final = 60.0
"""For how long a job's end is reported while nobody answers; its lease may end before."""
_OPERATIONS: Final = {"ack": ACK, "nack": NACK}


class Reports:
    """Those of one worker."""

    def __init__(self, transport: Transport, worker_id: str) -> None:
        self._transport = transport
        self._worker_id = worker_id

    async def send(self, job: Job, report: Report) -> None:
        """Until the server has heard of it, or can't be reached for a minute. Raises nothing."""
        body = {"job_id": job.id, "worker_id": self._worker_id, "attempt": job.attempt, **report.members}
        try:
            request = Request(_OPERATIONS[report.operation], body=body, queue=job.queue)
            await self._transport.send(request, patience_s=_PATIENCE_S)
        except Refused as error:
            log.warning("how a job ended was refused", job_id=job.id, code=error.code, reason=str(error))
            if report.operation == "ack" and error.status not in _NOT_OURS:  # its result is too large, for one
                await self.send(job, outcome.raised(error))
        except OjsError as error:
            log.error("how a job ended could not be reported: it will run again", job_id=job.id, reason=str(error))

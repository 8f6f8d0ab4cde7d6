"""Tells the server how jobs ended: those that went well together, as many as have ended while the last ones were told of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ojs_nats._errors import OjsError, Refused
from ojs_nats._jobs import Job
from ojs_nats._logging import get_logger
from ojs_nats._operations import ACK, NACK, Request
from ojs_nats._transport import Transport
from ojs_nats._worker import outcome
from ojs_nats._worker.outcome import Report

log = get_logger(__name__)

_NOT_OURS: Final = frozenset({"not_found", "conflict"})
"""Codes by which an attempt is somebody else's, or has been ended."""
_PATIENCE_S: Final = 60.0
"""For how long a job's end is reported while nobody answers; its lease may end before."""
_PAUSE_S: Final = 0.5
_MOST: Final = 1_000
_MOST_BYTES: Final = 1_000_000
"""Of results in one request; one that is larger goes alone."""


class ResultRefused(OjsError):
    """The server didn't take what a handler returned."""


class _Refusal(msgspec.Struct):
    code: str
    message: str
    retryable: bool = False


class _Item(msgspec.Struct):
    index: int
    error: _Refusal | None = None


class _Answer(msgspec.Struct):
    items: list[_Item]


class _Done(NamedTuple):
    """A job that went well; `told` is set once the server has heard, or will not hear of it."""

    job: Job
    result: msgspec.Raw | None
    told: asyncio.Future[None]


class Reports:
    """Those of one worker; `queue` is that of all its jobs, if they have the same."""

    def __init__(self, transport: Transport, worker_id: str, queue: str | None) -> None:
        self._transport = transport
        self._worker_id = worker_id
        self._queue = queue
        self._done: list[_Done] = []
        self._sender: asyncio.Task[None] | None = None

    async def send(self, job: Job, report: Report) -> None:
        """Until the server has heard of it, or can't be reached for a minute. Raises nothing."""
        if report.operation == "nack":
            await self._nack(job, report.members)
            return
        result = msgspec.Raw(msgspec.json.encode(report.members["result"])) if report.members else None
        told = asyncio.get_running_loop().create_future()
        self._done.append(_Done(job, result, told))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        await told

    async def _send_all(self) -> None:
        try:
            while self._done:
                await asyncio.sleep(0)  # others that end in this moment go with them
                done, self._done = _portion(self._done)
                await self._acked(done)
        finally:
            self._sender = None

    async def _acked(self, done: Sequence[_Done]) -> None:
        began = asyncio.get_running_loop().time()
        while done := await self._ack(done):  # those that the server couldn't write now
            if asyncio.get_running_loop().time() - began > _PATIENCE_S:
                for job, _, told in done:
                    log.error("how a job ended could not be reported: it will run again", job_id=job.id)
                    told.set_result(None)
                return
            await asyncio.sleep(_PAUSE_S)

    async def _ack(self, done: Sequence[_Done]) -> list[_Done]:
        """Those that are to be tried again."""
        body = {"worker_id": self._worker_id, "jobs": [_member(*each) for each in done]}
        request = Request(ACK, body=body, queue=self._queue)
        try:
            answer = await self._transport.send(request, patience_s=_PATIENCE_S)
        except Refused as error:
            if len(done) > 1:  # it may be one's fault
                for each in done:
                    await self._acked([each])
            else:
                self._refused(done[0], error.code, str(error))
            return []
        except OjsError as error:
            for job, _, told in done:
                log.error("how a job ended could not be reported: it will run again", job_id=job.id, reason=str(error))
                told.set_result(None)
            return []
        again: list[_Done] = []
        for each, item in zip(done, msgspec.json.decode(answer, type=_Answer).items, strict=True):
            if item.error is None:
                each.told.set_result(None)
            elif item.error.retryable:
                again.append(each)
            else:
                self._refused(each, item.error.code, item.error.message)
        return again

    def _refused(self, done: _Done, code: str, reason: str) -> None:
        log.warning("a job's result was refused", job_id=done.job.id, code=code, reason=reason)
        if code in _NOT_OURS:
            done.told.set_result(None)
            return
        # The result is too large, for one: without a report the job would hang until its lease ends.
        failed = asyncio.ensure_future(self._nack(done.job, outcome.raised(ResultRefused(reason)).members))
        failed.add_done_callback(lambda _: done.told.set_result(None))

    async def _nack(self, job: Job, failure: dict[str, Any]) -> None:
        body = {"job_id": job.id, "worker_id": self._worker_id, "attempt": job.attempt, **failure}
        try:
            await self._transport.send(Request(NACK, body=body, queue=job.queue), patience_s=_PATIENCE_S)
        except Refused as error:
            log.warning("a job's failure was refused", job_id=job.id, code=error.code, reason=str(error))
        except OjsError as error:
            log.error("how a job ended could not be reported: it will run again", job_id=job.id, reason=str(error))


def _member(job: Job, result: msgspec.Raw | None, _told: object) -> dict[str, Any]:
    named = {"job_id": job.id, "attempt": job.attempt}
    return named if result is None else {**named, "result": result}


def _portion(done: list[_Done]) -> tuple[list[_Done], list[_Done]]:
    """What goes in the next request, and what is left."""
    size = 0
    for index, each in enumerate(done):
        size += len(each.result or b"")
        if index and (size > _MOST_BYTES or index == _MOST):
            return done[:index], done[index:]
    return done, []

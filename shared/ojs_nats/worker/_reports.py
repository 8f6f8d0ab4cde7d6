"""The way of outcomes to the server: successes go together, and each outcome is tried until the server has decided."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from ojs_api.work import ACK_MANY, NACK
from ojs_nats._logging import get_logger
from ojs_nats._operations import Request
from ojs_nats._refusals import refused
from ojs_nats._transport import Transport
from ojs_nats.errors import (
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    OjsError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from ojs_nats.jobs import Job
from ojs_nats.worker import _outcome
from ojs_nats.worker._outcome import Report
from ojs_nats.worker._timings import WorkerTimings

log = get_logger("ojs_nats.worker.reports")

_MOST: Final = 1_000
_MOST_BYTES: Final = 1_000_000
"""The most bytes of results in one request; a larger one goes alone."""
_TOO_LARGE: Final = 413
_STOPPED: Final = "the worker has stopped"
_UNREPORTED: Final = "how a job ended could not be reported: it will run again"

_NOT_OURS = (NotFoundError, ConflictError)
"""Errors of the server by which an attempt is somebody else's, or has been ended."""
_UNACCEPTABLE = (InvalidRequestError, TooLargeError)
"""Errors of the server about what a report says. Anything else is about the way there, or about now."""


class ResultRefused(OjsError):
    """The server refuses to keep what a handler returned."""


class Refusal(msgspec.Struct):
    """Why the server refuses one of several things."""

    code: str
    message: str
    retryable: bool = False


_NOT_SAID: Final = Refusal("unknown", "the answer says nothing of it", retryable=True)


class _Item(msgspec.Struct):
    index: int
    error: Refusal | None = None


class Acked(msgspec.Struct):
    """The server's answer about several acks."""

    items: list[_Item]

    @property
    def failed(self) -> int:
        return sum(item.error is not None for item in self.items)


class _Named(msgspec.Struct):
    id: str


class _Nacked(msgspec.Struct):
    job: _Named


class Success:
    """A job that went well, on its way to the server. `told` is set once the server has decided, or won't be asked
    any more.
    """

    def __init__(self, job: Job, result: msgspec.Raw | None, trial: Trial) -> None:
        self.job = job
        self.result = result
        self.trial = trial
        self.alone = False
        """Whether it goes in a request of its own, since one that it was in was refused."""
        self.sent = False
        """Whether it is in a request that is under way."""
        self.told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def member(self) -> dict[str, Any]:
        """Return what a request says of it."""
        named = {"job_id": self.job.id, "attempt": self.job.attempt}
        return named if self.result is None else {**named, "result": self.result}


class Trial:
    """The tries of one outcome: when the next one is due, and until when it is tried at all, in seconds of the
    loop's clock.
    """

    def __init__(self, job: Job, timings: WorkerTimings) -> None:
        self._timings = timings
        self._pause = timings.report_pause_s
        self._warned = False
        self.due = asyncio.get_running_loop().time()
        lease = 0.0 if job.visibility_timeout_ms is None else job.visibility_timeout_ms / 1_000
        self._until = self.due + max(timings.report_at_least_s, lease)

    def failed(self, job: Job, error: Exception) -> bool:
        """Plan the next try, and return whether there is one."""
        now = asyncio.get_running_loop().time()
        if now >= self._until:
            return False
        if not self._warned:
            self._warned = True
            log.warning("how a job ended is reported again", job_id=job.id, reason=str(error))
        asked = error.retry_after_s if isinstance(error, RefusedError | UnavailableError) else None
        asked = min(asked or 0.0, self._timings.retry_after_at_most_s)
        wait = max(self._pause * random.uniform(0.5, 1.0), asked)  # noqa: S311
        self._pause = min(self._pause * 2, self._timings.report_longest_pause_s)
        self.due = min(now + wait, self._until)
        return True


class Reports:
    """The reports of one worker; `queue` is that of all its jobs, if they have the same.

    Only an OJS error of the server decides about an outcome: that it isn't this worker's to report, or that it
    can't be kept as it is. Everything else (no answer, a proxy's answer, a server that can't work) is followed by
    another try, for as long as the job's lease may last, and for a minute at the least.
    """

    def __init__(
        self,
        transport: Transport,
        worker_id: str,
        queue: str | None,
        timings: WorkerTimings = WorkerTimings(),
        carried: Callable[[], bool] = lambda: False,
    ) -> None:
        self._transport = transport
        self._worker_id = worker_id
        self._queue = queue
        self._timings = timings
        self._carried = carried
        self._successes: dict[Success, None] = {}
        """In the order in which they ended."""
        self._more = asyncio.Event()
        self._closed = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, job: Job, report: Report) -> None:
        """Report it, until the server has decided or the time for it is over. Raises nothing, but CancelledError."""
        trial = Trial(job, self._timings)
        if report.operation == "nack":
            await self._nack(job, report, trial)
            return
        success = Success(job, report.members.get("result"), trial)
        self._successes[success] = None
        if not self._carried():
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._timings.carried_at_most_s, self._not_carried)
        await success.told

    def flush(self) -> None:
        """Send what waits for a fetch to carry it."""
        if self._successes and not self._closed.is_set():
            self._more.set()
            if self._sender is None:
                self._sender = asyncio.create_task(self._send_all())

    @property
    def carriable(self) -> int:
        """How many successes the next fetch could carry."""
        return len(self._portion(alone=False))

    def take(self, most: int) -> list[Success]:
        """Return up to so many successes for a fetch to carry; what becomes of them is for `acked` or `refused`."""
        taken = self._portion(alone=False)[:most]
        for success in taken:
            success.sent = True
        return taken

    def acked(self, portion: Sequence[Success], answer: Acked) -> None:
        """Go on by what the server says of each."""
        items = {item.index: item.error for item in answer.items}
        for index, success in enumerate(portion):
            success.sent = False
            error = items.get(index, _NOT_SAID)
            if error is None:
                self._done(success)
            elif error.retryable:
                self._failed(success, OjsError(error.message))
            else:
                self._failed(success, refused(error.code, error.message, status=0))
        self._more.set()

    def refused(self, portion: Sequence[Success], error: Exception) -> None:
        """Go on behind a request that was refused as a whole, or not answered."""
        for success in portion:
            success.sent = False
        self._all_failed(portion, error)
        self.flush()

    def close(self) -> None:
        """Report no more, and say which outcomes the server hasn't heard of."""
        self._closed.set()
        if self._sender is not None:
            self._sender.cancel()
        if self._timer is not None:
            self._timer.cancel()
        for success in self._successes:
            self._give_up(success)
        self._successes.clear()

    def _not_carried(self) -> None:
        self._timer = None
        self.flush()

    async def _send_all(self) -> None:
        try:
            while self._successes:
                await asyncio.sleep(0)  # others that end in this moment go with them
                if portion := self._portion():
                    await self._ack(portion)
                else:
                    await self._wait()
        finally:
            self._sender = None

    def _portion(self, *, alone: bool = True) -> list[Success]:
        """Return what goes in the next request: those that are due and fit. One that goes `alone` may be what is
        returned.
        """
        now, size = asyncio.get_running_loop().time(), 0
        portion: list[Success] = []
        for success in self._successes:
            if success.sent or success.trial.due > now or (success.alone and (portion or not alone)):
                continue
            size += len(success.result or b"")
            if portion and (size > _MOST_BYTES or len(portion) == _MOST):
                break
            portion.append(success)
            if success.alone:
                break
        return portion

    async def _wait(self) -> None:
        """Wait until one is due, or something has changed."""
        self._more.clear()
        due = min((success.trial.due for success in self._successes if not success.sent), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._more.wait()

    async def _ack(self, portion: Sequence[Success]) -> None:
        body = {"worker_id": self._worker_id, "jobs": [success.member() for success in portion]}
        request = Request(ACK_MANY, body=body, queue=self._queue)
        for success in portion:
            success.sent = True
        try:
            answer = await self._transport.send(request, retry_for_s=0.0)
            self.acked(portion, msgspec.json.decode(answer, type=Acked))
        except Exception as error:  # noqa: BLE001  # nothing may end the loop that all reports go through
            self.refused(portion, error)

    def _all_failed(self, portion: Sequence[Success], error: Exception) -> None:
        blamed = isinstance(error, _UNACCEPTABLE) or (isinstance(error, RefusedError) and error.status == _TOO_LARGE)
        if blamed and len(portion) > 1:  # it may be the fault of one
            for success in portion:
                success.alone = True
            return
        for success in portion:
            # What is before the server may dislike what one of them says.
            success.alone = success.alone or isinstance(error, RefusedError)
            self._failed(success, error)

    def _failed(self, success: Success, error: Exception) -> None:
        """Go on behind a try that failed."""
        job = success.job
        if isinstance(error, _NOT_OURS):
            log.warning("a job's result was refused", job_id=job.id, code=error.code, reason=str(error))
            self._done(success)
        elif isinstance(error, _UNACCEPTABLE):
            log.warning("a job's result was refused", job_id=job.id, code=error.code, reason=str(error))
            self._successes.pop(success, None)
            # Without a report the job would hang until its lease ends.
            failed = asyncio.create_task(self._nack(job, _outcome.raised(ResultRefused(str(error))), success.trial))
            failed.add_done_callback(lambda _: _set(success.told))
        elif not success.trial.failed(job, error):
            self._successes.pop(success, None)
            self._give_up(success, str(error))

    def _done(self, success: Success) -> None:
        self._successes.pop(success, None)
        _set(success.told)

    def _give_up(self, success: Success, reason: str = _STOPPED) -> None:
        log.error(_UNREPORTED, job_id=success.job.id, reason=reason)
        _set(success.told)

    async def _nack(self, job: Job, report: Report, trial: Trial) -> None:
        shortened = False
        while not self._closed.is_set():
            body = {"job_id": job.id, "worker_id": self._worker_id, "attempt": job.attempt, **report.members}
            try:
                answer = await self._transport.send(Request(NACK, body=body, queue=job.queue), retry_for_s=0.0)
                msgspec.json.decode(answer, type=_Nacked)
            except _NOT_OURS as error:
                log.warning("a job's failure was refused", job_id=job.id, code=error.code, reason=str(error))
                return
            except Exception as error:  # noqa: BLE001  # whatever it is, the job would hang without a report
                if isinstance(error, _UNACCEPTABLE) and not shortened:
                    log.warning("a job's failure was refused", job_id=job.id, code=error.code, reason=str(error))
                    report, shortened = _outcome.without_details(report, str(error), self._timings.away_ms), True
                    continue
                if not trial.failed(job, error):
                    log.error(_UNREPORTED, job_id=job.id, reason=str(error))
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(trial.due):
                        await self._closed.wait()
            else:
                return
        log.error(_UNREPORTED, job_id=job.id, reason=_STOPPED)


def _set(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)

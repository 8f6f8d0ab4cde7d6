"""Asks the server for jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import msgspec

from ojs_api.work import FETCH
from ojs_link.lasting import Lasting
from ojs_nats._logging import get_logger
from ojs_nats._names import MOST_QUEUES
from ojs_nats._operations import Request
from ojs_nats._refusals import refused
from ojs_nats._transport import Transport
from ojs_nats.errors import NotFoundError, OjsError, PermissionDeniedError, RateLimitedError, UnauthorizedError
from ojs_nats.jobs import Job
from ojs_nats.worker._reports import Acked, Refusal, Reports, Success
from ojs_nats.worker._timings import WorkerTimings

log = get_logger("ojs_nats.worker.fetching")

_REMEDY: Final = (
    "start it again with a key that lives and may do that (OJS_AUTH_TOKEN, --token-file, App(token=…)); how its jobs ended is "
    "reported again for a minute, or as long as their leases"
)


class Fetched(msgspec.Struct, frozen=True):
    """The jobs of an answer, and those of them that can't be read, with the reason: only what their report needs is
    known. `all_found` says that it brought as many as it could have.
    """

    jobs: Sequence[Job] = ()
    unreadable: Sequence[tuple[Job, Exception]] = ()
    all_found: bool = False


class _Answer(msgspec.Struct):
    jobs: list[msgspec.Raw]
    acks: Acked | None = None
    fetch_error: Refusal | None = None


class _Claimed(msgspec.Struct):
    id: str
    type: str
    attempt: int
    queue: str


class Fetching:
    """The fetches of one worker; `queue` is that of all its jobs, if they have the same.

    The server keeps a fetch that finds nothing for `wait_ms`, and so an idle worker that is to stop: a fetch
    isn't broken off, since the jobs of an answer that nobody read would have to be taken back. `register` is
    called when the server doesn't know the worker, and so the types of its handlers, any more.
    """

    def __init__(
        self,
        transport: Transport,
        worker_id: str,
        queues: Sequence[str],
        queue: str | None,
        wait_ms: int,
        *,
        reports: Reports,
        register: Callable[[], Coroutine[Any, Any, None]],
        timings: WorkerTimings = WorkerTimings(),
    ) -> None:
        self._trouble = Lasting()
        """Why fetches fail, as long as they do."""
        self._transport = transport
        self._portions = [list(queues[start : start + MOST_QUEUES]) for start in range(0, len(queues), MOST_QUEUES)]
        self._turn = 0
        self._asked = {"worker_id": worker_id, "handlers_declared": True}
        self._wait_ms = wait_ms
        self._queue = queue
        self._reports = reports
        self._register = register
        self._timings = timings

    @property
    def answered(self) -> bool:
        """Whether the last fetch was."""
        return not self._trouble.is_there

    async def fetch(self, count: int, carried: Sequence[Success] = (), *, wait: bool = True) -> Fetched:
        """Return up to `count` jobs, once the server has heard of the successes that are `carried`.

        There are none if no server answers, or there were none for as long as it was to wait. Raises nothing.
        """
        pause = self._timings.fetch_pause_s
        try:
            fetched = await self._fetched(count, carried, wait=wait and not carried)
        except NotFoundError as error:
            self._trouble.noted(str(error))
            log.warning("the server doesn't know this worker: it registers again", reason=str(error))
            await self._registered_again()
        except (UnauthorizedError, PermissionDeniedError) as error:
            self._trouble.noted(str(error))
            log.error("the server doesn't take this worker's key", reason=str(error), remedy=_REMEDY)
        except OjsError as error:
            self._say_failed(str(error))
            if isinstance(error.__cause__, RateLimitedError):
                pause = max(pause, min(error.__cause__.retry_after_s or 0.0, self._timings.retry_after_at_most_s))
        except Exception as error:  # noqa: BLE001  # whatever an answer holds, the next fetch follows
            self._say_failed(str(error), error=type(error).__name__)
        else:
            if (seconds := self._trouble.over()) is not None:
                log.info("fetches are answered again", after_seconds=round(seconds, 1))
            return fetched
        await asyncio.sleep(pause)
        return Fetched()

    async def _fetched(self, count: int, carried: Sequence[Success], *, wait: bool) -> Fetched:
        """Ask for all queues at once; if they are more than a fetch may name, for one portion after the other, and
        wait at each in turn.
        """
        if not wait or len(self._portions) > 1:
            for queues in self._portions:
                found = await self._portion(queues, count, 0, carried)
                if carried or found.jobs or found.unreadable:
                    return found
            if not wait:
                return Fetched()
            self._turn = (self._turn + 1) % len(self._portions)
        return await self._portion(self._portions[self._turn], count, self._wait_ms)

    async def _portion(self, queues: Sequence[str], count: int, wait_ms: int, carried: Sequence[Success] = ()) -> Fetched:
        body = {**self._asked, "queues": queues, "count": count, "wait_ms": wait_ms}
        if carried:
            body["acks"] = [success.member() for success in carried]
        answer_s = wait_ms / 1_000 + self._transport.timings.beyond_s
        request = Request(FETCH, body=body, queue=self._queue, answer_s=answer_s)
        try:
            answer = msgspec.json.decode(await self._transport.send(request, retry_for_s=0.0), type=_Answer)
            if carried and answer.acks is None:
                raise OjsError("the answer says nothing of the acks")
        except BaseException as error:
            self._reports.refused(carried, error if isinstance(error, Exception) else OjsError("the fetch was broken off"))
            raise
        refused_acks = 0
        if answer.acks is not None:
            self._reports.acked(carried, answer.acks)
            refused_acks = answer.acks.failed
        if answer.fetch_error is not None:
            raise refused(answer.fetch_error.code, answer.fetch_error.message, status=0)
        jobs: list[Job] = []
        unreadable: list[tuple[Job, Exception]] = []
        for raw in answer.jobs:
            try:
                jobs.append(msgspec.json.decode(raw, type=Job))
            except (ValueError, RecursionError) as error:
                if (claimed := _claimed(raw)) is not None:
                    unreadable.append((claimed, error))
        return Fetched(jobs, unreadable, all_found=len(answer.jobs) == count - refused_acks)

    def _say_failed(self, reason: str, **members: str) -> None:
        if (seconds := self._trouble.noted(reason)) is not None:
            log.warning("a fetch failed", reason=reason, seconds=round(seconds), **members)

    async def _registered_again(self) -> None:
        try:
            await self._register()
        except Exception as error:  # noqa: BLE001  # the next fetch tries it again
            log.warning("the worker could not register again", error=type(error).__name__, reason=str(error))


def _claimed(raw: msgspec.Raw) -> Job | None:
    """Return what has to be known of a job to report it, None if not even that can be read: the server takes it
    back.
    """
    try:
        claimed = msgspec.json.decode(raw, type=_Claimed)
    except (ValueError, RecursionError) as error:
        log.error("a job can't be read", reason=str(error))
        return None
    return Job(claimed.id, claimed.type, "active", queue=claimed.queue, attempt=claimed.attempt)

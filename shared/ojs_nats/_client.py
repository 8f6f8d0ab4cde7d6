"""The client: operations of the server, for one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import msgspec

from ojs_nats._connect import transport, url_of
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._errors import Duplicate, JobCancelled, JobFailed, NotFound, Refused, ResultTimeout
from ojs_nats._jobs import Job, NewJob
from ojs_nats._operations import CANCEL_JOB, GET_JOB, GET_RESULT, PUSH, PUSH_MANY, Operation, Request

R = TypeVar("R")

_ASK_S: Final = 20.0
"""How long the server keeps a question for a result that isn't there yet."""


class _One(msgspec.Struct):
    job: Job


class _Many(msgspec.Struct):
    jobs: list[Job]


class Client:
    """Talks to a server, for the event loop that it is first used in. `async with Client() as client:` closes its connections.

    Requests are repeated for up to `patience` while nobody answers, or who answers can't work; a push never makes two jobs
    by that, since it names its job. Everything raises `Refused` by what the server said, and `Unavailable`.
    """

    def __init__(self, url: str | None = None, *, patience: Duration = 30.0) -> None:
        self.url = url_of(url)
        self.transport = transport(self.url, patience_s=milliseconds(patience) / 1_000)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    async def push(self, new: NewJob[R]) -> JobHandle[R]:
        """Raises Duplicate by the id or the identity of another job, QueueFull, and what every operation raises."""
        found = await self._pushed(PUSH, new.envelope(), [new])
        return JobHandle(self, found[0], new.returns)

    async def push_many(self, jobs: Sequence[NewJob[Any]]) -> list[JobHandle[Any]]:
        """Push all of them or, if one is refused, none."""
        if not jobs:
            return []
        found = await self._pushed(PUSH_MANY, {"jobs": [new.envelope() for new in jobs]}, jobs)
        return [JobHandle(self, job_id, new.returns) for job_id, new in zip(found, jobs, strict=True)]

    async def job(self, job_id: str) -> Job:
        """Raises NotFound."""
        answer = await self.transport.send(Request(GET_JOB, {"job_id": job_id}))
        return msgspec.json.decode(answer, type=_One).job

    async def cancel(self, job_id: str) -> Job:
        """A worker that runs it is told to stop. Raises NotFound, Conflict if it has ended otherwise."""
        answer = await self.transport.send(Request(CANCEL_JOB, {"job_id": job_id}))
        return msgspec.json.decode(answer, type=_One).job

    async def ended(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job once it has ended; it is listened for, not asked for. Raises ResultTimeout, NotFound."""
        limit = None if timeout is None else milliseconds(timeout) / 1_000
        try:
            async with asyncio.timeout(limit):
                while not (job := await self.job(job_id)).ended:
                    await self._until_heard_of(job_id)
        except TimeoutError:
            raise ResultTimeout(f"job {job_id} hadn't ended after {timeout}") from None
        return job

    async def _until_heard_of(self, job_id: str) -> None:
        """Until the job ends, or the server has been asked for long enough. Raises NotFound."""
        asked = Request(GET_RESULT, {"job_id": job_id, "wait": "true", "timeout": f"{_ASK_S:g}"}, answer_s=_ASK_S + 10.0)
        try:
            await self.transport.send(asked)
        except Refused as error:
            if error.code not in {"request_timeout", "result_pruned"}:
                raise

    async def _pushed(self, operation: Operation, body: Any, jobs: Sequence[NewJob[Any]]) -> list[str]:
        """The ids of the jobs that are there now: with a policy of uniqueness, a job's may be another one's."""
        try:
            answer = await self.transport.send(Request(operation, body=body))
        except Duplicate as error:
            if error.existing_job_id not in {new.id for new in jobs}:
                raise
            # An earlier try of this push was carried out though nobody heard, unless only some of its jobs are there.
            for new in jobs:
                try:
                    await self.job(new.id)
                except NotFound:
                    raise error from None
            return [new.id for new in jobs]
        if operation is PUSH:
            return [msgspec.json.decode(answer, type=_One).job.id]
        return [job.id for job in msgspec.json.decode(answer, type=_Many).jobs]


class JobHandle(Generic[R]):
    """A job that was pushed."""

    def __init__(self, client: Client, job_id: str, returns: Any = Any) -> None:
        self._client = client
        self.id = job_id
        self._returns = returns

    def __repr__(self) -> str:
        return f"JobHandle({self.id})"

    async def job(self) -> Job:
        """As it is now."""
        return await self._client.job(self.id)

    async def cancel(self) -> Job:
        return await self._client.cancel(self.id)

    async def result(self, timeout: Duration | None = None) -> R:
        """What its handler returned, as the type that its definition names. Raises JobFailed, JobCancelled, ResultTimeout."""
        job = await self._client.ended(self.id, timeout)
        if job.state == "cancelled":
            raise JobCancelled(f"job {self.id} has been cancelled")
        if job.state != "completed":
            said = f": {job.error.message}" if job.error else ""
            raise JobFailed(f"job {self.id} has failed for good after {job.attempt} attempts{said}", job.error)
        found: R = msgspec.convert(job.result, self._returns)
        return found

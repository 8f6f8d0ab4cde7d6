"""The client of an app: what it pushes goes through the app's middleware, what it reads through its codec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from ojs_nats._client import Client, JobHandle
from ojs_nats._durations import Duration
from ojs_nats._errors import JobDropped, Refused
from ojs_nats._jobs import Job, NewJob

if TYPE_CHECKING:
    from ojs_nats._app import App

R = TypeVar("R")


class Codec(Protocol):
    """What makes results readable that middleware has encoded."""

    def decoded(self, value: Any) -> Any:
        """Plain values as they are."""


class AppClient(Client):
    """Raises JobDropped when a middleware drops what is pushed."""

    def __init__(self, app: App) -> None:
        super().__init__(app.url)
        self._app = app

    async def push(self, new: NewJob[R]) -> JobHandle[R]:
        return await super().push(await self._prepared(new))

    async def push_many(self, jobs: Sequence[NewJob[Any]]) -> list[JobHandle[Any]]:
        return await super().push_many([await self._prepared(new) for new in jobs])

    async def push_bulk(self, jobs: Sequence[NewJob[Any]]) -> list[JobHandle[Any] | Refused]:
        return await super().push_bulk([await self._prepared(new) for new in jobs])

    async def ended(self, job_id: str, timeout: Duration | None = None) -> Job:
        job = await super().ended(job_id, timeout)
        codec = self._app.codec
        return job if codec is None else msgspec.structs.replace(job, result=codec.decoded(job.result))

    async def _prepared(self, new: NewJob[R]) -> NewJob[R]:
        if not self._app.enqueue:
            return new
        left = await self._app.enqueue.run(new)
        if left is None:
            raise JobDropped(f"a middleware of the app dropped the job {new.id} ({new.type})")
        return left

"""What an application's jobs are, and the server that they go to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack
from weakref import WeakKeyDictionary

from ojs_nats import _portal
from ojs_nats._chains import EnqueueChain, ExecutionChain
from ojs_nats._client import Client
from ojs_nats._connect import url_of
from ojs_nats._definitions import JobDecorator, JobDefinition
from ojs_nats._enqueue import AppClient, Codec
from ojs_nats._options import DefinitionOptions

Lifespan = TypeVar("Lifespan", bound=Callable[[], AsyncIterator[Any]])


class App:
    """The jobs of an application. `url` is the server's, else OJS_URL, else http://127.0.0.1:8080.

    `enqueue` is the middleware around its pushes, `execution` that around its handlers; `codec` reads results that middleware
    has encoded.

    Each event loop that pushes has a client of its own, which is closed with `async with app:` or by `asyncio.run`.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = url_of(url)
        self.enqueue = EnqueueChain()
        self.execution = ExecutionChain()
        self.codec: Codec | None = None
        self.definitions: dict[str, JobDefinition[Any, Any]] = {}
        self.worker_state: Callable[[], AsyncIterator[Any]] | None = None
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Client] = WeakKeyDictionary()

    @property
    def client(self) -> Client:
        """The client of the loop that runs."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = AppClient(self)
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the loop that runs; the next push opens new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def close_sync(self) -> None:
        """Close the connections of `push_sync`, which the end of the process does, too."""
        _portal.call(self.close())

    def lifespan(self, made: Lifespan) -> Lifespan:
        """Makes an async generator function what a worker begins with: what it yields is `ctx.state` of the worker's jobs.

        Behind the `yield` it cleans up, once they have ended. Raises ValueError if there is one already.
        """
        if self.worker_state is not None:
            raise ValueError("the app has a lifespan already: a worker has one, which may use others")
        self.worker_state = made
        return made

    def job(self, job_type: str, **options: Unpack[DefinitionOptions]) -> JobDecorator:
        """Makes a function, plain or async, the handler of a job type. Raises ValueError if the type has one already.

        Its parameters are the job's arguments, in order and converted to the types of its hints; a first one that is hinted
        `JobContext` is given the running job.
        """

        def define(handler: Callable[..., Any]) -> JobDefinition[Any, Any]:
            if job_type in self.definitions:
                raise ValueError(f"{job_type} has a handler already: {self.definitions[job_type].handler.__qualname__}")
            definition: JobDefinition[Any, Any] = JobDefinition(self, job_type, handler, options)
            self.definitions[job_type] = definition
            return definition

        return define

"""What an application's jobs are, and the server that they go to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from ojs_nats._chains import EnqueueChain, ExecutionChain
from ojs_nats._client import Client
from ojs_nats._clients import Clients
from ojs_nats._closing import Closing
from ojs_nats._connect import authorized, url_of
from ojs_nats._definitions import JobDecorator, JobDefinition
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._enqueue import AppSurroundings, Codec
from ojs_nats._options import DefinitionOptions
from ojs_nats._sync import SyncClient
from ojs_nats._tls import HTTPS, Tls, check_scheme
from ojs_nats._worker.context import JobContext

P = ParamSpec("P")
R = TypeVar("R")
Lifespan = TypeVar("Lifespan", bound=Callable[[], AsyncIterator[Any]])


class App(Closing):
    """The jobs of an application. `url` is the server's, else OJS_URL, else http://127.0.0.1:8080.

    `token` is the key that the server asks for, of its workers too, else OJS_AUTH_TOKEN, else OJS_API_KEY. `headers` go with
    every request: what a proxy before the server asks for. Requests are repeated for up to `patience` while nobody answers,
    and `tls` is for `https://` addresses, as `Client` has it.

    `enqueue` is the middleware around its pushes, `execution` that around its handlers; `codec` reads results that middleware
    has encoded.

    Each event loop that pushes has a client of its own, which is closed with `async with app:` or by `asyncio.run`; `sync` is
    the client of code without a loop.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Duration = 30.0,
        tls: Tls | ssl.SSLContext | None = None,
    ) -> None:
        """Raises ValueError for an address that names no server, and for files of TLS that can't be used."""
        self.url = url_of(url)
        check_scheme(self.url, tls)
        self.tls = tls
        self.headers = authorized(headers, token)
        self.patience_s = milliseconds(patience) / 1_000
        self.enqueue = EnqueueChain()
        self.execution = ExecutionChain()
        self.codec: Codec | None = None
        self.definitions: dict[str, JobDefinition[Any, Any]] = {}
        self.worker_state: Callable[[], AsyncIterator[Any]] | None = None
        self._clients = Clients(self._connect)
        self.sync = SyncClient(self.url, clients=self._clients)

    def _connect(self) -> Client:
        tls = self.tls if self.url.startswith(HTTPS) else None  # it may have been moved
        return Client(self.url, patience=self.patience_s, headers=self.headers, tls=tls, surroundings=AppSurroundings(self))

    @property
    def client(self) -> Client:
        """The client of the loop that runs."""
        return self._clients.of(asyncio.get_running_loop())

    async def close(self) -> None:
        """Close the connections of the loop that runs; the next push opens new ones."""
        await self._clients.close()

    @contextmanager
    def moved(self, url: str) -> Iterator[None]:
        """Talk to another server meanwhile, on connections of its own: for tests."""
        before, self.url = self.url, url_of(url)
        try:
            with self._clients.others():
                yield
        finally:
            self.url = before

    def lifespan(self, made: Lifespan) -> Lifespan:
        """Makes an async generator function what a worker begins with: what it yields is `ctx.state` of the worker's jobs.

        Behind the `yield` it cleans up, once they have ended. Raises ValueError if there is one already.
        """
        if self.worker_state is not None:
            raise ValueError("the app has a lifespan already: a worker has one, which may use others")
        self.worker_state = made
        return made

    @overload
    def job(self, handler: Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]], /) -> JobDefinition[P, R]: ...
    @overload
    def job(self, handler: Callable[P, Coroutine[Any, Any, R]], /) -> JobDefinition[P, R]: ...
    @overload
    def job(self, handler: Callable[Concatenate[JobContext, P], R], /) -> JobDefinition[P, R]: ...
    @overload
    def job(self, handler: Callable[P, R], /) -> JobDefinition[P, R]: ...
    @overload
    def job(self, job_type: str | None = None, **options: Unpack[DefinitionOptions]) -> JobDecorator: ...
    def job(self, job_type: str | Callable[..., Any] | None = None, **options: Unpack[DefinitionOptions]) -> Any:
        """Make a function, plain or async, the handler of a job type: `@app.job("email.send", …)`. Without a type, also as
        `@app.job` alone, the type is the function's name.

        Its parameters are the job's arguments, in order and converted to the types of its hints; a first one that is hinted
        `JobContext` is given the running job. Raises ValueError if the type has a handler already, isn't a job type's name, or
        an option isn't what a server takes; TypeError for a function that no job could be run with.
        """
        if callable(job_type):
            return self._define(None, job_type, options)
        return lambda handler: self._define(job_type, handler, options)

    def _define(self, job_type: str | None, handler: Callable[..., Any], options: DefinitionOptions) -> JobDefinition[Any, Any]:
        known = handler.__name__ if job_type is None else job_type
        if known in self.definitions:
            raise ValueError(f"{known} has a handler already: {self.definitions[known].handler.__qualname__}")
        definition: JobDefinition[Any, Any] = JobDefinition(self, known, handler, options)
        self.definitions[known] = definition
        return definition

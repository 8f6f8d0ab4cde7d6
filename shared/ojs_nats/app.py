"""What an application's jobs are, and the server that they go to."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from ojs_nats import _deprecated
from ojs_nats._clients import Clients
from ojs_nats._closing import Closing
from ojs_nats._connect import authorized, url_of
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._hooks import ClientHooks, Codec
from ojs_nats.chains import EnqueueChain, ExecutionChain
from ojs_nats.client import Client
from ojs_nats.definitions import JobDecorator, JobDefinition
from ojs_nats.errors import JobDropped
from ojs_nats.jobs import JobRequest
from ojs_nats.options import DefinitionOptions
from ojs_nats.sync import SyncClient
from ojs_nats.tls import HTTPS, Tls, check_scheme
from ojs_nats.worker.context import JobContext

if TYPE_CHECKING:
    from ojs_nats.definitions import AsyncContextDefinition, AsyncDefinition, PlainContextDefinition, PlainDefinition

P = ParamSpec("P")
R = TypeVar("R")
Lifespan = TypeVar("Lifespan", bound=Callable[[], AsyncIterator[Any]])


class App(Closing):
    """An application: its jobs, and the server that they go to.

    Each event loop that pushes has a client of its own, which is closed with `async with app:` or by `asyncio.run`; `sync` is
    the client of code without a loop.

    Args:
        url: The server's address, `http://`, `https://`, `nats://` or `tls://`; else OJS_URL, else http://127.0.0.1:8080.
        token: The key that the server asks for, of workers too; else OJS_AUTH_TOKEN, else OJS_API_KEY.
        headers: What goes with every request: what a proxy before the server asks for.
        retry_for: For how long a call is repeated while nobody answers, in seconds or as `"30s"`.
        tls: For `https://` addresses, as `Client` has it.

    Attributes:
        enqueue: The middleware around pushes.
        execution: The middleware around handlers.
        codec: What reads results that middleware has encoded; None if there is none.
        definitions: The jobs, by type.
        sync: The client of code without an event loop.

    Raises:
        ValueError: For an address that names no server, and for files of TLS that can't be used.

    Example:
        >>> app = App("http://127.0.0.1:8080")
        >>> @app.job("email.send", queue="email", timeout="30s")
        ... async def send_email(to: str) -> None: ...
        >>> send_email.job("ada@example.org").queue
        'email'
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_for: Duration = 30.0,
        tls: Tls | ssl.SSLContext | None = None,
    ) -> None:
        self.url = url_of(url)
        check_scheme(self.url, tls)
        self.tls = tls
        self.headers = authorized(headers, token)
        self.retry_for_s = milliseconds(retry_for) / 1_000
        self.enqueue = EnqueueChain()
        self.execution = ExecutionChain()
        self.codec: Codec | None = None
        self.definitions: dict[str, JobDefinition[Any, Any]] = {}
        self.worker_state: Callable[[], AsyncIterator[Any]] | None = None
        self._clients = Clients(self._connect)
        self.sync = SyncClient(self.url, clients=self._clients)

    def _connect(self) -> Client:
        tls = self.tls if self.url.startswith(HTTPS) else None  # it may have been moved
        return Client(self.url, retry_for=self.retry_for_s, headers=self.headers, tls=tls, hooks=_AppHooks(self))

    @property
    def client(self) -> Client:
        """The client of the loop that runs. Raises RuntimeError where none does: there it is `sync`."""
        return self._clients.of(asyncio.get_running_loop())

    async def close(self) -> None:
        """Close the connections of the loop that runs; the next push opens new ones."""
        await self._clients.close()

    @contextmanager
    def moved(self, url: str) -> Iterator[None]:
        """Talk to another server within the `with`, on connections of its own: for tests."""
        before, self.url = self.url, url_of(url)
        try:
            with self._clients.others():
                yield
        finally:
            self.url = before

    def lifespan(self, made: Lifespan) -> Lifespan:
        """Make an async generator function what a worker begins with: what it yields is `ctx.state` of the worker's jobs.

        Behind the `yield` it cleans up, once they have ended.

        Raises:
            ValueError: The app has one already.
        """
        if self.worker_state is not None:
            raise ValueError("the app has a lifespan already: a worker has one, which may use others")
        self.worker_state = made
        return made

    # A coroutine is no plain function's result, though type checkers say that the overloads overlap.
    @overload
    def job(  # type: ignore[overload-overlap]
        self, handler: Callable[Concatenate[JobContext, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextDefinition[P, R]: ...
    @overload
    def job(  # type: ignore[overload-overlap]
        self, handler: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncDefinition[P, R]: ...
    @overload
    def job(self, handler: Callable[Concatenate[JobContext, P], R], /) -> PlainContextDefinition[P, R]: ...
    @overload
    def job(self, handler: Callable[P, R], /) -> PlainDefinition[P, R]: ...
    @overload
    def job(self, job_type: str | None = None, **options: Unpack[DefinitionOptions]) -> JobDecorator: ...
    def job(self, job_type: str | Callable[..., Any] | None = None, **options: Unpack[DefinitionOptions]) -> Any:
        """Make a function, plain or async, the handler of a job type: `@app.job("email.send", …)`.

        The function's parameters are the job's arguments, in order and converted to the types of its hints. A first one that
        is hinted `JobContext` is given the running job. The function is called as before.

        Args:
            job_type: The type; without one, also as `@app.job` alone, it is the function's name.
            **options: What each push of the job says (`Options`), and `soft_timeout` and `runs_in` for its worker.

        Returns:
            The definition: the function, with `push`, `push_sync`, `later`, `options` and `job` as attributes.

        Raises:
            ValueError: The type has a handler already, or isn't a job type's name, or no server takes an option.
            TypeError: No job could be run with the function.
        """
        if callable(job_type):
            return self._define(None, job_type, options)
        return lambda handler: self._define(job_type, handler, options)

    def _define(self, job_type: str | None, handler: Callable[..., Any], options: DefinitionOptions) -> JobDefinition[Any, Any]:
        known = getattr(handler, "__name__", repr(handler)) if job_type is None else job_type
        if known in self.definitions:
            raise ValueError(f"{known} has a handler already: {self.definitions[known].handler.__qualname__}")
        definition: JobDefinition[Any, Any] = JobDefinition(self, known, handler, options)
        self.definitions[known] = definition
        return definition


class _AppHooks(ClientHooks):
    """The hooks of an app's clients: its middleware and its codec."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def prepared(self, new: JobRequest[R]) -> JobRequest[R]:
        if not self._app.enqueue:
            return new
        left = await self._app.enqueue.run(new)
        if left is None:
            raise JobDropped(f"a middleware of the app dropped the job {new.id} ({new.type})")
        return left

    def decoded(self, value: Any) -> Any:
        return value if self._app.codec is None else self._app.codec.decoded(value)


_deprecated.arguments(App, patience="retry_for")

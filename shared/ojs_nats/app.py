"""The application: its jobs, and the server that they go to."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from ojs_nats import _deprecated
from ojs_nats._chain_runs import pushed
from ojs_nats._clients import Clients
from ojs_nats._closing import Closing
from ojs_nats._connect import authorized, url_of
from ojs_nats._defining import define
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._hooks import ClientHooks, Codec
from ojs_nats._loops import running_loop
from ojs_nats._tls import HTTPS, check_scheme
from ojs_nats.chains import EnqueueChain, ExecutionChain
from ojs_nats.client import Client
from ojs_nats.definitions import (
    AsyncContextDefinition,
    AsyncDefinition,
    JobDecorator,
    JobDefinition,
    PlainContextDefinition,
    PlainDefinition,
)
from ojs_nats.errors import JobDropped
from ojs_nats.jobs import JobRequest
from ojs_nats.options import DefinitionOptions
from ojs_nats.sync import SyncClient
from ojs_nats.tls import Tls
from ojs_nats.worker._context import JobContext

__all__ = ["App"]

P = ParamSpec("P")
R = TypeVar("R")
Lifespan = TypeVar("Lifespan", bound=Callable[[], AsyncIterator[Any]])


@dataclass
class _Inside:
    """What clients and workers of an app take from it."""

    headers: Mapping[str, str]
    retry_for_s: float
    tls: Tls | ssl.SSLContext | None
    lifespan: Callable[[], AsyncIterator[Any]] | None = None


class App(Closing):
    """An application: its jobs, and the server that they go to.

    Each event loop that pushes has a client of its own, `client`; `async with app:` and `asyncio.run` close it. `sync`
    is the client of code without an event loop.

    Args:
        url: The server's address, `http://`, `https://`, `nats://` or `tls://`. None means OJS_URL, or
            http://127.0.0.1:8080.
        token: The key that the server asks for, also of workers. None means OJS_AUTH_TOKEN, or OJS_API_KEY.
        headers: Headers of every request, such as a proxy before the server asks for.
        retry_for: For how long a call is repeated while no server answers, in seconds or as `"30s"`.
        tls: For `https://` addresses, a CA of your own or a client's certificate, as `ojs_nats.tls.Tls` or as a context
            of `ssl`. None means the files that OJS_CA_FILE, OJS_CERT_FILE and OJS_KEY_FILE name.

    Attributes:
        url: The server's address.
        sync: The client of code without an event loop.
        enqueue: The middleware around pushes.
        execution: The middleware around handlers.
        definitions: The jobs, by type.
        codec: The object that decodes results which middleware has encoded. None if there is none.

    Raises:
        ValueError: The address names no server, or files of TLS can't be used.

    Example:
        >>> app = App("http://127.0.0.1:8080")
        >>> @app.job("email.send", queue="email", timeout="30s")
        ... async def send_email(to: str) -> None: ...
        >>> send_email.job("ada@example.org").queue
        'email'

        `await send_email.push("ada@example.org")` pushes a job, and `ojs-nats worker app.jobs` runs it.
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
        self._inside = _Inside(authorized(headers, token), milliseconds(retry_for) / 1_000, tls)
        self.enqueue = EnqueueChain()
        self.execution = ExecutionChain()
        self.codec: Codec | None = None
        self.definitions: dict[str, JobDefinition[Any, Any]] = {}
        self._clients = Clients(self._connect)
        self.sync = SyncClient(self.url, clients=self._clients)

    def _connect(self) -> Client:
        own = self._inside
        tls = own.tls if self.url.startswith(HTTPS) else None  # it may have been moved
        return Client(self.url, retry_for=own.retry_for_s, headers=own.headers, tls=tls, hooks=_AppHooks(self))

    @property
    def client(self) -> Client:
        """The client of the running event loop.

        Raises:
            RuntimeError: No event loop of asyncio runs in this thread. Use `sync` there.
        """
        return self._clients.of(running_loop())

    async def close(self) -> None:
        """Close the connections of the running event loop. The next push opens new ones."""
        await self._clients.close()

    @contextmanager
    def moved(self, url: str) -> Iterator[None]:
        """Talk to another server within the `with` block, on connections of its own: for tests.

        Args:
            url: The other server's address, as `App(url)` takes it.
        """
        before, self.url = self.url, url_of(url)
        try:
            with self._clients.others():
                yield
        finally:
            self.url = before

    def lifespan(self, made: Lifespan) -> Lifespan:
        """Register an async generator function that a worker runs around its jobs: `@app.lifespan`.

        The worker calls it before the first job. What it yields is `ctx.state` of every job. The code behind the
        `yield` runs after the last job has ended.

        Args:
            made: The function. It takes no arguments and yields once.

        Returns:
            The function itself.

        Raises:
            ValueError: The app has a lifespan already.

        Example:
            >>> app = App()
            >>> @app.lifespan
            ... async def lifespan():
            ...     yield {"greeting": "hello"}
        """
        if self._inside.lifespan is not None:
            raise ValueError("the app has a lifespan already: a worker has one, which may use others")
        self._inside.lifespan = made
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

        The function's parameters are the job's arguments, in order and converted to the types of its hints. A first
        parameter that is hinted `JobContext` is given the running job. The function can be called as before.

        Args:
            job_type: The job type, such as `"email.send"`. None, or `@app.job` alone, means the function's name.
            **options: The options of each push (`ojs_nats.options.Options`), and `soft_timeout` and `runs_in` for its
                worker.

        Returns:
            The definition: the function, with `push`, `push_sync`, `later`, `options` and `job` as attributes.

        Raises:
            TypeError: No worker could run the function, there is no such option, or an option's value is of another
                kind.
            ValueError: The type has a handler already or isn't a valid name, or the server would refuse an option.
        """
        if callable(job_type):
            return self._define(None, job_type, options)
        return lambda handler: self._define(job_type, handler, options)

    def _define(self, job_type: str | None, handler: Callable[..., Any], options: DefinitionOptions) -> JobDefinition[Any, Any]:
        known = getattr(handler, "__name__", repr(handler)) if job_type is None else job_type
        if known in self.definitions:
            raise ValueError(f"{known} has a handler already: {self.definitions[known].handler.__qualname__}")
        definition = define(self, known, handler, options)
        self.definitions[known] = definition
        return definition


class _AppHooks(ClientHooks):
    """The hooks of an app's clients: its middleware and its codec."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def prepared(self, new: JobRequest[R]) -> JobRequest[R]:
        if not self._app.enqueue:
            return new
        left = await pushed(self._app.enqueue, new)
        if left is None:
            raise JobDropped(f"a middleware of the app dropped the job {new.id} ({new.type})")
        return left

    def decoded(self, value: Any) -> Any:
        return value if self._app.codec is None else self._app.codec.decoded(value)


_deprecated.arguments(App, patience="retry_for")

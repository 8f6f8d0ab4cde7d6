"""Endpoints: the operations that requests ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from aiohttp import web

from ojs_engine.access.permissions import Need, Permission
from ojs_engine.api.call import Call, Response
from ojs_engine.api.route import Narrowing

T = TypeVar("T")


class UnlessStopping(Protocol):
    """The result of a wait, or None if the gateway stops first."""

    async def __call__(self, wait: Coroutine[Any, Any, T], /) -> T | None: ...


class StreamedResponse(NamedTuple):
    """An answer that goes on: `serve` gets the request and the headers that every answer has, and sends it itself."""

    serve: Callable[[web.BaseRequest, Mapping[str, str]], Awaitable[web.StreamResponse]]


Handler = Callable[[Call], Awaitable[Response | StreamedResponse]]


class Endpoint(NamedTuple):
    """An operation by its id, whichever way it is asked for, what it asks of its caller, and who answers it.

    Unless its `narrowing` is `queue` or `refused`, its handler asks the call what it may be about.
    """

    name: str
    placed: tuple[str, ...]
    """The names in its path, in order."""
    need: Need
    handler: Handler
    narrowing: Narrowing = "refused"
    by_queue: bool = False
    """Whether it may be asked for in the name of one queue."""
    public: bool = False
    """Whether it answers the pages of every origin: there is nothing of the system in its answers."""
    besides: tuple[Permission, ...] = ()
    """Permissions that it takes besides `need`, by what it makes happen later."""
    streams: bool = False
    """Whether its answer goes on, so that it takes one of the caller's places for streams."""

"""What a route says of itself: where it is, who answers it, and what goes in and out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ojs_api import operations
from ojs_engine.access.permissions import Need, Permission
from ojs_engine.api.schema import Schema
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.media_types import EVENT_STREAM_TYPE

RouteHandler = Callable[..., Awaitable[object]]
"""A method of the route's owner, with the call as its only argument."""
Narrowing = operations.Narrowing
Other = operations.Other
_SWITCHED: Final = 101


class Parameter(NamedTuple):
    """A member of the query string, or a header with `place`."""

    name: str
    schema: Schema
    about: str = ""
    place: str = "query"
    several: bool = False
    """Whether all count that are given."""
    same_as: str | None = None
    """The parameter that it is another name of: only one of both may be given, unless it takes several."""


class Route(NamedTuple):
    """One handler and the paths that lead to it.

    `paths` are `METHOD /path operationId`, below /ojs/v1 unless they are `absolute`. The first is the operation's own, the
    others are further names of it, whose ids may be left out. Ids name functions in clients: they stay as they are, and are
    the specification's where it has the operation. `errors` are codes of `ojs_engine.base.errors`; those that any request may
    meet are added. A `body` is required when a member of it is.
    """

    owner: Callable[[Any], Any]
    """The class of the handler. It is made of a `HandlerContext`."""
    handler: RouteHandler
    paths: tuple[str, ...]
    need: Need
    """What it asks of its caller, on all of its paths. There is no default."""
    summary: str
    answers: Mapping[int, Schema | Other]
    about: str = ""
    body: Schema | None = None
    query: tuple[Parameter, ...] = ()
    beginnings: tuple[str, ...] = ()
    """Beginnings of names of further parameters, which its clients choose."""
    errors: tuple[str, ...] = ()
    absolute: bool = False
    also: Other | None = None
    """Another form of the answer 200, which a parameter asks for."""
    test_only: bool = False
    """Whether it is there in test mode alone."""
    narrowing: Narrowing = "refused"
    """How its answer is held to the queues and job types that its caller may reach (docs/adr/072)."""
    besides: tuple[Permission, ...] = ()
    """Permissions that it takes besides `need`, by what it makes happen later."""
    by_queue: bool = False
    """Whether it may be asked for over NATS in the name of one queue (docs/adr/054)."""
    http_only: bool = False
    """Whether it means nothing over NATS."""

    @property
    def streams(self) -> bool:
        """Whether its answer goes on: server-sent events, or a WebSocket."""
        return any(
            isinstance(answer, Other) and (status == _SWITCHED or answer.media_type == EVENT_STREAM_TYPE)
            for status, answer in self.answers.items()
        )


class Part(NamedTuple):
    """Routes that belong together."""

    name: str
    about: str
    routes: tuple[Route, ...]
    shapes: Shapes = MappingProxyType({})
    """Its answers as official clients read them, beside those of `ojs_gateway/dialects`."""
    in_paths: tuple[Parameter, ...] = ()
    """The names in its paths that no other part has."""

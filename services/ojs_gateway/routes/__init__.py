"""Every path of the API with its handler and its description (docs/adr/017)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any, Final

from ojs_engine.api.call import Call, Response
from ojs_engine.api.common import OBJECT
from ojs_engine.api.route import Other, Part, Route, RouteHandler
from ojs_engine.api.streams import Conversation, EventStream
from ojs_engine.base.fields import parse_nothing
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, encode
from ojs_features.plug import Feature
from ojs_gateway.context import Context
from ojs_gateway.handlers.description import SelfDescription
from ojs_gateway.http.endpoint import Endpoint, Handler, StreamedResponse
from ojs_gateway.http.router import Router
from ojs_gateway.http.sockets import socket
from ojs_gateway.http.sse import sse
from ojs_gateway.nats_api.operation import Operation
from ojs_gateway.openapi.document import parameters_of, places
from ojs_gateway.openapi.queries import KnownQueries, checks
from ojs_gateway.routes.jobs import JOBS
from ojs_gateway.routes.queues import QUEUES
from ojs_gateway.routes.system import SYSTEM
from ojs_gateway.routes.workers import FLEET, WORKERS


def _description(context: Context) -> SelfDescription:
    return SelfDescription(context, parts(context.features))


_DESCRIPTION: Final = Part(
    "Description",
    "This document",
    (
        Route(
            _description,
            SelfDescription.read,
            ("GET /openapi.json getOpenApi",),
            "nothing",
            "Read this document",
            {200: OBJECT},
        ),
    ),
)
_PARTS: Final = (
    SYSTEM,
    JOBS,
    WORKERS,
    QUEUES,
    FLEET,
)
_LAST: Final = (_DESCRIPTION,)


def parts(features: Iterable[Feature]) -> tuple[Part, ...]:
    """Return all parts of the API, with those of features."""
    return (*_PARTS, *(part for feature in features for part in feature.parts), *_LAST)


def bound(context: Context) -> Iterator[tuple[Route, Endpoint]]:
    """The routes of one gateway with their endpoints; some exist in test mode only."""
    owners: dict[Any, Any] = {}
    for part in parts(context.features):
        for route in part.routes:
            if route.test_only and not context.settings.test_mode:
                continue
            owner = owners.get(route.owner)
            if owner is None:
                owner = owners[route.owner] = route.owner(context)
            own = next(places(route))
            handler: Handler = MethodType(route.handler, owner)
            if route.body is None and own.method != "GET":
                handler = _without_a_body(handler)
            if route.streams:
                handler = _sent(handler, context)
            if checks(route, own.method):
                handler = _with_known_queries(handler, KnownQueries(own.operation_id, route))
            endpoint = Endpoint(
                name=own.operation_id,
                placed=parameters_of(own.path),
                need=route.need,
                handler=handler,
                narrowing=route.narrowing,
                by_queue=route.by_queue,
                besides=route.besides,
                streams=route.streams,
            )
            for witness in context.witnesses:
                watched = witness.watching(endpoint, endpoint.handler, reads=own.method == "GET")
                endpoint = endpoint._replace(handler=watched)
            if part.shapes:
                endpoint = endpoint._replace(handler=_shaped(endpoint.handler, part.shapes))
            yield route, endpoint


def _sent(handler: RouteHandler, context: Context) -> Handler:
    """Return a handler whose streams and conversations go over HTTP."""

    def stopping() -> bool:
        return context.stopping

    async def answered(call: Call) -> StreamedResponse:
        found = await handler(call)
        if isinstance(found, Conversation):
            return socket(found, stopping, context.unless_stopping, context.keep_alive_s)
        assert isinstance(found, EventStream)
        return sse(found, stopping, context.unless_stopping)

    return answered


def _shaped(handler: Handler, shapes: Shapes) -> Handler:
    """Return a handler whose answers have the shapes that their readers know."""

    async def answered(call: Call) -> Response | StreamedResponse:
        found = await handler(call)
        if not isinstance(found, Response) or isinstance(found.answer, bytes):
            return found
        shape = shapes.get(type(bare(found.answer)), {}).get(call.dialect.reader)
        return found if shape is None else found._replace(answer=encode(shape(found.answer)))

    return answered


def _without_a_body(handler: Handler) -> Handler:
    """Return a handler that needs no body, such that one which is sent all the same has to be sound."""

    async def answered(call: Call) -> Response | StreamedResponse:
        await call.read(parse_nothing)
        return await handler(call)

    return answered


def _with_known_queries(handler: Handler, known: KnownQueries) -> Handler:
    """Return a handler that answers requests whose parameters are all known."""

    async def answered(call: Call) -> Response | StreamedResponse:
        if queries := call.queries:
            known.check(queries)
        return await handler(call)

    return answered


def router(routes: Iterable[tuple[Route, Endpoint]], prefix: str = "") -> Router:
    """Return where they are over HTTP, at the root and below a prefix."""
    found = Router(prefix)
    for route, endpoint in routes:
        for place in places(route):
            found.add(place.method, place.path, endpoint)
    return found


def operations(routes: Iterable[tuple[Route, Endpoint]]) -> Iterator[Operation]:
    """What they are over NATS: without those that stream, and by their own names alone."""
    for route, endpoint in routes:
        if (
            route.http_only
            or route.streams
            or any(isinstance(answer, Other) and answer.media_type for answer in route.answers.values())
        ):
            continue
        own = next(places(route))
        yield Operation(endpoint, own.method, own.path)

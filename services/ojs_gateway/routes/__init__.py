"""Every path of the API with its handler and its description (docs/adr/017)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MethodType
from typing import Any, Final

from ojs_gateway.context import Context
from ojs_gateway.handlers.description import SelfDescription
from ojs_gateway.http.router import Handler, Router
from ojs_gateway.nats_api.operation import Operation
from ojs_gateway.openapi.common import OBJECT
from ojs_gateway.openapi.document import parameters_of, places
from ojs_gateway.openapi.route import Other, Part, Route
from ojs_gateway.routes.bulk import BULK
from ojs_gateway.routes.crons import CRONS
from ojs_gateway.routes.dead_letter import DEAD_LETTERS
from ojs_gateway.routes.events import EVENTS
from ojs_gateway.routes.history import HISTORY
from ojs_gateway.routes.jobs import JOBS
from ojs_gateway.routes.limits import LIMITS, POOLS
from ojs_gateway.routes.queues import QUEUES
from ojs_gateway.routes.schemas import SCHEMAS
from ojs_gateway.routes.statistics import STATISTICS
from ojs_gateway.routes.system import SYSTEM
from ojs_gateway.routes.webhooks import WEBHOOKS
from ojs_gateway.routes.workers import FLEET, WORKERS
from ojs_gateway.routes.workflows import WORKFLOWS


def _description(context: Context) -> SelfDescription:
    return SelfDescription(context, PARTS)


_DESCRIPTION: Final = Part(
    "Description",
    "This document",
    (Route(_description, SelfDescription.read, ("GET /openapi.json getOpenApi",), "Read this document", {200: OBJECT}),),
)
PARTS: Final = (
    SYSTEM,
    JOBS,
    HISTORY,
    BULK,
    WORKERS,
    QUEUES,
    DEAD_LETTERS,
    CRONS,
    WORKFLOWS,
    EVENTS,
    STATISTICS,
    FLEET,
    LIMITS,
    POOLS,
    SCHEMAS,
    WEBHOOKS,
    _DESCRIPTION,
)


def bound(context: Context) -> Iterator[tuple[Route, Handler]]:
    """The routes of one gateway with their handlers; some exist in test mode only."""
    owners: dict[Any, Any] = {}
    for part in PARTS:
        for route in part.routes:
            if route.test_only and not context.test_mode:
                continue
            owner = owners.get(route.owner)
            if owner is None:
                owner = owners[route.owner] = route.owner(context)
            yield route, MethodType(route.handler, owner)


def router(routes: Iterable[tuple[Route, Handler]]) -> Router:
    """Where they are over HTTP."""
    found = Router()
    for route, handler in routes:
        for place in places(route):
            found.add(place.method, place.path, handler)
    return found


def operations(routes: Iterable[tuple[Route, Handler]]) -> Iterator[Operation]:
    """What they are over NATS: without those that stream, and by their own names alone."""
    for route, handler in routes:
        if any(isinstance(answer, Other) and (status == 101 or answer.media_type) for status, answer in route.answers.items()):
            continue
        own = next(places(route))
        yield Operation(own.operation_id, own.method, own.path, parameters_of(own.path), handler, by_queue=route.by_queue)

"""Routes of the contract's operations (docs/adr/147)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ojs_api.operations import Operation, Subject
from ojs_engine.api.route import Parameter, Part, Route, RouteHandler
from ojs_engine.api.schema import sent_as, sent_member
from ojs_engine.wire.dialects.shaping import Shapes


def part_of(
    subject: Subject,
    *served: tuple[Callable[[Any], Any], Mapping[Operation, RouteHandler]],
    shapes: Shapes = MappingProxyType({}),
) -> Part:
    """Return the routes of a subject, which classes serve, each by its handlers, with its answers for official clients.

    Raises KeyError for an operation that has no handler, TypeError for one of another subject.
    """
    routes = {each: route_of(each, owner, handler) for owner, handlers in served for each, handler in handlers.items()}
    if other := routes.keys() - set(subject.operations):
        raise TypeError(f"{subject.name} has no {', '.join(operation.name for operation in other)}")
    in_paths = tuple(Parameter(each.name, sent_member(each.kind), each.about) for each in subject.in_paths)
    return Part(subject.name, subject.about, tuple(routes[each] for each in subject.operations), shapes, in_paths)


def route_of(operation: Operation, owner: Callable[[Any], Any], handler: RouteHandler) -> Route:
    """Return the route of one operation, which a class serves by a handler."""
    return Route(
        owner,
        handler,
        (f"{operation.at} {operation.name}", *operation.also),
        operation.need,
        operation.summary,
        operation.answers,
        operation.about,
        body=None if operation.body is None else sent_as(operation.body),
        query=tuple(
            Parameter(each.name, sent_member(each.kind), each.about, each.place, each.several, each.same_as)
            for each in operation.query
        ),
        beginnings=operation.beginnings,
        errors=operation.errors,
        narrowing=operation.narrowing,
        http_only=operation.http_only,
        besides=operation.besides,
        by_queue=operation.by_queue,
    )

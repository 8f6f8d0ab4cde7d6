"""Makes definitions of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from ojs_nats._arguments import Parameters
from ojs_nats._has_clients import HasClients
from ojs_nats._names import job_type as valid_type
from ojs_nats.definitions import (
    AsyncContextDefinition,
    AsyncDefinition,
    JobDefinition,
    PlainContextDefinition,
    PlainDefinition,
)
from ojs_nats.options import DefinitionOptions

_KINDS: Final[dict[tuple[bool, bool], type[JobDefinition[Any, Any]]]] = {
    (True, True): AsyncContextDefinition,
    (True, False): AsyncDefinition,
    (False, True): PlainContextDefinition,
    (False, False): PlainDefinition,
}
"""The class of a definition, by whether its function is async and takes the context."""


def define(
    clients: HasClients, job_type: str, handler: Callable[..., Any], options: DefinitionOptions
) -> JobDefinition[Any, Any]:
    """Return the definition of a function.

    Args:
        clients: The app, which pushes its jobs.
        job_type: The type of its jobs.
        handler: The function.
        options: The options of each push, and of the worker.

    Raises:
        ValueError, TypeError: As `App.job`.
    """
    valid_type(job_type)
    function = _function(handler, job_type)
    parameters = Parameters(function)
    _check_is_no_method(function)  # its signature may be asked for once its hints are known to be there
    kind = _KINDS[inspect.iscoroutinefunction(function), parameters.takes_context]
    return kind(clients, job_type, function, parameters, options)


def _function(handler: Callable[..., Any], job_type: str) -> Callable[..., Any]:
    """Return the function of what is decorated. Raises TypeError for what no job could call."""
    if isinstance(handler, JobDefinition):  # a second type of the same function
        handler = handler.handler
    if isinstance(handler, staticmethod):
        handler = handler.__func__
    if isinstance(handler, classmethod):
        raise TypeError(f"{job_type}: a job brings no class, so write a function, or a staticmethod")
    return handler


def _check_is_no_method(handler: Callable[..., Any]) -> None:
    """Raise TypeError for a function whose first parameter no job brings."""
    first = next(iter(inspect.signature(handler).parameters), None)
    if first in {"self", "cls"}:
        raise TypeError(
            f"{handler.__qualname__}: a job brings no {first!r}, so a method can't be its handler: write a function that "
            "makes the object and calls this, or a staticmethod"
        )

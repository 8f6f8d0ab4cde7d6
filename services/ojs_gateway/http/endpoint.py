"""What a request is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ojs_core.access.permissions import Need
from ojs_gateway.http.call import Call, Response, StreamedResponse

Handler = Callable[[Call], Awaitable[Response | StreamedResponse]]


class Endpoint(NamedTuple):
    """An operation by its id, whichever way it is asked for, what it asks of its caller, and who answers it.

    `by_queue` says that its handler asks the call which queues it may be about.
    """

    name: str
    placed: tuple[str, ...]
    """The names in its path, in order."""
    need: Need
    handler: Handler
    by_queue: bool = False

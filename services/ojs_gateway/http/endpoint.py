"""What a request is for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from ojs_core.access.permissions import Need, Permission
from ojs_gateway.http.call import Call, Response, StreamedResponse

Handler = Callable[[Call], Awaitable[Response | StreamedResponse]]


Narrowing = Literal["body", "queue", "parameter", "job", "entry", "worker", "refused"]
"""How an operation is held to the queues and job types that its caller may reach.

By what its `body` names; by the `queue` of its path; by the `parameter` or member `queue`, and `type` where the caller is
narrowed by types; by the `job` or jobs that it names, which count as absent; by each `entry` of its answer; by the `worker`
that the caller's key has registered. What doesn't say so is `refused`.
"""


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

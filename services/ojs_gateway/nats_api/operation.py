"""An operation as it is asked for over NATS."""

from __future__ import annotations

from typing import NamedTuple

from ojs_gateway.http.router import Handler


class Operation(NamedTuple):
    """`name` is its operationId; `placed` are the names in its path. `by_queue` says that its handler asks the call which
    queues it may be about.
    """

    name: str
    method: str
    path: str
    placed: tuple[str, ...]
    handler: Handler
    by_queue: bool

    @property
    def of_a_queue(self) -> bool:
        """Whether its path names a queue."""
        return "queue" in self.placed

    @property
    def grantable(self) -> bool:
        """Whether it may be asked for under the name of one queue, and so be granted for that alone."""
        return self.by_queue or self.of_a_queue

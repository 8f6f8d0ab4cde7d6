"""An operation as it is asked for over NATS."""

from __future__ import annotations

from typing import NamedTuple

from ojs_gateway.http.endpoint import Endpoint


class Operation(NamedTuple):
    """Its endpoint, and where that is over HTTP."""

    endpoint: Endpoint
    method: str
    path: str

    @property
    def name(self) -> str:
        return self.endpoint.name

    @property
    def placed(self) -> tuple[str, ...]:
        return self.endpoint.placed

    @property
    def of_a_queue(self) -> bool:
        """Whether its path names a queue."""
        return "queue" in self.placed

    @property
    def grantable(self) -> bool:
        """Whether it may be asked for under the name of one queue, and so be granted for that alone."""
        return self.endpoint.by_queue or self.of_a_queue

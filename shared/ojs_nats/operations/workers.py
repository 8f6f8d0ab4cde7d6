"""Operations on workers: list them, and tell them to pause or end (docs/admin.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ojs_api import words
from ojs_api.work import HEALTH
from ojs_api.workers import (
    DIRECT,
    DIRECT_ALL,
    GET,
    LIST,
    REMOVE,
    DirectedWorkers,
    FleetSummary,
    SendDirective,
    Worker,
    WorkerDetail,
    WorkerHealth,
)
from ojs_nats import _deprecated
from ojs_nats._operations import Request
from ojs_nats.operations._subject import Subject, parameters, sent

__all__ = ["Directive", "Workers"]

Directive = words.Directive


class Workers(Subject):
    """The operations on workers, as `client.workers`. Those on one worker raise NotFoundError if it doesn't exist."""

    def list(self, *, state: words.WorkerState | None = None, limit: int | None = None) -> AsyncIterator[Worker]:
        """List workers by id.

        Args:
            state: The state. None means all states.
            limit: How many at most. None means all.
        """
        return self._each(Worker, "workers", LIST, limit, parameters(state=state))

    async def summary(self) -> FleetSummary:
        """Count the workers by state."""
        return await self._asked(FleetSummary, Request(LIST, {"limit": "1"}), "summary")

    async def get(self, worker_id: str) -> WorkerDetail:
        """Return a worker with the jobs that it holds.

        Raises:
            NotFoundError: There is no such worker.
        """
        return await self._asked(WorkerDetail, Request(GET, {"worker_id": worker_id}))

    async def health(self, worker_id: str) -> WorkerHealth:
        """Return whether a worker takes jobs: `status` is `healthy`, `draining` or `stale`.

        Raises:
            NotFoundError: There is no such worker.
        """
        return await self._asked(WorkerHealth, Request(HEALTH, {"worker_id": worker_id}, answered_as_well=frozenset({503})))

    async def send_directive(self, worker_id: str, directive: Directive) -> Worker:
        """Send a directive to a worker, which gets it with its next heartbeat.

        Args:
            worker_id: The worker's id.
            directive: `"running"` to fetch jobs, `"quiet"` to fetch no more, `"terminate"` to end.

        Raises:
            NotFoundError: There is no such worker.
        """
        return await self._asked(Worker, Request(DIRECT, {"worker_id": worker_id}, sent(SendDirective(directive=directive))))

    async def send_directive_to_all(self, directive: Directive) -> DirectedWorkers:
        """Send a directive to all workers of now.

        Args:
            directive: `"running"` to fetch jobs, `"quiet"` to fetch no more, `"terminate"` to end.

        Returns:
            The number of workers that will hear of it.
        """
        return await self._asked(DirectedWorkers, Request(DIRECT_ALL, body=sent(SendDirective(directive=directive))))

    async def remove(self, worker_id: str) -> None:
        """Remove a stale worker from the list.

        Raises:
            NotFoundError: There is no such worker.
            ConflictError: The worker isn't stale.
        """
        await self._transport.send(Request(REMOVE, {"worker_id": worker_id}))


_deprecated.methods(Workers, direct="send_directive", direct_all="send_directive_to_all")

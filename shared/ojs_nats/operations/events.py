"""Events: what happens, as it happens, and what has happened (docs/events.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from ojs_nats._operations import LIST_EVENTS, Request
from ojs_nats._transport import EventFilter
from ojs_nats.models.events import Event, EventPage
from ojs_nats.operations.subject import Subject, parameters

_PAGE: Final = 100
"""The most that the server puts into a page that has a number."""


class Events(Subject):
    """`client.events`."""

    async def __call__(
        self,
        *,
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        job_id: str | None = None,
        workflow_id: str | None = None,
        after: str | None = None,
    ) -> AsyncGenerator[Event]:
        """`async for event in client.events(types=["job.failed"], queue="email"):` from now on, or behind a cursor.

        `types` may end in `.*`. Connections that break are made anew without losing any event; one may come twice, with the
        same `id`. Those of `job_id` end with the job, raising NotFoundError if there is none; those of `workflow_id` are
        the events whose type begins with `workflow.`.
        """
        if workflow_id is not None and not types:
            types = ["workflow.*"]
        wanted = EventFilter(
            types=types,
            queues=() if queue is None else (queue,),
            job_types=() if job_type is None else (job_type,),
            job_id=job_id,
            after=after,
        )
        told = self._transport.events(wanted)
        try:
            async for event in told:
                if workflow_id is None or event.data.get("workflow_id") == workflow_id:
                    yield event
        finally:
            await told.aclose()

    async def poll(
        self,
        *,
        after: str = "0",
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        limit: int = 100,
    ) -> EventPage:
        """Those behind a cursor, the oldest first, beginning with the oldest that is kept."""
        asked = parameters(after=after, types=types or None, queues=queue, job_types=job_type, limit=limit)
        return await self._asked(EventPage, Request(LIST_EVENTS, asked, queue=queue))

    async def recent(self, *, type: str | None = None, queue: str | None = None, limit: int = 50) -> list[Event]:
        """The last `limit`, the newest first; `type` is one in full."""
        found: dict[str, Event] = {}
        page, size = 1, min(limit, _PAGE)
        while len(found) < limit:
            asked = parameters(page=page, per_page=size, type=type, queue=queue)
            answer = await self._asked(EventPage, Request(LIST_EVENTS, asked, queue=queue))
            found |= {event.id: event for event in answer.events}  # what happens meanwhile moves others to the next page
            if not answer.has_more:
                break
            page += 1
        return list(found.values())[:limit]

    async def cursor(self) -> str:
        """Where all that has happened is behind: events after it are those from now on."""
        return (await self._asked(EventPage, Request(LIST_EVENTS, parameters(page=1, per_page=1)))).cursor

"""Operations on events: follow them, or read those that have happened (docs/events.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from ojs_api.events import POLL
from ojs_nats._operations import Request
from ojs_nats._transport import EventFilter
from ojs_nats.models.events import Event, EventPage
from ojs_nats.operations._subject import Subject, parameters

__all__ = ["Events"]

_PAGE: Final = 100
"""The most that the server puts into a page that has a number."""


class Events(Subject):
    """The events of the server, as `client.events`."""

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
        """Follow events as they happen: `async for event in client.events(types=["job.failed"], queue="email")`.

        A connection that breaks is made anew behind the last event, so none is lost. An event may come twice, with the
        same `id`.

        Args:
            types: The types of events. One may end in `.*`. Empty means all types.
            queue: The queue. None means all queues.
            job_type: The job type. None means all types.
            job_id: One job. The events end with the job.
            workflow_id: One workflow. Only events whose type begins with `workflow.` come.
            after: A cursor to begin behind: `event.cursor` or `await client.events.cursor()`. None means from now on.

        Raises:
            NotFoundError: The job of `job_id` doesn't exist.
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
        """Return a page of events behind a cursor, the oldest first.

        Args:
            after: The cursor. By default the page begins with the oldest event that is kept.
            types: The types of events. One may end in `.*`. Empty means all types.
            queue: The queue. None means all queues.
            job_type: The job type. None means all types.
            limit: How many at most.
        """
        asked = parameters(after=after, types=types or None, queues=queue, job_types=job_type, limit=limit)
        return await self._asked(EventPage, Request(POLL, asked, queue=queue))

    async def recent(self, *, type: str | None = None, queue: str | None = None, limit: int = 50) -> list[Event]:
        """Return the last events, the newest first.

        Args:
            type: The type of event, in full. None means all types.
            queue: The queue. None means all queues.
            limit: How many at most.
        """
        found: dict[str, Event] = {}
        page, size = 1, min(limit, _PAGE)
        while len(found) < limit:
            asked = parameters(page=page, per_page=size, type=type, queue=queue)
            answer = await self._asked(EventPage, Request(POLL, asked, queue=queue))
            found |= {event.id: event for event in answer.events}  # what happens meanwhile moves others to the next page
            if not answer.has_more:
                break
            page += 1
        return list(found.values())[:limit]

    async def cursor(self) -> str:
        """Return the cursor of now. Events behind it are those that happen from now on."""
        return (await self._asked(EventPage, Request(POLL, parameters(page=1, per_page=1)))).cursor

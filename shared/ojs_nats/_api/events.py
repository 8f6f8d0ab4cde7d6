"""Events: what happens, as it happens, and what has happened (docs/events.md)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from ojs_nats._api.subject import Subject, parameters
from ojs_nats._operations import LIST_EVENTS, Request
from ojs_nats._transport import EventFilter
from ojs_nats.answers.events import Event, EventPage


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
        same `id`. Those of `job_id` end with the job, raising NotFound if there is none; those of `workflow_id` are the events
        whose type begins with `workflow.`.
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

    async def cursor(self) -> str:
        """Where all that has happened is behind: events after it are those from now on."""
        return (await self._asked(EventPage, Request(LIST_EVENTS, parameters(page=1, per_page=1)))).cursor

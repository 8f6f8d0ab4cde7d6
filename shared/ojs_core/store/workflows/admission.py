"""What a workflow's jobs must heed of queues and uniqueness (docs/adr/011).

A workflow is admitted as a whole when it is created: what its queues refuse refuses it, and what they set is in the templates
of all its jobs from then on. Jobs of later steps are work that was accepted, so nothing refuses them any more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from ojs_core.base.errors import OjsError, duplicate, placed
from ojs_core.domain.job import Job
from ojs_core.domain.unique import policy_of
from ojs_core.domain.workflows.definition import Definition
from ojs_core.store.jobs.guards import Guards


class Admission:
    """Judges definitions. Raises OjsError with the `field`, and in the message, that says which job is refused."""

    def __init__(self, guards: Guards) -> None:
        self._queues = guards.queues
        self._capacity = guards.capacity
        self._permits = guards.permits
        self._unique = guards.unique

    async def admitted(self, definition: Definition) -> Definition:
        """The definition with what its jobs leave to their queues filled in. Raises what `Queues.admit` does."""
        jobs: dict[int, Job] = {}
        for node, draft in definition.jobs.items():
            try:
                jobs[node] = await self._queues.admit(draft)
            except OjsError as error:
                raise placed(error, definition.places[node]) from None
        await self._permits.note(jobs.values())
        return replace(definition, jobs=jobs)

    @asynccontextmanager
    async def room(self, definition: Definition, first: Sequence[int]) -> AsyncIterator[None]:
        """Hold places for the jobs that are created at once. Raises OjsError queue_full, and duplicate for one of them."""
        await self._check_unique(definition, first)
        async with self._capacity.places_for(definition.jobs[node] for node in first):
            yield

    async def _check_unique(self, definition: Definition, first: Sequence[int]) -> None:
        owners: dict[str, Job] = {}
        for node in first:
            draft = definition.jobs[node]
            key = draft.unique_key
            if key is None or policy_of(draft).on_conflict != "reject":
                continue
            found = [owners[key]] if key in owners else (await self._unique.look(key, policy_of(draft), draft.id)).jobs()
            if found:
                raise placed(duplicate(found[0].id, found[0].state, key), definition.places[node])
            owners[key] = draft
